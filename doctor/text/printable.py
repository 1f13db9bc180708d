"""Makes text of a host harmless: nothing that it printed may move the cursor, change colours or hide text."""

from __future__ import annotations

_BLANKS = "\t\u00a0\u3000"


def clean(text: str) -> str:
    """The same text with every such character written out; tabs and line ends stay."""
    return "\n".join(map(clean_line, text.split("\n")))


def clean_line(text: str) -> str:
    """For names and commands, which are one line: an end of line is written out as well."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in _BLANKS else _written(ord(c)) for c in text)


def _written(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

"""Makes untrusted text harmless: it may not move the cursor, change colours or hide text.

Untrusted text comes from hosts, recordings, configuration files and programs. Every output goes through here:
`put` of doctor.text.terminal cleans what it prints, the report what it draws, and JSON is written as
`escaped`.
"""

from __future__ import annotations

import re

_BLANKS = "\t\u00a0\u3000"
_NOT_ASCII = re.compile(r"[^\n -~]")


def clean(text: str) -> str:
    """The text with every control character written out; tabs and line ends stay."""
    return "\n".join(map(clean_line, text.split("\n")))


def clean_line(text: str) -> str:
    """Like `clean` for names and commands, which are one line: line ends are written out as well."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in _BLANKS else _written(ord(c)) for c in text)


def escaped(json: str) -> str:
    """JSON with every control character as \\uXXXX, which does not change its values."""
    return _NOT_ASCII.sub(lambda found: found[0] if found[0].isprintable() else _in_json(found[0]), json)


def _in_json(character: str) -> str:
    return re.sub("....", r"\\u\g<0>", character.encode("utf-16-be", "surrogatepass").hex())


def _written(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

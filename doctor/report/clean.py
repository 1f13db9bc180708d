"""Makes text of a host harmless: nothing that it printed may move the cursor, change colours or hide text."""

from __future__ import annotations

import re

# Control characters, and the marks that turn the direction of writing round or show nothing at all.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def clean(text: str) -> str:
    """The same text with every such character written out; tabs and line ends stay."""
    return _UNSAFE.sub(_written, text)


def _written(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"

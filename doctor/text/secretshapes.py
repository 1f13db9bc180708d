"""Secrets that are recognized without a name: by their shape, their place, or the program that takes them.

Each row of the tables begins with words in lower case; every text that its pattern finds contains one of
them. The words are searched for first, which is many times faster. Every pattern is bounded, so that hostile
text costs linear time.
"""

import re

from doctor.text.hostprogram import table
from doctor.text.late import late

HIDDEN = "[hidden]"

VALUE = (
    r"""(?:\w{1,20}\()?(?:\\{1,7}"[^"\\\n]{0,4096}\\{1,7}"|"(?:[^"\\\n]|\\.){0,4096}"|'[^'\n]{0,4096}')"""
    r"""|["'“‘「]?(?:[^\s"'&，。；、）】」”’<]|<(?!/))+"""
)
"""The value after a name or an option: a quoted text, or the rest of a word."""

SHAPES = dict(table(__file__, "secretshapes.txt"))
"""Tokens with a prefix that their issuer gives them."""

PLACES = table(__file__, "secretplaces.txt")
"""Three values each: words, the pattern of the text before a secret (it is kept), the secret's pattern."""

TAKEN = table(__file__, "secrettakers.txt")
"""Programs, and the option before their secret, with words as above."""

_SHAPE = late(r"\b(?:" + "|".join(SHAPES.values()) + ")", re.IGNORECASE)
_PLACE = late(
    "|".join(f"(?P<p{at}>{before})(?:{secret})" for at, (_, before, secret) in enumerate(PLACES)),
    re.IGNORECASE,
)
_COMMAND = late(
    r"(?<![\w.-])(?:" + "|".join(f"({program})" for _, program, _ in TAKEN) + r")(?=[ \t])[^\n|;&]{0,2000}"
)
_OPTIONS = [late(rf"(\s{before})(?:{VALUE})") for _, _, before in TAKEN]


HINTS = " ".join((*SHAPES, *(words for words, *_ in (*TAKEN, *PLACES)))).split()


def hide_places(text: str) -> str:
    """Hides secrets that are recognized by their place, including private keys of several lines."""
    return _PLACE.sub(lambda found: found[found.lastgroup or 0] + HIDDEN, text)


def hide_shapes(line: str) -> str:
    def hide(found: re.Match[str]) -> str:
        return _OPTIONS[(found.lastindex or 1) - 1].sub(rf"\g<1>{HIDDEN}", found[0])

    return _COMMAND.sub(hide, _SHAPE.sub(HIDDEN, line))

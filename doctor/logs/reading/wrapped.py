"""Joins lines that a terminal broke at its width, in a text that was copied from one."""

import re
from collections import Counter

from doctor.logs.forms import complaint
from doctor.logs.forms.line import said_of
from doctor.logs.forms.prefix import PrefixLayout
from doctor.logs.forms.times import Clock
from doctor.logs.model import Form
from doctor.logs.sentence import sentence
from doctor.logs.steps import says_step

LEAST, MOST = 72, 400
"""The widths of terminals."""
_SEVERAL = 3
"""Fewer different lines of exactly the greatest length may be chance, or one message of many ranks."""
_INSIDE = re.compile(rb"\S\n |[A-Z]\n[A-Z]|[a-z]\n[a-z]|\d\n\d|[\w.,:]\n[.,:;)\]]| \n\S")
_OWN = re.compile(r"\s{2}|[-+|=*#{<>]|\d{1,12}[,;\t|]")
"""How rows of tables, dictionaries and indented lines begin."""
_LONGEST = 2000
_CLOCK = Clock(0.0)


def width_of(text: bytes) -> int:
    """The width at which all longer lines of a text were broken; 0 if they were not."""
    lines = text.split(b"\n")
    lengths = Counter(map(len, lines))
    width = max(lengths)
    if not LEAST <= width <= MOST:
        return 0
    broken = [place for place, line in enumerate(lines[:-1]) if len(line) == width]
    joined = [place for place in broken if _continues(lines[place + 1])]
    inside = [place for place in joined if _is_inside(lines[place], lines[place + 1])]
    several = len({sentence(lines[place]) for place in joined}) >= _SEVERAL
    if several and len(joined) * 4 >= len(broken) * 3 and len(inside) * 2 >= len(joined):
        return width
    return width if inside and inside == broken else 0


def _is_inside(line: bytes, rest: bytes) -> bool:
    """Whether the line was broken inside a word or a list, where no writer ends a line."""
    return _INSIDE.fullmatch(line[-1:] + b"\n" + rest[:1]) is not None


def whole(text: bytes, width: int) -> bytes:
    """The text with its broken lines joined. Empty lines stand for the rest: each line keeps its number."""
    lines = text.split(b"\n")
    if not any(len(line) == width for line in lines):
        return text
    made: list[bytes] = []
    begin, goes_on = 0, False
    for line in lines:
        if goes_on and _continues(line):
            made[begin] += line
            made.append(b"")
        else:
            begin = len(made)
            made.append(line)
        goes_on = len(line) == width and len(made[begin]) < _LONGEST
    return b"\n".join(made)


def _continues(line: bytes) -> bool:
    """Whether the line can be the rest of another: it does not begin as lines of a log do."""
    text = line.decode("utf-8", "replace")
    if not text.strip() or _OWN.match(text) or says_step(text):
        return False
    facts = said_of(text, PrefixLayout(), _CLOCK)
    plain = facts.form is Form.PLAIN and not facts.headed and not facts.prefix
    return plain and not complaint.complains(text, facts)

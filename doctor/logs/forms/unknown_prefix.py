"""Learns prefixes that no known launcher writes, from tracebacks: all lines of one begin alike.

The text before "Traceback (most recent call last):" is a prefix if the next line begins with it as well and
goes on with a frame. With its numbers left open, it is the prefix of all writers of that kind.
"""

import re
from dataclasses import replace

from doctor.logs.forms.line_facts import LineFacts, level_of
from doctor.logs.forms.prefix import PrefixLayout, strip
from doctor.logs.forms.times import Clock

BEGINS = b"Traceback (most recent call last):"
MOST = 16
"""The most prefixes that are learned from one file."""
_LOOKED = 200
"""The most tracebacks of one window that are examined."""
_LONGEST = 160
_FRAME = re.compile(r"\s{0,4}File \"")
_NUMBER = re.compile(r"\d+")
_WORD = re.compile(r"\b[A-Z]{4,8}\b")


def with_learned(layout: PrefixLayout, data: bytes, start: int, end: int, clock: Clock) -> PrefixLayout:
    """The layout with the prefixes of the tracebacks in data[start:end]."""
    at = start
    for _ in range(_LOOKED):
        at = data.find(BEGINS, at, end)
        if at < 0 or len(layout.learned) >= MOST:
            break
        begin = data.rfind(b"\n", start, at) + 1
        after = data.find(b"\n", at, end) + 1
        if start <= begin < at <= begin + _LONGEST and after:
            before = data[begin:at].decode("utf-8", "replace")
            below = data[after : after + 2 * _LONGEST].partition(b"\n")[0].decode("utf-8", "replace")
            if learned := _unknown(before, below, layout, clock):
                layout = replace(layout, learned=(*layout.learned, learned))
        at += len(BEGINS)
    return layout


def _unknown(before: str, below: str, layout: PrefixLayout, clock: Clock) -> re.Pattern[str] | None:
    """The part of the text before a traceback that no known prefix covers, as a pattern."""

    def covered(text: str, at: int) -> int:
        facts = LineFacts()
        strip(text, layout, clock, facts, at)
        return facts.start

    known, end = covered(before, 0), len(before)
    tag = next((at for at in range(known + 1, end) if covered(before, at) == end), end)
    part = before[known:tag]
    if not part.strip() or (tag == end and any(map(level_of, _WORD.findall(part)))):
        return None  # nothing, or the head of a log record, which no tag of a rank follows
    pattern = _NUMBER.sub(r"\\d{1,20}", re.escape(part.rstrip())) + " ?" * part.endswith(" ")
    goes_on = re.compile(pattern).match(below, covered(below, 0))
    if goes_on is None or not _FRAME.match(below, covered(below, goes_on.end())):
        return None
    return re.compile(pattern)

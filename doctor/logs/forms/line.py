"""Reads one line on its own: its form, level, time and writer."""

import re
from functools import lru_cache

from doctor.logs.forms.ascend import ascend
from doctor.logs.forms.line_facts import LineFacts, level_of
from doctor.logs.forms.prefix import PrefixLayout, strip
from doctor.logs.forms.system import system
from doctor.logs.forms.times import DATED, Clock
from doctor.logs.forms.torch import torch
from doctor.text.hostprogram import table

_QUOTES, (_, *_ROWS) = table(__file__, "line.txt")
"""With these words vLLM's engine reports the error of a worker, which it does not name."""
_DATED, _AMERICAN, _LEVEL, _VLLM, _REQUEST, _RAY, _TAG = (
    re.compile(row.partition(": ")[2].replace("@DATED@", DATED)) for row in _ROWS
)
_AHEAD = 120
"""A Python logger writes the level within this number of characters."""


def writer_of(text: str, layout: PrefixLayout, clock: Clock) -> LineFacts:
    """Only the writer, from the launcher's prefix, and a logger's time: faster than `said_of`."""
    facts = LineFacts()
    strip(text, layout, clock, facts)
    _logged(text, facts, clock)
    if facts.headed:
        _tagged(text, facts, facts.start)
    return facts


def _logged(text: str, facts: LineFacts, clock: Clock) -> None:
    found = _DATED.match(text, facts.start) or _AMERICAN.match(text, facts.start)
    if found:
        facts.at, facts.zoned = clock.at(found)
        facts.headed = True
        facts.start = found.end()


def _record(text: str, facts: LineFacts, clock: Clock) -> None:
    """The header of vLLM, which stands before each line of a message, or of Ray's programs in C++."""
    found = _VLLM.match(text, facts.start) or _RAY.match(text, facts.start)
    if not found:
        return
    facts.level, facts.headed, facts.record = level_of(found["level"]), True, True
    of_request = _REQUEST.search(found[0]) and "EngineDead" not in text
    if facts.level == "ERROR" and (found.re is _RAY or of_request):
        facts.level = "WARN"  # Ray and the server go on after it
    facts.at, facts.zoned = clock.at(found)
    if found.re is _RAY and facts.pid is None and not found["daemon"]:  # it tells of others
        facts.pid, facts.shared = int(found["pid"]), True
    facts.start = found.end()


@lru_cache(1000)
def said_of(text: str, layout: PrefixLayout, clock: Clock) -> LineFacts:
    """What a line says of itself. It is remembered, as neighbours ask again: who changes it makes a copy."""
    facts = LineFacts()
    strip(text, layout, clock, facts)
    if not text[facts.start :].strip():
        return facts
    if any(map(text.__contains__, _QUOTES)):
        facts.pid = facts.host = facts.rank = None
    _record(text, facts, clock)
    of_record = facts.level
    if system(text, facts, clock) or ascend(text, facts, clock) or torch(text, facts, clock):
        facts.level = of_record if facts.record else facts.level
        return facts
    _logged(text, facts, clock)
    if facts.headed:
        _tagged(text, facts, facts.start)
    level = _LEVEL.search(text, max(0, facts.start - 1), facts.start + _AHEAD)
    if level:
        facts.level = level_of(level[1])
        facts.headed = True
        _tagged(text, facts, level.end() + 1)
    return facts


def _tagged(text: str, facts: LineFacts, at: int) -> None:
    """The tag of a rank behind the time or the level of a logger."""
    tag = _TAG.match(text, at) or _TAG.match(text, at + 1)
    if tag and facts.rank is None:
        facts.rank, facts.start = int(tag["rank"] or tag["column"] or tag["tensor"]), tag.end()

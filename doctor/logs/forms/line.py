"""Reads one line on its own: its form, level, time and writer."""

from __future__ import annotations

import re

from doctor.logs.forms.ascend import ascend
from doctor.logs.forms.line_facts import LineFacts, level_of
from doctor.logs.forms.prefix import PrefixLayout, strip
from doctor.logs.forms.system import system
from doctor.logs.forms.times import DATED, Clock
from doctor.logs.forms.torch import torch

_DATED = re.compile(rf"[\s\[(|<]{{0,3}}{DATED}")
_AMERICAN = re.compile(
    r"[\s\[(]{0,3}(?P<month>\d\d)/(?P<day>\d\d)/(?P<year>\d{4})[ ,]{1,2}"
    r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:[.,](?P<part>\d{1,9}))?"
)
_LEVEL = re.compile(r"(?:^|[\s\[|(:,-])(ERROR|FATAL|CRITICAL|WARNING|WARN|INFO|DEBUG)(?=[\]\s|):,-]|$)")
_AHEAD = 120
"""A Python logger writes the level within this number of characters."""


def writer_of(text: str, layout: PrefixLayout, clock: Clock) -> LineFacts:
    """Only the writer, from the launcher's prefix, and a logger's time: faster than `said_of`."""
    said = LineFacts()
    strip(text, layout, clock, said)
    _logged(text, said, clock)
    return said


def _logged(text: str, said: LineFacts, clock: Clock) -> None:
    found = _DATED.match(text, said.start) or _AMERICAN.match(text, said.start)
    if found:
        said.at, said.zoned = clock.at(found)
        said.headed = True
        said.start = found.end()


def said_of(text: str, layout: PrefixLayout, clock: Clock) -> LineFacts:
    said = LineFacts()
    strip(text, layout, clock, said)
    if not text[said.start :].strip():
        return said
    if system(text, said, clock) or ascend(text, said, clock) or torch(text, said, clock):
        return said
    _logged(text, said, clock)
    level = _LEVEL.search(text, said.start, said.start + _AHEAD)
    if level:
        said.level = level_of(level[1])
        said.headed = True
    return said

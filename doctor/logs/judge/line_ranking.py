"""Orders the lines that complain and that no symptom knows: the most telling line first.

An exception that nobody caught tells more than an error that was logged, a last line more than an early one,
and a line that occurs once more than one that is repeated. A line that only passes on that something else
failed tells little.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from doctor.logs.judge.case import LogCase
from doctor.logs.model import CUT, Form, LogLine, Party
from doctor.text.hostprogram import table

NEAR_END = 30
"""This number of last lines counts as the end of a file."""
MOST = 600
"""The most characters of a line that are weighed."""
_PASSES_ON = re.compile("|".join(table(__file__, "line_ranking.txt")[0]), re.IGNORECASE)
"""What launchers and wrappers write about the failure of something else."""
_EXCEPTION = re.compile(
    r"(?:^|[\s\])>|:])(?:\w{1,60}\.){0,9}\w{0,60}(?:Error|Exception|Interrupt)(?:: |$| \()"
)
_NAMES = re.compile(r"\b(?:local_)?rank\W{0,3}\d|\bpid\W{0,3}\d|\bprocess \d", re.IGNORECASE)
_VALUE = re.compile(r"\d+")


class TellingLine(NamedTuple):
    who: Party
    line: LogLine
    score: int
    why: tuple[str, ...]
    """What is special about it, as clauses: "it is an exception"."""


def ranked(case: LogCase) -> list[TellingLine]:
    kinds = Counter(_kind(line) for _, line in case.odd)
    lines = {file.name: file.lines for file in case.logs.files}
    found = [
        _weighed(who, line, kinds[_kind(line)] == 1, lines[line.file] - line.number <= NEAR_END)
        for who, line in case.odd
    ]
    moments = [case.clocks.at(each.line) for each in found]
    if None not in moments:  # some are rounded to seconds
        found = [found[n] for n in sorted(range(len(found)), key=lambda n: int(moments[n] or 0))]
    return sorted(found, key=lambda each: -each.score)


def _weighed(who: Party, line: LogLine, alone: bool, last: bool) -> TellingLine:
    merits = [*_merits(line, alone, last)]
    score = sum(points for points, _ in merits) - (8 if _PASSES_ON.search(line.text[:MOST]) else 0)
    return TellingLine(who, line, score, tuple(words for _, words in merits))


def _merits(line: LogLine, alone: bool, last: bool) -> Iterator[tuple[int, str]]:
    if line.form is Form.PYTHON and CUT in line.text:  # with a frame, it at least shows where
        yield (0 if line.text.endswith(")") else -3), "the end of the log cuts this traceback off"
    elif _EXCEPTION.search(line.text[:MOST]):
        yield 4, "it is an exception"
    if _NAMES.search(line.text[:MOST]):
        yield 1, "it names a rank or a process"
    if last:
        yield 2, "it is among the last lines of its file"
    if line.times == 1 and alone:
        yield 1, "there is only one such line"


def _kind(line: LogLine) -> str:
    return _VALUE.sub("0", line.text[:160])

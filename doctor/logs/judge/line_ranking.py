"""Orders the lines that complain and that no symptom knows: the most telling line first.

An exception that nobody caught tells more than an error that was logged, a last line more than an early one,
and a line that occurs once more than one that is repeated. A line that only passes on that something else
failed tells little.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from doctor.logs.judge.case import LogCase
from doctor.logs.model import Form, LogLine, Party

NEAR_END = 30
"""This number of last lines counts as the end of a file."""
SOON = 60.0
"""If no other file has a line more than this number of seconds later, the others fell silent."""
MOST = 600
"""The most characters of a line that are weighed."""
CUT = "the log ends here"
_PASSES_ON = re.compile(
    r"\bchild(?:ren)?\b|sub-?process|background process|\bsee (?:the |above|stack|log)|root cause|\babove\b"
    r"|exception thrown from|user python code failed|user defined python|exit (?:status|code)|exitcode"
    r"|failed to start|\bkilling\b|sigquit|sigterm|received signal|has died|died unexpectedly"
    r"|worker .{0,40}failed"
    r"|^(?:killed|terminated|aborted)\s*$|/(?:launch|run|launcher|subprocess|runpy|api)\.py:\d",
    re.IGNORECASE,
)
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
    view = _Odd(case)
    found = [view.weighed(who, line) for who, line in case.odd]
    moments = {id(each): case.clocks.at(each.line) for each in found}
    if None not in moments.values():
        found.sort(key=lambda each: moments[id(each)] or 0.0)
    return sorted(found, key=lambda each: -each.score)


class _Odd:
    """All odd lines of a case, to compare one with the others."""

    def __init__(self, case: LogCase) -> None:
        files = case.logs.files
        self._case = case
        self._kinds = Counter(_kind(line) for _, line in case.odd)
        self._lines = {file.name: file.lines for file in files}
        ends = [(case.clocks.at(file.last), file.name) for file in files if file.last]
        self._ends = sorted((at, name) for at, name in ends if at is not None)
        several = len({name for _, name in self._ends}) > 1
        self._timed = several and len(self._ends) == len(ends)

    def weighed(self, who: Party, line: LogLine) -> TellingLine:
        merits = [*self._merits(line)]
        score = sum(points for points, _ in merits) - (5 if _PASSES_ON.search(line.text[:MOST]) else 0)
        return TellingLine(who, line, score, tuple(words for _, words in merits))

    def _merits(self, line: LogLine) -> Iterator[tuple[int, str]]:
        if line.form is Form.PYTHON and CUT in line.text:  # with a frame, it at least shows where
            yield (0 if line.text.endswith(")") else -3), "the end of the log cuts this traceback off"
        elif _EXCEPTION.search(line.text[:MOST]):
            yield 4, "it is an exception"
        if _NAMES.search(line.text[:MOST]):
            yield 1, "it names a rank or a process"
        if self._lines.get(line.file, 0) - line.number <= NEAR_END:
            yield 2, "it is among the last lines of its file"
        if line.times == 1 and self._kinds[_kind(line)] == 1:
            yield 1, "there is only one such line"
        if self._silenced(line):
            yield 1, f"no other file has a line more than {SOON:.0f} s later"

    def _silenced(self, line: LogLine) -> bool:
        """Whether the other files end soon after the line."""
        at = self._case.clocks.at(line)
        if at is None or not self._timed:
            return False
        first, last = (next(each for each, name in some if name != line.file) for some in self._both_ways)
        return at <= first and last <= at + SOON

    @property
    def _both_ways(self) -> tuple[Iterable[tuple[float, str]], Iterable[tuple[float, str]]]:
        return self._ends, reversed(self._ends)


def _kind(line: LogLine) -> str:
    return _VALUE.sub("0", line.text[:160])

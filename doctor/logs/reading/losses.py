"""Reads the losses of one file, window by window; a sentence that occurs often has a pattern."""

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from typing import Any

from doctor.logs.forms import complaint
from doctor.logs.forms.line import writer_of
from doctor.logs.forms.line_facts import LineFacts
from doctor.logs.forms.prefix import PrefixLayout
from doctor.logs.forms.times import Clock
from doctor.logs.loss.collect import LossCollector, party_of
from doctor.logs.loss.lines import read_line
from doctor.logs.loss.names import find_loss
from doctor.logs.loss.pattern import LossPattern, LossRun, pattern_of
from doctor.logs.loss.tables import Header
from doctor.logs.model import Party
from doctor.logs.reading.lines import Lines
from doctor.logs.reading.sentences import LOSS
from doctor.logs.reading.window import LONGEST

FEW = 50
"""Fewer lines of one sentence are not worth a pattern."""
MOST_TRIES = 200
"""The most patterns that are made for one file; a file that needs more is too varied."""
TRIED = 8
"""The most lines of a sentence in a window from which a pattern is tried to be made."""
MOST_OTHERS = 10_000
MOST_KNOWN = 10_000
_DIGITS = bytes.maketrans(b"0123456789", b"0" * 10)
Runs = defaultdict[Party, list[LossRun]]


class Losses:
    def __init__(self, loss: LossCollector, layout: PrefixLayout, clock: Clock) -> None:
        self._loss, self._layout, self._clock = loss, layout, clock
        self._began = False
        self._patterns: dict[tuple[bytes, Header | None], LossPattern] = {}
        """The patterns of sentences, and of rows below the header of a table."""
        self._tries = 0
        self._writers: dict[tuple[LossPattern, tuple[bytes, ...]], LineFacts] = {}
        """Writers by the launcher's prefix, before and after a time in it."""
        self._times: dict[bytes, float | None] = {}
        """Times by their text: the ranks of a job print many lines in one second."""
        self._others: set[bytes] = set()
        """Lines, without their digits, that mention a loss but do not print one."""

    def take(self, lines: Lines) -> set[int]:
        """The indices of the lines that print a loss. The header of a table may be in the first window."""
        table, self._began = self._loss.header is not None or not self._began, True
        told = lines.of(LOSS)
        header = None if told else self._loss.header  # another header would mention a loss
        found: Runs = defaultdict(list)
        printed: set[int] = set()
        rest: list[int] = []
        for words, places in (lines.of_all() if table else told).items():
            pattern = self._pattern(words, lines.at(places), header)
            others = self._read_alike(pattern, lines, places, found) if pattern else places
            printed.update(places)
            rest += others
        printed.difference_update(rest)
        printed.update(place for place in sorted(rest) if self._read_alone(lines, place, found))
        for who, runs in sorted(found.items(), key=lambda each: min(run.lines[0] for run in each[1])):
            self._loss.add(who, runs)
        return printed

    def _pattern(self, words: bytes, raw: Sequence[bytes], header: Header | None) -> LossPattern | None:
        """The pattern of a sentence. Another one is made if it does not match the first of many lines."""
        known = self._patterns.get((words, header))
        if len(raw) < FEW or self._tries >= MOST_TRIES or (known and known.read(raw[:1])[0]):
            return known
        for line in raw[:: len(raw) // TRIED]:
            facts, read = self._writer(line), header.read if header else read_line
            made = pattern_of(_text(line), read, facts.prefix, facts.stamp, timed=facts.at is not None)
            if made and b"\r" not in line.strip(b"\r") and not _RAISED.search(line):
                self._tries += 1
                self._patterns[words, header] = made
                return made
        return known

    def _read_alike(
        self, pattern: LossPattern, lines: Lines, places: Sequence[int], found: Runs
    ) -> Sequence[int]:
        """Read the lines that the pattern matches; returns the indices of the others."""
        rest: list[int] = []
        alike: dict[tuple[bytes, ...], list[tuple[int, tuple[bytes, ...]]]] = defaultdict(list)
        for place, groups in zip(places, pattern.read(lines.at(places)), strict=True):
            if groups is None:
                rest.append(place)
            else:
                alike[groups[:2]].append((place, groups))
        for front, rows in alike.items():
            some, every = zip(*rows, strict=True)
            if (facts := self._writers.get((pattern, front))) is None:
                _keep_few(self._writers)
                facts = self._writers[pattern, front] = self._writer(lines.raw[some[0]])
            at = (
                partial(self._at, lines, some, _time_of(lines.raw[some[0]], facts))
                if pattern.timed
                else _never
            )
            run = pattern.run(at, [lines.window.number + place for place in some], every)
            found[party_of(run.like, facts.party)].append(run)
        return rest

    def _read_alone(self, lines: Lines, place: int, found: Runs) -> bool:
        """Read one line; whether it prints a loss."""
        raw = lines.raw[place]
        known = self._loss.header is None and _key(raw) in self._others
        if known or not self._loss.wants(raw) or _RAISED.search(raw):
            return False
        text = _text(raw)
        facts = self._writer(raw)
        every = self._loss.read(text)
        for said in every:
            run = LossRun(said, lambda _: facts.at, [lines.number(place)])
            found[party_of(said, facts.party)].append(run)
        plain = not (every or self._loss.header or b"{" in raw or b"\r" in raw)
        if plain and len(self._others) < MOST_OTHERS and find_loss(text) is None:
            self._others.add(_key(raw))
        return any(said.name for said in every)

    def _at(self, lines: Lines, places: Sequence[int], time: slice, number: int) -> float | None:
        raw = lines.raw[places[number]]
        text = raw[time]
        if text not in self._times:
            _keep_few(self._times)
            self._times[text] = self._writer(raw).at
        return self._times[text]

    def _writer(self, raw: bytes) -> LineFacts:
        return writer_of(_text(raw), self._layout, self._clock)


def _time_of(raw: bytes, facts: LineFacts) -> slice:
    """Where the time stands in lines like this one; the whole line if that is not known."""
    begin = facts.stamp[0] if facts.stamp[1] else facts.prefix
    known = begin < facts.start and raw[: facts.start].isascii() and not raw.startswith(b"\r")
    return slice(begin, facts.start) if known else slice(None)


def _keep_few(known: dict[Any, Any]) -> None:
    if len(known) >= MOST_KNOWN:
        known.clear()


def _never(_: int) -> None:
    """The time of a line that has none."""


_RAISED = re.compile(rb"(?:Error|Exception)(?:: |\()")
"""An exception says that a loss is NaN, but prints none."""


def _key(raw: bytes) -> bytes:
    """A line without its digits; Megatron's counts of steps without a loss stay 0 or not."""
    return complaint.like(raw) if b"elapsed time per iteration" in raw else raw.translate(_DIGITS)


def _text(raw: bytes) -> str:
    """The text of a line; a progress bar begins its lines with \\r."""
    return raw[:LONGEST].strip(b"\r").decode("utf-8", "replace")

"""Finds the last line of each rank in which a step or an epoch advances.

A progress bar prints its last state again when the interpreter ends: that is not an advance.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from doctor.logs.forms.line_facts import LineFacts, Parse
from doctor.logs.model import Form, LogLine
from doctor.logs.reading.fold import UnresolvedParty, who_of
from doctor.logs.reading.lines import Lines
from doctor.logs.reading.sentences import STEP
from doctor.logs.reading.window import states
from doctor.logs.reading.writers import Writers
from doctor.logs.sentence import sentence
from doctor.logs.steps import Value, counted, says_step

_STAMP = re.compile(rb"\d{4}-\d\d-\d\d[T ][\d:.,]{8,18}Z? ")
"""A time in front of a line; it does not identify the writer."""
_SHORT = 20
_BACK = 64
"""The most lines of each writer that are examined to find the first line with its last step."""
ENOUGH = 3
"""Advances that prove that a writer went on after an exception: when it ends, each of its bars may print a
step that it had not shown before, and other ranks make one more step.
"""
IN_VAIN = 40
"""The most lines of one sentence that are examined in vain before the sentence is given up."""
MOST = 4096
"""The most ranks of one file."""


class Count(NamedTuple):
    """Identifies a counter of steps: values of the same writer and label can be compared."""

    who: UnresolvedParty
    label: str
    """The words before the number, and the total: each progress bar counts for itself."""


class Advance(NamedTuple):
    """The first line that prints a value."""

    value: Value
    number: int
    text: str


class PartProgress:
    """The progress in one part of a file. Each window is searched from its end, until the last advance of
    each of its writers is found.
    """

    def __init__(self, said: Parse) -> None:
        self._said = said
        self._last: dict[UnresolvedParty, list[Advance]] = {}
        """The last advances of each writer, the last one first."""
        self._reached: dict[Count, Value] = {}
        """The values at the end of the window before."""
        self._heads: dict[bytes, tuple[int, int]] = {}
        """Sentence -> the last character of the launcher's prefix in it, and how often the prefix has it."""
        self._writers: dict[bytes, UnresolvedParty] = {}
        """Writers by the prefix of their lines, or by the sentence if there is none."""
        self._vain: Counter[bytes] = Counter()
        """Sentence -> how many of its lines since the last hit did not name a step."""

    def take(self, lines: Lines, writers: Writers) -> None:
        groups = {words: places for words, places in lines.of(STEP).items() if self._vain[words] < IN_VAIN}
        for places, many in writers.parted(groups) if groups else ():
            self._look(lines, places, many)
        if len(self._vain) > MOST:
            self._vain.clear()

    def _look(self, lines: Lines, places: Sequence[int], many: int) -> None:
        seen: set[UnresolvedParty] = set()
        found: dict[UnresolvedParty, list[Advance]] = defaultdict(list)
        done = 0
        newest: dict[Count, Value] = {}
        firsts: dict[Count, Advance] = {}
        vain = back = 0
        more = False  # some lines have no rank in front, so the number of their writers is unknown
        for place in reversed(places):
            words, raw = lines.sentences[place], lines.raw[place]
            who = self._writers.get(self._head(words, raw) or words)
            vain += 1
            back += len(seen) >= many
            if (who is None or len(found.get(who, ())) < ENOUGH) and self._vain[words] < IN_VAIN:
                texts = [*islice(filter(says_step, reversed(states(raw))), ENOUGH + 1)]
                who = self._writer(words, raw, texts, who)
                self._vain[words] = 0 if who is not None else self._vain[words] + 1
                if who is not None and who not in seen:
                    vain = 0
                    seen.add(who)
                    more = more or (who.rank is None and who != UnresolvedParty())
                for text in texts:
                    if who is None:
                        break
                    label, value = counted(text)
                    count = Count(who, label)
                    newest.setdefault(count, value)
                    later = firsts.get(count)
                    if later and value < later.value:
                        found[who].append(later)
                        done += len(found[who]) == ENOUGH
                    firsts[count] = Advance(value, lines.number(place), text)
            if (done >= many or back >= many * _BACK) and (not more or vain >= IN_VAIN):
                break
        for count, first in firsts.items():
            before = self._reached.get(count)
            if len(found[count.who]) < ENOUGH and (before is None or before < first.value):
                found[count.who].append(first)
        for who, advances in found.items():
            if advances and (who in self._last or len(self._last) < MOST):
                every = [*advances, *self._last.get(who, ())]
                self._last[who] = sorted(every, key=lambda each: -each.number)[:ENOUGH]
        if len(self._reached) > MOST:
            self._reached.clear()
        self._reached.update(newest)

    def begin_part(self) -> None:
        """The next lines belong to another part of the file; what was reached stays known."""
        self._last.clear()

    def _writer(
        self, words: bytes, raw: bytes, texts: Sequence[str], who: UnresolvedParty | None
    ) -> UnresolvedParty | None:
        """The writer of a line; None if it does not name a step. `who` is the writer if already known."""
        if not texts:
            return None
        if who is not None:
            return who
        text = texts[0]
        own = self._said(text)
        if own.level in ("ERROR", "FATAL", "WARN") or own.form not in (Form.PLAIN, Form.MINDSPORE):
            return None
        who = who_of(own)
        tagged = own.form is not Form.PLAIN or "[rank" in text[own.prefix : own.start]
        self._remember(words, raw, text[: own.start if tagged else own.prefix], who)
        return who

    def lines(self, made: Callable[[int, str, LineFacts], LogLine]) -> dict[UnresolvedParty, LogLine]:
        return {who: self._line(advances, made) for who, advances in self._last.items()}

    def _line(self, advances: list[Advance], made: Callable[[int, str, LineFacts], LogLine]) -> LogLine:
        last = made(advances[0].number, advances[0].text, self._said(advances[0].text))
        return replace(last, since=advances[-1].number if len(advances) == ENOUGH else 0)

    def _head(self, words: bytes, raw: bytes) -> bytes:
        """The prefix of the line, up to the last character that the launcher wrote, without a time."""
        last, times = self._heads.get(words, (0, 0))
        at = -1
        for _ in range(times):
            at = raw.find(last, at + 1)
        return raw[: at + 1] if at < _SHORT else _STAMP.sub(b"", raw[: at + 1])

    def _remember(self, words: bytes, raw: bytes, front: str, who: UnresolvedParty) -> None:
        if b"\r" in raw or not raw.startswith(front.encode()):
            return  # several states, or odd bytes
        if len(self._writers) >= MOST:
            self._writers.clear()
        length = len(sentence(front.encode()))
        self._heads[words] = (
            (words[length - 1], words.count(words[length - 1], 0, length)) if length else (0, 0)
        )
        self._writers[self._head(words, raw) or words] = who

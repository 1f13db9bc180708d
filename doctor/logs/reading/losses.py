"""Offers the lines of one file that print a loss, in order; those of a known shape are taken many at once."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from doctor.logs.forms import complaint
from doctor.logs.forms.line import writer_of
from doctor.logs.forms.line_facts import LineFacts
from doctor.logs.forms.prefix import PrefixLayout
from doctor.logs.forms.times import Clock
from doctor.logs.loss.collect import LossCollector
from doctor.logs.loss.lines import read_without_loss
from doctor.logs.loss.names import find_loss
from doctor.logs.loss.shapes import Front
from doctor.logs.reading.lines import Lines
from doctor.logs.reading.sentences import LOSS
from doctor.logs.reading.window import LONGEST

FEW = 4
"""If fewer lines have the sentence of a new shape, they are not looked through again."""
MOST_OTHERS = 10_000
_DIGITS = bytes.maketrans(b"0123456789", b"0" * 10)


@dataclass(slots=True)
class LossPlaces:
    """The lines of a window that print a loss."""

    sentences: set[bytes] = field(default_factory=set)
    """Sentences of which all lines do."""
    places: set[int] = field(default_factory=set)
    """The indices of other lines that do."""

    def take_back(self, gone: Collection[int], lines: Lines, groups: Mapping[bytes, Sequence[int]]) -> None:
        for words in {lines.sentences[place] for place in gone} & self.sentences:
            self.sentences.remove(words)
            self.places.update(groups[words])
        self.places.difference_update(gone)


class Losses:
    def __init__(self, loss: LossCollector, layout: PrefixLayout, clock: Clock) -> None:
        self._loss, self._layout, self._clock = loss, layout, clock
        self._began = False
        self._others: set[bytes] = set()
        """Lines, without their digits, that mention a loss but do not print one."""

    def take(self, lines: Lines) -> LossPlaces:
        """The lines that print a loss. The header of a table may be in the first window."""
        loss = self._loss
        loss.begin(lines.window.number, lambda place: self._writer(lines.raw[place]).at)
        table, self._began = loss.headers > 0 or not self._began, True
        groups = lines.of_all() if table else lines.of(LOSS)
        found, rest = LossPlaces(), list[int]()
        for words, places in groups.items():
            taken = self._take_known(lines, places)
            if len(taken) == len(places):
                found.sentences.add(words)
            else:
                found.places.update(taken)
                rest += {*places}.difference(taken)
        rest.sort(reverse=True)
        while rest:
            place = rest.pop()
            raw = lines.raw[place]
            if place in found.places or not loss.wants(raw) or self._is_other(raw) or _RAISED.search(raw):
                continue
            words = lines.sentences[place]
            known, headers = loss.shapes(words), loss.headers
            if self._read(lines, place):
                found.places.add(place)
            if loss.headers > headers:  # rows below it have other columns
                gone = loss.take_back(place)
                found.take_back(gone, lines, groups)
                rest = sorted({*rest, *gone}, reverse=True)
            if len(groups[words]) >= FEW and loss.shapes(words) > known:
                more = [other for other in groups[words] if other > place and other not in found.places]
                found.places.update(self._take_known(lines, more))
        loss.settle()
        return found

    def _take_known(self, lines: Lines, places: Sequence[int]) -> Sequence[int]:
        """The indices of the lines of one sentence that have a known shape."""
        if not places or not self._loss.shapes(words := lines.sentences[places[0]]):
            return ()
        return self._loss.take(words, lines.at(places), places)

    def _read(self, lines: Lines, place: int) -> bool:
        raw = lines.raw[place]
        text = _text(raw)
        facts = self._writer(raw)
        front = Front(facts.prefix, facts.stamp, facts.at is not None)
        if self._loss.offer(text, lines.number(place), facts.party, facts.at, front):
            return True
        plain = not (self._loss.headers or b"{" in raw or b"\r" in raw)
        few = plain and len(self._others) < MOST_OTHERS
        if few and find_loss(text) is None and read_without_loss(text) is None:
            self._others.add(_key(raw))
        return False

    def _is_other(self, raw: bytes) -> bool:
        return not self._loss.headers and _key(raw) in self._others

    def _writer(self, raw: bytes) -> LineFacts:
        return writer_of(_text(raw), self._layout, self._clock)


_RAISED = re.compile(rb"(?:Error|Exception): ")
"""An exception says that a loss is NaN, but prints none."""


def _key(raw: bytes) -> bytes:
    """A line without its digits; Megatron's counts of steps without a loss stay 0 or not."""
    return complaint.like(raw) if b"elapsed time per iteration" in raw else raw.translate(_DIGITS)


def _text(raw: bytes) -> str:
    """The text of a line; a progress bar begins its lines with \\r."""
    return raw[:LONGEST].strip(b"\r").decode("utf-8", "replace")

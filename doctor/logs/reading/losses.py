"""The lines of a window that print a loss, offered in their order: most of them many at once."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from operator import attrgetter

from doctor.logs.forms.line import writer_of
from doctor.logs.forms.prefix import Layout
from doctor.logs.forms.times import Clock
from doctor.logs.loss.rows import Row, between
from doctor.logs.reading.scanned import Collecting
from doctor.logs.reading.window import LONGEST, Window


def offer(loss: Collecting, raw: bytes, number: int, layout: Layout, clock: Clock) -> bool:
    """Whether the line is one of a loss."""
    text = raw[:LONGEST].decode("utf-8", "replace")
    said = writer_of(text, layout, clock)
    return loss.offer(text, number, said.party, said.at, said.prefix)


class Losses:
    """The rows of a window: lines that are like losses before."""

    def __init__(self, loss: Collecting | None, window: Window, layout: Layout, clock: Clock) -> None:
        self._loss, self._window, self._layout, self._clock = loss, window, layout, clock
        self._rows = loss.rows(window.data, window.start, window.end, window.number) if loss else []
        self._done = 0
        self.starts = {row.start for row in self._rows}

    def between(self) -> Iterator[tuple[int, int]]:
        """Stretches of lines that are none."""
        return between(self._rows, self._window.start, self._window.end)

    def offer(self, end: int) -> None:
        """All before that place which were not offered yet."""
        until = bisect_left(self._rows, end, self._done, key=attrgetter("start"))
        rows = self._rows[self._done : until]
        self._done = until
        if rows and self._loss:
            self._loss.offer_rows(rows, self._read, self._at)

    def end(self) -> None:
        self.offer(self._window.end)
        if self._loss:
            self._loss.settle()

    def _read(self, row: Row) -> None:
        if self._loss:
            offer(self._loss, row.raw, row.number, self._layout, self._clock)

    def _at(self, raw: bytes) -> float | None:
        return writer_of(raw.decode("utf-8", "replace"), self._layout, self._clock).at

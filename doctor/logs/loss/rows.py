"""Lines of known shapes, found in a whole piece of a log at once: most logs of a training are little else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from math import isfinite
from typing import NamedTuple

from doctor.logs.loss.shapes import Shape


class Row(NamedTuple):
    """One line, from `start` to `end`, without its line end."""

    start: int
    end: int
    number: int
    loss: float
    found: re.Match[bytes]
    shape: Shape

    @property
    def raw(self) -> bytes:
        return self.found[0]


def find_rows(shapes: Iterable[Shape], data: bytes, start: int, end: int, number: int) -> list[Row]:
    """In their order; a line of two shapes is of the first. As `Shape.read` has it, no loss is whole."""
    found: dict[int, tuple[re.Match[bytes], float, Shape]] = {}
    for shape in shapes:
        for each in shape.lines.finditer(data, start, end):
            loss = float(each[shape.at_loss])
            if not loss.is_integer() and isfinite(loss):
                found.setdefault(each.start(), (each, loss, shape))
    rows = []
    for at in sorted(found):
        each, loss, shape = found[at]
        number += data.count(b"\n", start, at)
        rows.append(Row(at, each.end(), number, loss, each, shape))
        start = at
    return rows


def between(rows: Sequence[Row], start: int, end: int) -> Iterator[tuple[int, int]]:
    """The whole lines that are no rows, as stretches."""
    for row in rows:
        if row.start > start:
            yield start, row.start
        start = row.end + 1
    if start < end:
        yield start, end


class Columns(NamedTuple):
    """What rows say. None of an epoch or a time that they do not tell."""

    steps: list[int]
    losses: list[float]
    epochs: set[int]
    took: list[float | None]


def columns(rows: Sequence[Row]) -> Columns | None:
    """None where one of the rows must be read by itself, as `Shape.read` has it."""
    took = [row.shape.seconds(row.found) for row in rows]
    if not all(each is None or 0 < each < 1e7 for each in took):
        return None
    steps = [int(row.found[row.shape.at_step]) for row in rows if row.shape.at_step]
    epochs = {int(row.found[row.shape.at_epoch].partition(b".")[0]) for row in rows if row.shape.at_epoch}
    return Columns(steps, [row.loss for row in rows], epochs, took)

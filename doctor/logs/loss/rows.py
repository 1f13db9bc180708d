"""Lines that print a loss, stored column by column, so that many are handled at once."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from operator import itemgetter, lt
from struct import Struct
from typing import Any

from doctor.logs.loss.lines import LossValues

Column = Sequence[Any]


MOST_LAYOUTS = 2000
"""The most remembered layouts of a shape."""


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    lines: re.Pattern[bytes]
    """Matches a whole line. Its first two groups are the launcher's prefix before and after a time in it."""
    like: LossValues
    """The values of the line that it was made from."""
    at_loss: int
    """The group of the loss; the groups below are 0 if the line does not have the value."""
    at_step: int
    at_of: int
    at_epoch: int
    timed: bool
    """Whether the line states when it was written."""
    _layouts: dict[bytes, Struct | None] = field(default_factory=dict)

    def layout(self, form: bytes) -> Struct | None:
        """Where the groups are in lines that have digits at the same places as `form`; None if these lines
        do not have this shape.
        """
        if form not in self._layouts:
            if len(self._layouts) >= MOST_LAYOUTS:
                self._layouts.clear()
            self._layouts[form] = _layout(self.lines, form)
        return self._layouts[form]


def _layout(pattern: re.Pattern[bytes], form: bytes) -> Struct | None:
    begin = len(form) - len(form.lstrip(b"\r"))
    found = pattern.fullmatch(form, begin, len(form.rstrip(b"\r")))
    if found is None:
        return None
    fields = ""
    at = 0
    for start, end in found.regs[1:]:
        fields += f"{start - at}x{end - start}s"
        at = end
    return Struct(f"{fields}{len(form) - at}x")


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one writer. A column is empty if none of them has the value."""

    places: Sequence[int]
    shapes: Sequence[Shape]
    losses: Sequence[float]
    steps: Sequence[int] = ()
    of: Sequence[int] = ()
    epochs: Sequence[int] = ()

    def __len__(self) -> int:
        return len(self.places)

    def part(self, begin: int, end: int) -> Rows:
        return self if end - begin == len(self) else Rows(*(column[begin:end] for column in self.columns()))

    def some(self, numbers: Sequence[int]) -> Rows:
        """These rows, in this order."""
        if len(numbers) < 2:
            return Rows(
                *([column[number] for number in numbers] if column else () for column in self.columns())
            )
        get = itemgetter(*numbers)
        return Rows(*(get(column) if column else () for column in self.columns()))

    def without(self, numbers: Sequence[int]) -> Rows:
        """All rows but these; the numbers must be in ascending order."""
        return Rows(*(without(column, numbers) if column else () for column in self.columns()))

    def before(self, place: int | None, begin: int) -> int:
        """The number of the first row from `begin` on that is not before `place`."""
        return len(self) if place is None else bisect_left(self.places, place, begin)

    def said(self) -> Iterator[LossValues]:
        """The values of each row as a single line."""
        for number, shape in enumerate(self.shapes):
            columns: tuple[Column, ...] = (self.steps, self.of, self.epochs)
            step, of, epoch = (column[number] if column else None for column in columns)
            yield LossValues(
                shape.like.form, shape.like.name, self.losses[number], step, of, epoch, shape.like.part
            )

    def columns(self) -> tuple[Column, ...]:
        return self.places, self.shapes, self.losses, self.steps, self.of, self.epochs


def without(column: Sequence[Any], numbers: Sequence[int]) -> list[Any]:
    left = [*column]
    for number in reversed(numbers):
        del left[number]
    return left


def by_front(fronts: Sequence[bytes], rows: Rows) -> Iterator[tuple[bytes, Rows]]:
    """The rows of each writer in the order of their places, with the launcher's prefix."""
    of: defaultdict[bytes, list[int]] = defaultdict(list)
    if fronts.count(fronts[0]) == len(fronts):
        of[fronts[0]] = [*range(len(fronts))]
    else:
        for number, front in enumerate(fronts):
            of[front].append(number)
    sorted_already = all(map(lt, rows.places, rows.places[1:]))
    for front, numbers in of.items():
        if not sorted_already:
            numbers.sort(key=rows.places.__getitem__)
        yield front, rows if sorted_already and len(of) == 1 else rows.some(numbers)


def joined(several: Sequence[Rows]) -> Iterator[Rows]:
    """All rows in the order of their places, in runs of rows with the same columns."""
    if len(several) == 1:
        yield several[0]
        return
    alike: defaultdict[tuple[bool, ...], list[Rows]] = defaultdict(list)
    for rows in several:
        alike[tuple(map(bool, rows.columns()))].append(rows)
    kinds = [_together(some) for some in alike.values()]
    order = sorted(
        (place, kind, number) for kind, rows in enumerate(kinds) for number, place in enumerate(rows.places)
    )
    for kind, run in groupby(order, key=itemgetter(1)):
        yield kinds[kind].some([number for _, _, number in run])


def _together(some: Sequence[Rows]) -> Rows:
    return Rows(
        *([*chain.from_iterable(column)] for column in zip(*(rows.columns() for rows in some), strict=True))
    )

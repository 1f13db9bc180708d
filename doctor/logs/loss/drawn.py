"""Which curves a picture shows, and on which axes: the same for the terminal and for HTML."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, log
from statistics import fmean

from doctor.logs.loss.judge import SPIKING, same, since_of
from doctor.logs.loss.shape import LARGEST
from doctor.logs.model import Charge, Curve

MOST_CURVES = 8
FEW = 4
"""Losses with which nothing is wrong and that are not drawn: a line between two points tells nothing."""
STEEP = 40.0
"""Times: beyond that a straight axis would show one loss and a line at the bottom."""


@dataclass(frozen=True, slots=True)
class DrawnCurve:
    curve: Curve
    name: str
    guilty: bool
    since: int | None = None
    """The place of the guilty step."""


@dataclass(frozen=True, slots=True)
class Drawing:
    curves: tuple[DrawnCurve, ...]
    """The guilty ones last, so that they are drawn over the others."""
    first: int
    last: int
    bottom: float
    top: float
    steep: bool
    """The axis is of logarithms."""
    left_out: int
    mark: int | None
    """The guilty step."""
    peaks: bool
    """Single losses count, not their means."""

    def height(self, loss: float) -> float:
        """0 at the bottom of the axis, 1 at its top; what is beyond stands at the edge."""
        loss = min(max(loss, self.bottom), self.top)
        if self.steep:
            return log(loss / self.bottom) / log(self.top / self.bottom)
        return (loss - self.bottom) / (self.top - self.bottom)

    def at(self, share: float) -> float:
        """The loss at a height."""
        if self.steep:
            return float(self.bottom * (self.top / self.bottom) ** share)
        return self.bottom + share * (self.top - self.bottom)

    def across(self, step: int) -> float:
        """0 at the first step, 1 at the last."""
        return (step - self.first) / max(self.last - self.first, 1)


def drawing(curves: Sequence[Curve], charges: Sequence[Charge]) -> Drawing | None:
    """None where there is nothing to see: few losses that are numbers, and nothing is wrong with them."""
    last: dict[object, Curve] = {}
    for curve in curves:
        if curve.steps:
            last[curve.who.rank if curve.who.rank is not None else (curve.file, curve.who)] = curve
    shown = [_drawn(curve, charges, curves) for curve in last.values()]
    shown.sort(key=lambda each: (not each.guilty, each.curve.who.rank or 0))
    left_out, shown = len(shown) - MOST_CURVES, shown[:MOST_CURVES]
    values = [loss for each in shown for loss in each.curve.losses if isfinite(loss) and abs(loss) < LARGEST]
    if len(values) < (2 if any(each.guilty for each in shown) else FEW):
        return None
    bottom, top, steep = _axis(values)
    marks = [each.curve.steps[each.since] for each in shown if each.since is not None]
    return Drawing(
        tuple(reversed(shown)),
        min(each.curve.steps[0] for each in shown),
        max(each.curve.steps[-1] for each in shown),
        bottom,
        top,
        steep,
        max(left_out, 0),
        min(marks, default=None),
        any(charge.symptom == SPIKING for charge in charges),
    )


def _drawn(curve: Curve, charges: Sequence[Charge], curves: Sequence[Curve]) -> DrawnCurve:
    name = (
        f"rank {curve.who.rank}"
        if curve.who.rank is not None
        else curve.file.rpartition("/")[2] or curve.file
    )
    mine = [charge for charge in charges if any(same(curve.who, who) for who in charge.who)]
    places = (since_of(charge, curve, curves) for charge in mine)
    since = next((place for place in places if place is not None), None)
    return DrawnCurve(curve, name, any((charge.symptom or "").startswith("loss-") for charge in mine), since)


def _axis(values: Sequence[float]) -> tuple[float, float, bool]:
    low, top = min(values), max(values)
    if low > 0 and top > STEEP * sorted(values)[len(values) // 4]:
        return max(low, top * 1e-6), top, True
    bottom = 0.0 if 0 <= low < 0.6 * top else low
    if top <= bottom:
        bottom, top = bottom - abs(bottom) * 0.1 - 1e-9, top + abs(top) * 0.1 + 1e-9
    return bottom, top, False


def columns(drawing: Drawing, each: DrawnCurve, room: int) -> tuple[list[float | None], list[bool]]:
    """A loss for each column, and whether a loss there is no number."""
    found: list[list[float]] = [[] for _ in range(room)]
    lost = [False] * room
    for step, loss in zip(each.curve.steps, each.curve.losses, strict=True):
        column = min(room - 1, max(0, round(drawing.across(step) * (room - 1))))
        if isfinite(loss) and abs(loss) < LARGEST:
            found[column].append(loss)
        else:
            lost[column] = True
    pick = max if drawing.peaks else fmean
    values = [pick(losses) if losses else None for losses in found]
    return _joined(values, lost), lost


def _joined(values: Sequence[float | None], lost: Sequence[bool]) -> list[float | None]:
    """On the straight line between two neighbours, where few losses are drawn wide."""
    joined = list(values)
    known = [place for place, value in enumerate(values) if value is not None]
    for here, there in itertools.pairwise(known):
        begin, end = values[here], values[there]
        if begin is None or end is None or any(lost[here:there]):
            continue
        for place in range(here + 1, there):
            joined[place] = begin + (end - begin) * (place - here) / (there - here)
    return joined

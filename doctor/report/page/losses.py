"""A drawing of losses, whatever draws it: its lines and its axes. Rates by size are drawn alike."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from math import log
from statistics import fmean

LARGEST = 1e100
"""Larger values do not count as numbers, so that sums stay finite."""
STEEP = 40.0
"""Ratio above which the axis is logarithmic: a linear one would show one loss and a line at the bottom."""


class LossRole(Enum):
    PLAIN = "plain"
    GUILTY = "guilty"
    HEALTHY = "healthy"
    """The curve of a healthy run."""
    LEAST = "least"
    """The least possible loss."""


@dataclass(frozen=True, slots=True)
class LossLine:
    name: str
    steps: Sequence[int]
    losses: Sequence[float]
    role: LossRole = LossRole.PLAIN

    @property
    def known(self) -> list[float]:
        return [loss for loss in self.losses if is_number(loss)]


@dataclass(frozen=True, slots=True)
class LossAxes:
    first: int
    last: int
    bottom: float
    top: float
    steep: bool
    """Whether the vertical axis is logarithmic."""

    def height(self, loss: float) -> float:
        """0 at the bottom, 1 at the top; losses beyond are drawn at the edge."""
        loss = min(max(loss, self.bottom), self.top)
        if self.steep:
            return log(loss / self.bottom) / log(self.top / self.bottom)
        return (loss - self.bottom) / (self.top - self.bottom)

    def label(self, height: float) -> str:
        """The loss at a height, in seven characters at most."""
        loss = self.bottom + height * (self.top - self.bottom)
        if self.steep:
            loss = self.bottom * (self.top / self.bottom) ** height
        short = f"{loss:.3g}"
        return short if len(short) < 8 else f"{loss:.0e}"

    def across(self, step: int) -> float:
        """0 at the first step, 1 at the last."""
        return (step - self.first) / max(self.last - self.first, 1)

    def ticks(self, most: int) -> list[int]:
        """The labelled steps: the first, the last, and round ones between them."""
        sizes = (size * 10**power for power in range(19) for size in (1, 2, 5))
        stride = next((each for each in sizes if (self.last - self.first) / each <= most), 10**19)
        inner = range((self.first // stride + 1) * stride, self.last, stride)
        apart = (step for step in inner if min(step - self.first, self.last - step) > stride / 2)
        return list(dict.fromkeys((self.first, *apart, self.last)))


@dataclass(frozen=True, slots=True)
class LossDrawing:
    lines: tuple[LossLine, ...]
    """The lines on top come last."""
    axes: LossAxes
    says: str
    """The drawing in words."""
    judged: str = ""
    """Whether the loss is good, in words."""
    is_good: bool | None = None
    """None: it cannot be decided."""
    mark: int | None = None
    """The guilty step."""
    left_out: int = 0
    """The number of lines that are not drawn."""
    id: str = "losses"
    title: str = "Losses"
    across: str = "step"
    """What the horizontal axis counts."""
    tick: Callable[[int], str] = "{:,}".format
    """A step as a label of this axis."""

    def columns(self, line: LossLine, room: int) -> tuple[list[float | None], list[bool]]:
        """The loss of each column, and whether one of its losses is not a number."""
        found: list[list[float]] = [[] for _ in range(room)]
        lost = [False] * room
        for step, loss in zip(line.steps, line.losses, strict=True):
            column = min(room - 1, max(0, round(self.axes.across(step) * (room - 1))))
            if is_number(loss):
                found[column].append(loss)
            else:
                lost[column] = True
        return _interpolated([fmean(losses) if losses else None for losses in found], lost), lost


def is_number(loss: float) -> bool:
    return abs(loss) < LARGEST  # false for NaN


def axes(lines: Sequence[LossLine]) -> LossAxes:
    """The axes for these lines, at least one of which has a number."""
    values = sorted(loss for line in lines for loss in line.known)
    low, top = values[0], values[-1]
    steep = low > 0 and top > STEEP * values[len(values) // 4]
    bottom = max(low, top * 1e-6) if steep else 0.0 if 0 <= low < 0.6 * top else low
    if top <= bottom:
        bottom, top = bottom - abs(bottom) * 0.1 - 1e-9, top + abs(top) * 0.1 + 1e-9
    first, last = min(line.steps[0] for line in lines), max(line.steps[-1] for line in lines)
    return LossAxes(first, last, bottom, top, steep)


def _interpolated(values: Sequence[float | None], lost: Sequence[bool]) -> list[float | None]:
    """The values with gaps filled by straight lines, for few losses on a wide drawing."""
    joined = list(values)
    known = [place for place, value in enumerate(values) if value is not None]
    for here, there in itertools.pairwise(known):
        begin, end = values[here], values[there]
        if begin is None or end is None or any(lost[here:there]):
            continue
        for place in range(here + 1, there):
            joined[place] = begin + (end - begin) * (place - here) / (there - here)
    return joined

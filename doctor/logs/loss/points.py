"""The points of one curve, thinned if they become too many."""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any

from doctor.logs.model import Curve, Party

MOST_POINTS = 4000
_NEVER = float("-inf")
_UNKNOWN = array("d", [_NEVER])
At = Callable[[int], float | None]
"""Gives the time at which a line was written, by its index."""


class Points:
    """Keeps every n-th loss, the first, the last, and each at which losses cease or begin to be finite."""

    def __init__(self, most: int = MOST_POINTS) -> None:
        self._most = max(most, 16)
        self._every = 1
        self._steps, self._losses = array("q"), array("d")
        self._at, self._lines = array("d"), array("q")
        self._kept = array("b")
        """1 if the point must stay."""
        self._numbers = array("q")
        self._all: tuple[array[Any], ...] = (
            *(self._steps, self._losses, self._lines, self._at, self._kept, self._numbers),
        )
        self.total = 0

    @property
    def last_step(self) -> int:
        return self._steps[-1] if self._steps else -1

    @property
    def last_loss(self) -> float:
        return self._losses[-1] if self._losses else 0.0

    def add(self, step: int, loss: float, at: Callable[[], float | None], line: int) -> None:
        """Add a point. The same step again changes nothing, unless the loss is now NaN or infinite."""
        if self.total and step == self.last_step:
            if isfinite(self._losses[-1]) and not isfinite(loss):
                self._losses[-1], self._lines[-1] = loss, line
                self._kept[-1] = 1
            return
        turned = self.total == 0 or isfinite(self._losses[-1]) != isfinite(loss)
        self._drop_passing()
        for part, value in zip(self._all, (step, loss, line, _time(at()), turned, self.total), strict=True):
            part.append(value)
        self.total += 1
        self._thin()

    def extend(self, steps: Sequence[int], losses: Sequence[float], lines: Sequence[int], at: At) -> None:
        """Like `add` for each. Steps must grow; all losses must be finite, and the last one so far."""
        self._drop_passing()
        begin = self.total
        stay = slice(-begin % self._every, None, self._every)
        numbers = range(begin, begin + len(steps))[stay]
        self._steps.extend(steps[stay])
        self._losses.extend(losses[stay])
        self._lines.extend(lines[stay])
        self._at.extend(_UNKNOWN * len(numbers))
        self._kept.frombytes(bytes(len(numbers)))
        self._numbers.extend(numbers)
        self.total += len(steps)
        self._thin()
        for place in range(bisect_left(self._numbers, begin), len(self._numbers)):
            self._at[place] = _time(at(self._numbers[place] - begin))

    def _drop_passing(self) -> None:
        """The last point is always kept; it is dropped when the next one comes, unless it must stay."""
        if self.total and not self._kept[-1] and self._numbers[-1] % self._every:
            for part in self._all:
                part.pop()

    def curve(self) -> Curve:
        """The curve, without its file and party."""
        timed = self._at.count(_NEVER) < len(self._at)
        return Curve(
            file="",
            who=Party(),
            steps=tuple(self._steps),
            losses=tuple(self._losses),
            seconds=tuple(None if each == _NEVER else each for each in self._at) if timed else (),
            lines=tuple(self._lines),
            total=self.total,
        )

    def _thin(self) -> None:
        while len(self._steps) > self._most:
            self._every *= 2
            end = len(self._steps) - 1
            forced = sum(self._kept) > self._most // 2
            stay = [
                place
                for place, number in enumerate(self._numbers)
                if number % self._every == 0 or place in (0, end) or (self._kept[place] and not forced)
            ]
            for part in self._all:
                part[:] = array(part.typecode, [part[place] for place in stay])
            if forced:
                self._kept[:] = array("b", bytes(len(self._steps)))


def _time(at: float | None) -> float:
    return _NEVER if at is None else at

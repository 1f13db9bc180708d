"""The points of one curve, thinned if they become too many."""

from array import array
from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any

from doctor.logs.model import Curve, Party

MOST_POINTS = 4000
_NEVER = float("-inf")
_UNKNOWN = array("d", [_NEVER])
At = Callable[[int], float | None]
"""Gives the time at which a row was written, by its index."""


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

    def add(self, step: int, loss: float, at: float | None, line: int) -> None:
        """Add a point. The same step again changes nothing, unless the loss is now NaN or infinite."""
        if self.total and step == self.last_step:
            if isfinite(self._losses[-1]) and not isfinite(loss):
                self._losses[-1], self._lines[-1] = loss, line
                self._kept[-1] = 1
            return
        turned = self.total == 0 or isfinite(self._losses[-1]) != isfinite(loss)
        # The last point is always kept; it is dropped when the next one comes, unless it must stay.
        if self.total > 1 and not self._kept[-1] and self._numbers[-1] % self._every:
            self._steps[-1], self._losses[-1], self._lines[-1] = step, loss, line
            self._at[-1] = _NEVER if at is None else at
            self._kept[-1], self._numbers[-1] = turned, self.total
            self.total += 1
            return
        self._steps.append(step)
        self._losses.append(loss)
        self._at.append(_NEVER if at is None else at)
        self._lines.append(line)
        self._kept.append(turned)
        self._numbers.append(self.total)
        self.total += 1
        if len(self._steps) > self._most:
            self._thin()

    def add_all(
        self,
        steps: Sequence[int],
        losses: Sequence[float],
        lines: Sequence[int],
        at: At | None,
    ) -> None:
        """Like `add` for each. Steps must grow, and all losses must be finite, including the last one so far.

        `at` is called only for points that stay; without it, no time is known.
        """
        place, end = 0, len(steps)
        while place < end:
            if self._numbers[-1] % self._every and not self._kept[-1]:
                for part in self._all:
                    part.pop()
            first = place + -self.total % self._every
            stay = range(first, end, self._every)[: self._most + 1 - len(self._steps)]
            if len(stay) + len(self._steps) <= self._most and (not stay or stay[-1] < end - 1):
                self._extend(stay, place, steps, losses, lines, at)
                stay = range(end - 1, end)
            self._extend(stay, place, steps, losses, lines, at)
            self.total += stay[-1] + 1 - place
            place = stay[-1] + 1
            if len(self._steps) > self._most:
                self._thin()

    def _extend(
        self,
        places: range,
        first: int,
        steps: Sequence[int],
        losses: Sequence[float],
        lines: Sequence[int],
        at: At | None,
    ) -> None:
        """Append the points at these indices. `first` is the index of the point whose number is `total`."""
        here = slice(places.start, places.stop, places.step)
        self._steps.extend(steps[here])
        self._losses.extend(losses[here])
        self._lines.extend(lines[here])
        self._at.extend(
            [_NEVER if (each := at(place)) is None else each for place in places]
            if at
            else _UNKNOWN * len(places)
        )
        self._kept.frombytes(bytes(len(places)))
        number = self.total - first
        self._numbers.extend(range(number + places.start, number + places.stop, places.step))

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
            if self._numbers[end - 1] * 2 == (end - 1) * self._every and not any(self._kept[1:]):
                self._keep_every_other(end)
                continue
            stay = [
                place
                for place, number in enumerate(self._numbers)
                if number % self._every == 0 or place in (0, end) or (self._kept[place] and not forced)
            ]
            for part in self._all:
                part[:] = array(part.typecode, [part[place] for place in stay])
            if forced:
                self._kept[:] = array("b", bytes(len(self._steps)))

    def _keep_every_other(self, end: int) -> None:
        """Thin points of which none must stay. Those before the last one are at equal distances."""
        for part in self._all:
            part[:] = part[::2] if end % 2 == 0 else part[::2] + part[end:]

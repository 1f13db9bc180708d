"""The points of one curve, thinned as they become many."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from math import isfinite

from doctor.logs.model import Curve, LossForm, Party

MOST_POINTS = 4000
_NEVER = float("-inf")
Rest = tuple[float | None, float | None, int]


class Points:
    """Keeps every n-th loss, the first, the last, and each where numbers turn into no numbers or back."""

    def __init__(self, most: int = MOST_POINTS) -> None:
        self._most = max(most, 16)
        self._every = 1
        self._steps, self._losses = array("q"), array("d")
        self._at, self._took, self._lines = array("d"), array("d"), array("q")
        self._kept = array("b")
        """1 where a point must stay."""
        self._numbers = array("q")
        self.total = 0

    @property
    def last_step(self) -> int:
        return self._steps[-1] if self._steps else -1

    @property
    def last_loss(self) -> float:
        return self._losses[-1] if self._losses else 0.0

    def add(self, step: int, loss: float, at: float | None, took: float | None, line: int) -> None:
        """The same step again says nothing new, unless it is no number now."""
        if self.total and step == self.last_step:
            if isfinite(self._losses[-1]) and not isfinite(loss):
                self._losses[-1], self._lines[-1] = loss, line
                self._kept[-1] = 1
            return
        turned = self.total == 0 or isfinite(self._losses[-1]) != isfinite(loss)
        # The last point is always there; it goes when the next comes, if it is not one of those to keep.
        if self.total > 1 and not self._kept[-1] and self._numbers[-1] % self._every:
            self._steps[-1], self._losses[-1], self._lines[-1] = step, loss, line
            self._at[-1] = _NEVER if at is None else at
            self._took[-1] = _NEVER if took is None else took
            self._kept[-1], self._numbers[-1] = turned, self.total
            self.total += 1
            return
        self._steps.append(step)
        self._losses.append(loss)
        self._at.append(_NEVER if at is None else at)
        self._took.append(_NEVER if took is None else took)
        self._lines.append(line)
        self._kept.append(turned)
        self._numbers.append(self.total)
        self.total += 1
        if len(self._steps) > self._most:
            self._thin()

    def add_all(self, steps: Sequence[int], losses: Sequence[float], rest: Callable[[int], Rest]) -> None:
        """Like `add` of each, where steps grow, and all losses are numbers as the last one was.

        `rest` of a place says when it was, what it took and its line: it is asked only for what stays.
        """
        place, last = 0, len(steps) - 1
        while place <= last:
            over = min(-self.total % self._every, last - place)
            self.total += over
            place += over
            self.add(steps[place], losses[place], *rest(place))
            place += 1

    def took_last(self, seconds: float) -> None:
        if self.total:
            self._took[-1] = seconds

    def curve(self) -> Curve:
        """Without who printed it."""
        timed = sum(each != _NEVER for each in self._took) * 2 > len(self._took)
        seconds = self._took if timed else self._at
        known = tuple(None if each == _NEVER else each for each in seconds)
        return Curve(
            file="",
            who=Party(),
            form=LossForm.PLAIN,
            steps=tuple(self._steps),
            losses=tuple(self._losses),
            seconds=known if any(each is not None for each in known) else (),
            step_time=timed,
            lines=tuple(self._lines),
            total=self.total,
        )

    def _thin(self) -> None:
        end = len(self._steps) - 1
        while len(self._steps) > self._most:
            self._every *= 2
            forced = sum(self._kept) > self._most // 2
            stay = [
                place
                for place, number in enumerate(self._numbers)
                if number % self._every == 0 or place in (0, end) or (self._kept[place] and not forced)
            ]
            for whole in (self._steps, self._lines, self._kept, self._numbers):
                whole[:] = array(whole.typecode, [whole[place] for place in stay])
            for part in (self._losses, self._at, self._took):
                part[:] = array(part.typecode, [part[place] for place in stay])
            end = len(self._steps) - 1
            if forced:
                self._kept = array("b", bytes(len(self._steps)))

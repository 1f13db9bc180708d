"""Follows one kind of loss of one party, over new epochs and other starts of the job."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite
from operator import lt

from doctor.logs.loss.lines import LossValues
from doctor.logs.loss.points import At, Points
from doctor.logs.loss.rows import Column, Rows, joined
from doctor.logs.model import LossForm

MOST_STARTS = 12
SURE = 3
"""If at least this number of losses follow a step that falls back, the job was started again."""
MOST_BACK = 64


@dataclass(slots=True, eq=False)
class Track:
    form: LossForm
    most: int
    runs: list[Points] = field(default_factory=list)
    counted: bool = False
    offset: int = 0
    last: int = 0
    """The last step, as printed."""
    epoch: int | None = None
    whole: bool = False
    """Whether each loss is that of a whole epoch, although a step is printed."""
    began: int | None = None
    """The first epoch that was printed."""
    back: list[tuple[LossValues, float | None, int]] = field(default_factory=list)
    """Losses whose steps fell back, kept until it is clear whether the job was started again."""
    line: int = 0
    """The line number of the last loss."""
    _waiting: list[Rows] = field(default_factory=list)
    _ready: int = 0
    """How many rows of `_waiting[0]` have been added already."""

    def add(self, said: LossValues, at: float | None, line: int) -> None:
        self.line = line
        if not self.runs:
            self.runs.append(Points(self.most))
            self.counted = said.step is None and (said.epoch is None or said.part)
        points = self.runs[-1]
        raw = said.step if said.step is not None else None if said.part else said.epoch
        again = said.step is None and points.total > 0 and raw == points.last_step
        if again and not self.counted and said.loss != points.last_loss:
            self.counted = True  # several losses per epoch, and no steps
        if self.counted or raw is None:
            points.add(max(points.total, points.last_step) + 1, said.loss, at, line)
            return
        older = said.epoch is not None and self.epoch is not None and said.epoch < self.epoch
        if not older:
            self._turn_over(said, raw)
        step = self.offset + raw
        if points.total and (older or step < points.last_step):
            self._fall_back(said, at, line)
            return
        self.back.clear()  # they were lines of ranks without a prefix, a little out of order
        self.epoch = said.epoch if said.epoch is not None else self.epoch
        self.began = self.epoch if self.began is None else self.began
        self.last = raw
        points.add(step, said.loss, at, line)

    def _turn_over(self, said: LossValues, raw: int) -> None:
        """Raise the offset if a new epoch begins, in which steps count from the start again."""
        if said.step is None or not self.runs[-1].total:
            return
        if raw == self.last == said.of and self.runs[-1].total == 1:
            self.whole = True  # Keras prints only the end of each epoch
        on = said.epoch is not None and self.epoch is not None and not said.part and said.epoch > self.epoch
        end = said.epoch is None and said.of and raw < self.last and 10 * self.last >= 9 * said.of
        if (on and raw <= self.last) or end or (self.whole and raw == self.last == said.of):
            self.offset += said.of if said.of and self.last <= said.of else self.last
            self.back.clear()

    def _fall_back(self, said: LossValues, at: float | None, line: int) -> None:
        if self.back and _place(said) < _place(self.back[-1][0]):
            self.back.clear()
        self.back.append((said, at, line))
        if len({_place(each) for each, _, _ in self.back}) >= SURE:
            self.start_again()
        elif len(self.back) > MOST_BACK:
            del self.back[1:]

    def start_again(self) -> None:
        if len(self.runs) == MOST_STARTS:
            del self.runs[1]
        back, self.back = self.back, []
        self.runs.append(Points(self.most))
        first = back[0][0]
        epochs = (first.epoch or 0) - (self.began or 0)
        self.offset = epochs * first.of if first.of and first.step is not None and epochs > 0 else 0
        self.last, self.epoch, self.whole = 0, None, False
        for said, at, line in back:
            self.add(said, at, line)

    def wait(self, rows: Rows) -> None:
        """Keep rows of this window, which are added once the lines before them have been read."""
        if self._ready:
            self._waiting[0] = self._waiting[0].part(self._ready, len(self._waiting[0]))
            self._ready = 0
        self._waiting.append(rows)

    def settle(self, first: int, at: At, before: int | None = None) -> bool:
        """Add the waiting rows up to the place `before`; True if none is left. `first` is the number of the
        line at place 0.
        """
        if len(self._waiting) > 1:
            self._waiting = [*joined(self._waiting)]
        while self._waiting:
            rows = self._waiting[0]
            end = rows.before(before, self._ready)
            if end > self._ready:
                self._add_rows(rows.part(self._ready, end), first, at)
            self._ready = end
            if end < len(rows):
                return False
            del self._waiting[0]
            self._ready = 0
        return True

    def take_back(self, place: int, form: LossForm) -> list[int]:
        """Drop the waiting rows of that form after a place, and return their places."""
        gone: list[int] = []
        for number, rows in enumerate(self._waiting):
            if rows.shapes[0].like.form is form:
                end = rows.before(place, self._ready if number == 0 else 0)
                gone += rows.places[end:]
                self._waiting[number] = rows.part(0, end)
        self._waiting = [rows for rows in self._waiting if rows]
        return gone

    def _add_rows(self, rows: Rows, first: int, at: At) -> None:
        """Like `add` for each row: all at once if only steps and losses change."""
        told = self._all_new(rows)
        if not told:
            rows = self._without_repeats(rows)
            if not rows:
                self.back.clear()
                return
            told = self._all_new(rows)
        self.line = first + rows.places[-1]

        def written(row: int) -> float | None:
            return at(rows.places[row]) if rows.shapes[row].timed else None

        if told:
            timed = any(shape.timed for shape in set(rows.shapes))
            lines = [first + place for place in rows.places]
            self.runs[-1].add_all(told, rows.losses, lines, written if timed else None)
            return
        for number, said in enumerate(rows.said()):
            self.add(said, written(number), first + rows.places[number])

    def _without_repeats(self, rows: Rows) -> Rows:
        """The rows without repeated steps, as printed by several ranks without a prefix."""
        points = self.runs[-1]
        if self.counted or not points.total or not isfinite(points.last_loss):
            return rows
        unsaid: Column = [None] * len(rows)
        steps, epochs = rows.steps or unsaid, rows.epochs or unsaid
        places = [*zip(steps, epochs, strict=True)]
        known = self.last if points.last_step == self.offset + self.last else None
        before = [(known, self.epoch if epochs[0] is not None else None), *places]
        again = [number for number, place in enumerate(places) if place == before[number]]
        if not again or not rows.steps or (rows.of and any(rows.steps[row] == rows.of[row] for row in again)):
            return rows  # the last step of an epoch may be that of the next
        return rows.some([number for number, place in enumerate(places) if place != before[number]])

    def _all_new(self, rows: Rows) -> Sequence[int]:
        """The steps of the rows; empty if one of them may be a repetition or begin something new."""
        points = self.runs[-1]
        if not points.total or not isfinite(points.last_loss):
            return ()
        if self.counted:
            begin = max(points.total, points.last_step) + 1
            return range(begin, begin + len(rows))
        steps = rows.steps
        if not steps or not {*rows.epochs} <= {self.epoch, None}:
            return ()
        if not all(map(lt, (max(self.last, points.last_step - self.offset), *steps), steps)):
            return ()
        self.last = steps[-1]
        self.back.clear()
        return [self.offset + step for step in steps] if self.offset else steps

    @property
    def last_loss(self) -> float:
        return self.runs[-1].last_loss if self.runs else 0.0

    @property
    def total(self) -> int:
        return sum(points.total for points in self.runs)


def _place(said: LossValues) -> tuple[int, int]:
    return (said.epoch or 0, said.step or 0)

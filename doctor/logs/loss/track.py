"""Follows one kind of loss of one party, over new epochs and other starts of the job."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import isfinite
from operator import eq, le

from doctor.logs.loss.lines import LossValues
from doctor.logs.loss.pattern import LossRun
from doctor.logs.loss.points import Points
from doctor.logs.model import LossForm

MOST_STARTS = 12
SURE = 3
"""If at least this number of losses follow a step that falls back, the job was started again."""
MOST_BACK = 64
Time = Callable[[], float | None]


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

    def add(self, said: LossValues, at: Time, line: int) -> None:
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

    def _fall_back(self, said: LossValues, at: Time, line: int) -> None:
        if self.back and _place(said) < _place(self.back[-1][0]):
            self.back.clear()
        self.back.append((said, at(), line))
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
            self.add(said, known(at), line)

    def add_run(self, run: LossRun) -> None:
        """Like `add` for each line: all at once if only steps and losses change."""
        self._add(run, 0)
        rest: Sequence[int] = range(1, len(run.lines))
        if new := self._all_new(run, rest):
            points, inner, rest = self.runs[-1], new[:-1], new[-1:]
            following = max(points.total, points.last_step) + 1
            steps = [*range(following, following + len(inner))]
            if not self.counted:
                steps = [self.offset + run.steps[number] for number in inner]
            losses = [run.losses[number] for number in inner]
            lines = [run.lines[number] for number in inner]
            points.extend(steps, losses, lines, lambda place: run.at(inner[place]))
        for number in rest:
            self._add(run, number)
        self.line = run.lines[-1]

    def _all_new(self, run: LossRun, rest: Sequence[int]) -> Sequence[int]:
        """Those of the lines that make a point; none if something may begin anew in the run."""
        if self.back or not isfinite(self.last_loss):
            return ()
        if self.counted:
            return rest
        steps = run.steps
        grows = all(map(le, steps, steps[1:])) and len({*run.epochs}) <= 1
        if not steps or not grows or any(map(eq, steps, run.of)):  # the last step may be that of each epoch
            return ()
        return [number for number in rest if steps[number - 1] < steps[number]]

    def _add(self, run: LossRun, number: int) -> None:
        self.add(run.said(number), partial(run.at, number), run.lines[number])

    @property
    def last_loss(self) -> float:
        return self.runs[-1].last_loss if self.runs else 0.0

    @property
    def total(self) -> int:
        return sum(points.total for points in self.runs)


def known(at: float | None) -> Time:
    return lambda: at


def _place(said: LossValues) -> tuple[int, int]:
    return (said.epoch or 0, said.step or 0)

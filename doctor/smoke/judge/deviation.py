"""Whether a rank's page fits the rank's schedule, and if not, how it deviates.

A page shows one rank only, and a healthy rank's schedule is known in full. So this rank itself caused what
deviates: no fault of a peer can move it off its own schedule. A page is read only now and then, so it proves
too few or too many collectives up to some moment; what the rank reports of each step proves the step.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, groupby
from typing import Literal, NamedTuple

from doctor.smoke.events import TrainStep
from doctor.smoke.onhost.page import PHASES, about
from doctor.smoke.onhost.schedule import schedule
from doctor.smoke.onhost.shape import CellShape, CollectiveCall, ScheduledCall
from doctor.smoke.result import Sample

DeviationKind = Literal["skip", "extra", "order", "shape", "dtype", "op", "peer", "tag", "sent"]
_PARTS: tuple[tuple[str, DeviationKind], ...] = (
    *(("op", "op"), ("dtype", "dtype"), ("bytes", "shape"), ("end", "peer"), ("tag", "tag")),
)
"""The parts of a call, and the kind of deviation if one is another."""


@dataclass(frozen=True, slots=True)
class PageDeviation:
    """What a page shows, and the call that was due there; None after the end of the schedule."""

    kind: DeviationKind
    sample: Sample
    due: ScheduledCall | None


def entries_of(shape: CellShape, place: int) -> tuple[ScheduledCall, ...]:
    """All collectives of one rank. Cells of one form share them: there are many in a large run."""
    return _entries(shape._replace(seed=0), place)


@lru_cache(maxsize=1024)
def _entries(shape: CellShape, place: int) -> tuple[ScheduledCall, ...]:
    return tuple(schedule(shape, place))


def off_schedule(sample: Sample, shape: CellShape, place: int) -> PageDeviation | None:
    """How a page deviates; None if it does not, or if it was being written while it was read."""
    if sample.version % 2:
        return None
    entries = entries_of(shape, place)
    here = (PHASES.index(sample.phase), sample.step)
    last = entries[sample.position - 1] if 0 < sample.position <= len(entries) else None
    following = next(iter(entries[sample.position :]), None)
    if sample.position > len(entries):
        return PageDeviation("extra", sample, None)
    if last is not None:
        other = (sample.group, sample.seq) != (last.call.group, last.seq) or _changed(sample, last.call)
        if other or (sample.inside and here != _moment(last)):
            return PageDeviation(_kind(sample, last, entries), sample, last)
        if sample.about not in (-1, _about(shape._replace(seed=0), place)[last.position]):
            return PageDeviation("sent", sample, last)
    behind = last is not None and here < _moment(last)
    ahead = following is not None and here > _moment(following)
    return PageDeviation(_kind(sample, None, entries), sample, following) if behind or ahead else None


@lru_cache(maxsize=1024)
def _about(shape: CellShape, place: int) -> tuple[int, ...]:
    """What a page must hold of the roots, peers and tags of so many calls."""
    calls = (entry.call for entry in entries_of(shape, place))
    return tuple(accumulate((about(call.end, call.tag) for call in calls), initial=0))


class Lapse(NamedTuple):
    """The first training step in which a rank entered more or fewer of a group's collectives than `due`."""

    step: int
    group: str
    entered: int
    due: int


class StepCount(NamedTuple):
    """What a rank's reports of its training steps prove about the collectives that it entered."""

    right: int
    """The number of steps, from the first one on, with exactly the collectives that were due."""
    lapse: Lapse | None


def counted(steps: Iterable[TrainStep], shape: CellShape, place: int) -> StepCount:
    """Compare the reports with the schedule. Steps without counts, and all after them, prove nothing."""
    reports = {report.step: report for report in steps}
    before: Mapping[str, int] = _entered_before(shape, place)
    for step, due in enumerate(_entered_by_step(shape, place)):
        report = reports.get(step)
        if report is None or not report.entered:
            return StepCount(step, None)
        for group in sorted({*due, *report.entered}):
            if (entered := report.entered.get(group, 0)) != due.get(group, 0):
                start = before.get(group, 0)
                return StepCount(step, Lapse(step, group, entered - start, due.get(group, 0) - start))
        before = due
    return StepCount(shape.steps, None)


@lru_cache(maxsize=1024)
def _entered_before(shape: CellShape, place: int) -> Counter[str]:
    """Group -> collectives that are due before the first training step."""
    train = PHASES.index("train")
    return Counter(entry.call.group for entry in entries_of(shape, place) if _moment(entry) < (train, 0))


@lru_cache(maxsize=1024)
def _entered_by_step(shape: CellShape, place: int) -> tuple[Counter[str], ...]:
    """Group -> collectives that are due by the end of each training step."""
    mine = [entry for entry in entries_of(shape, place) if entry.phase == "train"]
    calls = {step: list(group) for step, group in groupby(mine, lambda entry: entry.call.step)}
    total = Counter(_entered_before(shape, place))
    found = []
    for step in range(shape.steps):
        total.update(entry.call.group for entry in calls.get(step, ()))
        found.append(Counter(total))
    return tuple(found)


@lru_cache(maxsize=1024)
def due_bytes(shape: CellShape, place: int) -> tuple[Counter[str], ...]:
    """For each training step, group -> the bytes of its calls that are due."""
    due: tuple[Counter[str], ...] = tuple(Counter() for _ in range(shape.steps))
    for entry in entries_of(shape, place):
        if entry.phase == "train":
            due[entry.call.step][entry.call.group] += entry.call.bytes
    return due


def _changed(sample: Sample, call: CollectiveCall) -> DeviationKind | None:
    """Which part of a call is not what was due. Older recordings have no root, peer and tag."""
    parts = _PARTS if min(sample.end, call.end) >= 0 else _PARTS[:3]
    return next((kind for part, kind in parts if getattr(sample, part) != getattr(call, part)), None)


def _moment(entry: ScheduledCall) -> tuple[int, int]:
    return PHASES.index(entry.phase), entry.call.step


def _kind(sample: Sample, due: ScheduledCall | None, entries: Sequence[ScheduledCall]) -> DeviationKind:
    if due is not None:
        call = due.call
        place = (call.group, due.seq, due.phase, call.step)
        if (sample.group, sample.seq, sample.phase, sample.step) == place:
            return _changed(sample, call) or "order"
    here = (PHASES.index(sample.phase), sample.step)
    past = [entry for entry in entries if _moment(entry) < here]
    now = [entry for entry in entries if _moment(entry) == here]
    if sample.inside and not any(entry.call.group == sample.group for entry in now):
        return "order"  # the schedule has no such call here at all
    # Too few or too many collectives by this step: counted first in the page's group, then in all others.
    for own, entered in ((True, sample.seq), (False, sample.position - sample.seq)):
        least = sum(own == (entry.call.group == sample.group) for entry in past)
        if entered > least + sum(own == (entry.call.group == sample.group) for entry in now):
            return "extra"
        if entered < least + (own and sample.inside):
            return "skip"
    return "order"

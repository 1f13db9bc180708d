"""Whether a rank's page fits the rank's schedule, and how it does not.

A page shows one rank only, and a healthy rank's schedule is known in full. So what is off here was done by
this rank: no fault of a peer can move it off its own schedule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from doctor.smoke.onhost.page import PHASES
from doctor.smoke.onhost.schedule import schedule
from doctor.smoke.onhost.shape import CellShape, CollectiveCall, ScheduledCall
from doctor.smoke.result import Sample

DeviationKind = Literal["skip", "extra", "order", "shape", "dtype", "op", "phase"]


@dataclass(frozen=True, slots=True)
class PageDeviation:
    """What a page shows, and the call that was due there; there is none behind the end of the schedule."""

    kind: DeviationKind
    sample: Sample
    due: ScheduledCall | None


@lru_cache(maxsize=1024)
def entries_of(shape: CellShape, place: int) -> tuple[ScheduledCall, ...]:
    return tuple(schedule(shape, place))


def off_schedule(sample: Sample, shape: CellShape, place: int) -> PageDeviation | None:
    """None when the page is what it must be, and when it was being written while it was read."""
    if sample.version % 2:
        return None
    entries = entries_of(shape, place)
    if sample.position > len(entries):
        return PageDeviation("extra", sample, None)
    if sample.position == 0:
        return None if _between(sample, None, next(iter(entries), None)) else _gone_on(sample, entries)
    due = entries[sample.position - 1]
    if _named(sample) != _name(due) or (sample.inside and (sample.phase, sample.step) != _when(due)):
        return PageDeviation(_kind(sample, due, entries), sample, due)
    if not sample.inside and not _between(sample, due, next(iter(entries[sample.position :]), None)):
        return _gone_on(sample, entries)
    return None


def _gone_on(sample: Sample, entries: Sequence[ScheduledCall]) -> PageDeviation:
    return PageDeviation("phase", sample, next(iter(entries[sample.position :]), None))


def _named(sample: Sample) -> tuple[str, int, str, str, int]:
    return sample.group, sample.seq, sample.op, sample.dtype, sample.bytes


def _name(entry: ScheduledCall) -> tuple[str, int, str, str, int]:
    call = entry.call
    return call.group, entry.seq, call.op, call.dtype, call.bytes


def _when(entry: ScheduledCall) -> tuple[str, int]:
    return entry.phase, entry.call.step


def _between(sample: Sample, last: ScheduledCall | None, following: ScheduledCall | None) -> bool:
    """Whether phase and step of a rank outside lie between those of its last call and of its next one."""
    here = PHASES.index(sample.phase)
    if last is not None:
        there = PHASES.index(last.phase)
        if here < there or (here == there and sample.step < last.call.step):
            return False
    if following is not None:
        there = PHASES.index(following.phase)
        if here > there or (here == there and sample.step > following.call.step):
            return False
    return True


def _kind(sample: Sample, due: ScheduledCall, entries: Sequence[ScheduledCall]) -> DeviationKind:
    if (sample.group, sample.seq, sample.phase, sample.step) == (due.call.group, due.seq, *_when(due)):
        if sample.op != due.call.op:
            return "op"
        return "dtype" if sample.dtype != due.call.dtype else "shape"
    meant = _nearest(sample, due.position, entries)
    if meant is None:
        return "order"
    if meant.position < due.position:
        return "extra"
    if meant.position == due.position + 1 and meant.phase == due.phase and _swappable(meant.call, due.call):
        return "order"
    return "skip"


def _swappable(one: CollectiveCall, other: CollectiveCall) -> bool:
    return one.step == other.step and one.group != other.group


def _nearest(sample: Sample, position: int, entries: Sequence[ScheduledCall]) -> ScheduledCall | None:
    """The entry of the schedule that the rank believes it is at."""
    shown = (sample.phase, sample.step, sample.group, sample.op, sample.dtype, sample.bytes)
    same = [entry for entry in entries if shown == (entry.phase, entry.call.step, *entry.call[1:5])]
    return min(same, key=lambda entry: abs(entry.position - position), default=None)

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
from doctor.smoke.onhost.shape import CellShape, ScheduledCall
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
    here = (PHASES.index(sample.phase), sample.step)
    shown = (sample.group, sample.seq, sample.op, sample.dtype, sample.bytes)
    last = entries[sample.position - 1] if sample.position else None
    if last is not None and (shown != _name(last) or (sample.inside and here != _moment(last))):
        return PageDeviation(_kind(sample, last, entries), sample, last)
    following = next(iter(entries[sample.position :]), None)
    behind = last is not None and here < _moment(last)
    ahead = following is not None and here > _moment(following)
    return PageDeviation("phase", sample, following) if behind or ahead else None


def _name(entry: ScheduledCall) -> tuple[str, int, str, str, int]:
    call = entry.call
    return call.group, entry.seq, call.op, call.dtype, call.bytes


def _moment(entry: ScheduledCall) -> tuple[int, int]:
    return PHASES.index(entry.phase), entry.call.step


def _kind(sample: Sample, due: ScheduledCall, entries: Sequence[ScheduledCall]) -> DeviationKind:
    call = due.call
    if (sample.group, sample.seq, sample.phase, sample.step) == (call.group, due.seq, due.phase, call.step):
        if sample.op != call.op:
            return "op"
        return "dtype" if sample.dtype != call.dtype else "shape"
    # The entry of the schedule that the rank believes it is at.
    shown = (sample.phase, sample.step, sample.group, sample.op, sample.dtype, sample.bytes)
    same = [entry for entry in entries if shown == (entry.phase, entry.call.step, *entry.call[1:5])]
    meant = min(same, key=lambda entry: abs(entry.position - due.position), default=None)
    if meant is None:
        return "order"
    if meant.position < due.position:
        return "extra"
    is_next = (meant.position, *_moment(meant)) == (due.position + 1, *_moment(due))
    return "order" if is_next and meant.call.group != call.group else "skip"

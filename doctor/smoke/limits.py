"""How long nothing may move before it counts as a hang. Adaptive: a slow cluster is not a hung one."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from doctor.agents.session import AgentPatience
from doctor.smoke.onhost.shape import ScheduledCall
from doctor.smoke.result import Sample, SmokePlan


@dataclass(frozen=True, slots=True)
class SmokePatience(AgentPatience):
    """Limits in seconds. `first` is for what is new to a rank, such as a collective of a new shape."""

    first: float
    floor: float = 1.0
    meet: float = 0.0
    """For ranks that are all meeting, if that takes longer than what is new: it shows no progress."""
    gaps: float = 20.0
    """A pause of up to this many times the longest one so far is not a hang."""
    imports: float = 60.0
    stopped: float = 0.3
    silent: float = 10.0
    """Seconds without a message until an agent counts as silent: as long as its own lease."""
    mute: float = 2.0
    """Seconds without a message, while the others stand still, until an agent is asked to look."""
    grace: float = 0.4
    """Seconds after the first exit, in which the last messages of the others may arrive."""
    again: float = 0.2
    """Seconds between two looks at the same pages."""
    hiccup: float = 2.0
    look: float = 2.0
    stop: float = field(default=10.0, kw_only=True)


PATIENCE = {
    "gloo": SmokePatience(15.0),
    "nccl": SmokePatience(180.0, look=8.0),  # its own watchers take their time to answer
    "hccl": SmokePatience(300.0, look=4.0),
    # A rank that computes alone compiles kernels; ranks met in 4 s, and in 31 s at a load of 22 on 2 cores.
    "mccl": SmokePatience(30.0, floor=15.0, meet=75.0, imports=120.0),
}
WHOLE = {"gloo": 120.0, "nccl": 600.0, "hccl": 900.0, "mccl": 300.0}
"""Seconds for the whole run, by default; several times as long if only few hosts may send at once."""
MEETING = ("join", 1)
"""The phase and the step of a rank that meets the others."""


def whole_limit(plan: SmokePlan) -> float:
    """The seconds for the whole run, if nobody said how many."""
    return WHOLE[plan.backend] * math.ceil(len(plan.hosts) / 2 / (plan.pairs_at_once or len(plan.hosts)))


def stall_limit(
    patience: SmokePatience, gap: float, seen: Iterable[tuple[Sample, Sequence[ScheduledCall]]]
) -> float:
    """The limit for a cell whose ranks `seen` shows; `gap` is the longest pause of its phase so far."""
    seen = list(seen)
    if all((sample.phase, sample.step) == MEETING for sample, _ in seen):
        return max(patience.first, patience.meet)
    if any(_first_time(sample, entries) for sample, entries in seen):
        return patience.first
    return min(max(patience.floor, patience.gaps * gap), patience.first)


def _first_time(sample: Sample, entries: Sequence[ScheduledCall]) -> bool:
    """Whether what the rank does, or must do next, is new to it: kernels may compile, files load."""
    if sample.phase in ("spawned", "start", "ready", "join") or (sample.phase, sample.step) == ("train", 0):
        return True
    position = sample.position - 1 if sample.inside else sample.position
    if not 0 <= position < len(entries):
        return True
    now, done = entries[position], entries[:position]
    if now.phase != sample.phase and not any(entry.phase == sample.phase for entry in done):
        return True
    return all(entry.call[1:5] != now.call[1:5] for entry in done)

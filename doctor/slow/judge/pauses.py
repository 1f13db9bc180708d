"""Pauses: one rank alone is outside for long, again and again, as when it saves a checkpoint.

Only this compares moments of several hosts. Their clocks are corrected by what they answered to pings.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from doctor.hang.judge.wires import Key
from doctor.slow.judge.series import Sampled

SHORTEST = 0.3
STEPS = 3.0
"""A pause is this many times longer than a step."""
TIMES = 2


@dataclass(frozen=True, slots=True)
class StepPauses:
    of: Key
    number: int
    seconds: float
    """How long each takes."""
    share: float
    """Of the time."""


def pauses(seen: Sampled, step: float | None) -> StepPauses | None:
    """The rank that makes all of the pauses, if it makes some."""
    least = max(SHORTEST, STEPS * (step or 0.0))
    found = [(who, length) for n in seen.rounds for who, length in _alone(seen, n) if length >= least]
    if len({who for who, _ in found}) != 1 or len(found) < TIMES:
        return None
    lengths = [length for _, length in found]
    return StepPauses(found[0][0], len(found), median(lengths), sum(lengths) / seen.seconds)


def _alone(seen: Sampled, number: int) -> Iterator[tuple[Key, float]]:
    """For how long one rank alone was outside, while all others were inside for long."""
    changes: list[tuple[float, int, Key]] = []
    first, last = -math.inf, math.inf
    """When all hosts looked: one that answers late may look later, too."""
    for of in seen.keys:
        host, one = seen.hosts[of[0]], seen.round(of[0], number)
        if host.ahead is None and len(seen.hosts) > 1:
            return
        began = one.began - (host.ahead or 0.0) if len(seen.hosts) > 1 else 0.0
        first, last = max(first, began), min(last, began + one.seconds)
        rank = next((each for each in one.ranks if each.pid == of[1]), None)
        for start, end, inside in rank.long if rank else ():
            if inside:
                changes += [(began + start, 1, of), (began + end, -1, of)]
    waiting: set[Key] = set()
    since = 0.0
    everybody = set(seen.keys)
    for at, change, of in sorted(changes):
        if len(waiting) == len(everybody) - 1:
            yield next(iter(everybody - waiting)), min(at, last) - max(since, first)
        (waiting.add if change > 0 else waiting.discard)(of)
        if len(waiting) == len(everybody) - 1:
            since = at

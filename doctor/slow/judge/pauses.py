"""Pauses: one rank alone is outside for long, again and again, as when it saves a checkpoint.

Only this compares moments of several hosts. Their clocks are corrected by what they answered to pings.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from doctor.live.wires import Key
from doctor.slow.judge.series import Sampled, is_pipeline

SHORTEST = 0.3
STEPS = 3.0
"""A pause is this many times longer than a step."""
TIMES = 2
CHANCE = 3
"""As many may all be of one rank by chance, if no line says why."""


@dataclass(frozen=True, slots=True)
class StepPauses:
    of: Key
    number: int
    seconds: float
    """How long each takes."""
    share: float
    """Of the time."""


def pauses(seen: Sampled, step: float | None) -> StepPauses | None:
    """The rank that makes all of the pauses, if it makes some. If it is not known how long a step takes, the
    others must have waited for as many other collectives, of which samples miss the short ones.
    """
    least = max(SHORTEST, STEPS * (step or 0.0))
    long = [each for n in seen.rounds for each in _alone(seen, n) if each[1] >= least]
    if len({of for of, _ in long}) != 1 or len(long) < TIMES:
        return None
    of, seconds = long[0][0], [each for _, each in long]
    entries = median(sum(each.entries for each in seen.ranks(other)) for other in seen.keys if other != of)
    if step is None and TIMES * len(long) > entries:
        return None
    return StepPauses(of, len(long), median(seconds), sum(seconds) / seen.seconds)


def _alone(seen: Sampled, number: int) -> Iterator[tuple[Key, float]]:
    """For how long one rank alone was outside, and all others were inside. Samples miss what is short."""
    sends = is_pipeline(seen)
    changes: list[tuple[float, int, Key]] = []
    outside: dict[Key, list[tuple[float, float]]] = {}
    first, last = -math.inf, math.inf
    """When all hosts looked: one that answers late may look later, too."""
    for of in seen.keys:
        host, one = seen.hosts[of[0]], seen.round(of[0], number)
        if host.ahead is None and len(seen.hosts) > 1:
            return
        began = one.began - (host.ahead or 0.0) if len(seen.hosts) > 1 else 0.0
        first, last = max(first, began), min(last, began + one.seconds)
        rank = next((each for each in one.ranks if each.pid == of[1]), None)
        long = () if rank is None else rank.long_waits if sends else rank.long
        outside[of] = [(began + start, began + end) for start, end, waits in long if not waits]
        for start, end, waits in long:
            if waits:
                changes += [(began + start, 1, of), (began + end, -1, of)]
    waiting: set[Key] = set()
    since = 0.0
    everybody = set(seen.keys)
    for at, change, of in sorted(changes):
        if len(waiting) == len(everybody) - 1:
            (who,) = everybody - waiting
            spans = [min(at, last, end) - max(since, first, start) for start, end in outside[who]]
            yield who, max((0.0, *spans))
        (waiting.add if change > 0 else waiting.discard)(of)
        if len(waiting) == len(everybody) - 1:
            since = at

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
"""As many short ones may all be of one rank by chance, if it is not known how long a step takes."""
EDGE = 0.1
"""Seconds from the edge of a round in which it is not seen when a stretch began or ended."""


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
    alone = [each for n in seen.rounds for each in _alone(seen, n)]
    long = [each for each in alone if each.seconds >= least]
    if len({each.of for each in long}) != 1 or len(long) < TIMES:
        return None
    of = long[0].of
    entries = median(sum(each.entries for each in seen.ranks(other)) for other in seen.keys if other != of)
    if step is None and TIMES * len(long) > entries:
        return None
    usual = (seen.seconds - sum(each.seconds for each in long)) / max(1.0, entries)
    own = [each.seconds for each in alone if each.of == of]
    if step is None and len(own) <= CHANCE and median(own) < STEPS * usual:
        return None
    whole = [each.seconds for each in long if not each.cut] or [each.seconds for each in long]
    lost = sum(each.seconds for each in alone if each.of == of and (each.cut or each.seconds >= least))
    return StepPauses(of, len(long), median(whole), lost / seen.seconds)


@dataclass(frozen=True, slots=True)
class _Alone:
    of: Key
    seconds: float
    cut: bool
    """Whether it had begun before the round, or went on after it."""


def _alone(seen: Sampled, number: int) -> Iterator[_Alone]:
    """For how long one rank alone was outside, while all others were inside for long."""
    sends = is_pipeline(seen)
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
        long = () if rank is None else rank.long_waits if sends else rank.long
        for start, end, waits in long:
            if waits:
                changes += [(began + start, 1, of), (began + end, -1, of)]
    waiting: set[Key] = set()
    since = 0.0
    everybody = set(seen.keys)
    for at, change, of in sorted(changes):
        if len(waiting) == len(everybody) - 1:
            length = min(at, last) - max(since, first)
            cut = at >= last - EDGE or since <= first + EDGE
            yield _Alone(next(iter(everybody - waiting)), length, cut)
        (waiting.add if change > 0 else waiting.discard)(of)
        if len(waiting) == len(everybody) - 1:
            since = at

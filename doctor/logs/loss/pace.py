"""Finds the step since which steps take longer, by medians, so that pauses for checkpoints do not count."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, quantiles

from doctor.logs.model import Curve

FEWEST = 30
"""The least number of steps before it, and after it."""
MOST = 400
"""The most times that are examined to find the place."""
SLOWER = 1.3
SKIPPED = 0.05
"""The share of steps at the beginning that is skipped: kernels are compiled, caches are cold."""
WORTH = 10.0
"""A shorter time than this number of clock ticks is too inexact."""


@dataclass(frozen=True, slots=True)
class Slowdown:
    place: int
    """The index in the curve."""
    before: float
    after: float
    """Seconds per step."""


def slowdown(curve: Curve) -> Slowdown | None:
    places, times = _times(curve)
    skipped = max(3, int(SKIPPED * len(times)))
    places, times = places[skipped:], times[skipped:]
    if len(times) < 2 * FEWEST or not _may_turn(times) or (curve.step_time and _counts_up(times)):
        return None
    at = _turn(times)
    early, late = times[:at], times[at:]
    before, after = median(early), median(late)
    if before <= 0 or after < SLOWER * before:
        return None
    # Most of what follows must be slower than most of what was before, to the end of the log.
    end = late[-max(FEWEST // 2, len(late) // 5) :]
    if quantiles(late, n=4)[0] < 1.1 * quantiles(early, n=10)[7] or median(end) < SLOWER * before:
        return None
    return Slowdown(places[at], before, after)


def _may_turn(times: Sequence[float]) -> bool:
    """A cheap test: False if too few times differ enough for two medians to be SLOWER apart."""
    half = FEWEST // 2
    ranked = sorted(times)
    return ranked[-half] >= SLOWER * ranked[half - 1]


def _turn(times: Sequence[float]) -> int:
    """The index with the least sum of absolute distances to the medians of both sides; tries 100 indices."""
    if (thin := len(times) // MOST) > 1:
        return min(max(_turn(times[::thin]) * thin, FEWEST), len(times) - FEWEST)
    last = len(times) - FEWEST
    stride = max(1, (last - FEWEST) // 50)
    tried = range(FEWEST, last + 1, stride)
    found = min(tried, key=lambda at: _cost(times[:at]) + _cost(times[at:]))
    near = range(max(FEWEST, found - stride), min(last, found + stride) + 1, max(1, stride // 25))
    return min(near, key=lambda at: _cost(times[:at]) + _cost(times[at:]))


def _cost(times: Sequence[float]) -> float:
    middle = median(times)
    most = 3 * middle
    near = times if max(times) <= most else [min(each, most) for each in times]
    return sum([abs(each - middle) for each in near])


def _counts_up(times: Sequence[float]) -> bool:
    """Whether the times are those since the start, not those of single steps."""
    up = sum(there > here for here, there in itertools.pairwise(times))
    return up > 0.95 * (len(times) - 1)


def _times(curve: Curve) -> tuple[list[int], list[float]]:
    """The index in the curve where each measured step ends, and its seconds."""
    known = [(place, each) for place, each in enumerate(curve.seconds) if each is not None]
    if curve.step_time:
        return [place for place, _ in known], [each for _, each in known]
    resolution = 1.0 if all(each.is_integer() for _, each in known) else 0.001
    gaps = sorted(there[1] - here[1] for here, there in itertools.pairwise(known))
    usual = median(gaps) if gaps else 0.0
    mean = (known[-1][1] - known[0][1]) / len(gaps) if gaps else 0.0
    stride = 1 if usual >= WORTH * resolution else max(1, round(WORTH * resolution / mean)) if mean > 0 else 1
    places: list[int] = []
    times: list[float] = []
    taken = known[::stride]
    for (here, began), (there, ended) in itertools.pairwise(taken):
        steps = curve.steps[there] - curve.steps[here]
        if steps > 0 and ended >= began:
            places.append(there)
            times.append((ended - began) / steps)
    return places, times

"""Ranks whose losses were equal at first and differ later."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from doctor.logs.model import Curve

TOGETHER = 5
"""The least number of first steps with equal losses, and the least number of different values in them."""
SAME, OTHER = 1e-4, 1e-3
APART = 3
PERSISTENT = 0.6
"""The share of the following steps that must differ as well."""


@dataclass(frozen=True, slots=True)
class CurveSplit:
    """`step` is the first at which they differ; `odd` are the indices of the curves that left the others, or
    of all curves if that is unknown (`told` is False).
    """

    step: int
    odd: tuple[int, ...]
    told: bool
    before: int
    """Steps in which all losses were equal."""
    values: tuple[float, ...]
    """The loss of each curve at that step."""


def families(curves: Sequence[Curve]) -> list[list[Curve]]:
    """Groups of ranks that began with equal losses, such as the ranks of one replica."""
    first = sorted(set(curves[0].steps).intersection(*(curve.steps for curve in curves[1:])))[:TOGETHER]
    found: dict[tuple[str, ...], list[Curve]] = {}
    for curve in curves:
        said = dict(zip(curve.steps, curve.losses, strict=True))
        found.setdefault(tuple(f"{said[step]:.4g}" for step in first), []).append(curve)
    return list(found.values())


def parting(curves: Sequence[Curve]) -> CurveSplit | None:
    """The step at which ranks part. Ranks that print local losses always differ, which is healthy."""
    said = [dict(zip(curve.steps, curve.losses, strict=True)) for curve in curves]
    if len(said) < 2:
        return None
    shared = sorted(set(said[0]).intersection(*said[1:]))
    first = next((place for place, step in enumerate(shared) if not _same(said, step, SAME)), None)
    if first is None or first < TOGETHER:
        return None
    if len({said[0][step] for step in shared[:first]}) < TOGETHER:
        return None  # a loss that does not move is equal on all ranks, even if it is local
    rest = [not _same(said, step, OTHER) for step in shared[first:]]
    if sum(rest) < APART or sum(rest) < PERSISTENT * len(rest):
        return None
    at = shared[first + rest.index(True)]
    odd = _odd(said, [step for step, here in zip(shared[first:], rest, strict=True) if here])
    told = odd is not None
    every = tuple(range(len(curves)))
    return CurveSplit(at, odd or every, told, first, tuple(each[at] for each in said))


def _same(said: Sequence[Mapping[int, float]], step: int, within: float) -> bool:
    values = [each[step] for each in said]
    if not all(map(isfinite, values)):
        return True  # another rule judges these
    return max(values) - min(values) <= within * max(map(abs, values))


def _odd(said: Sequence[Mapping[int, float]], steps: Sequence[int]) -> tuple[int, ...] | None:
    """The minority, if more than half of the ranks still agree in most of these steps."""
    left: Counter[int] = Counter()
    for step in steps:
        values = [each[step] for each in said]
        groups = [
            [n for n, each in enumerate(values) if abs(each - value) <= SAME * abs(value)] for value in values
        ]
        largest = max(groups, key=len)
        if 2 * len(largest) > len(values):
            left.update(set(range(len(values))) - set(largest))
    odd = tuple(sorted(place for place, times in left.items() if 2 * times > len(steps)))
    return odd if 0 < len(odd) < len(said) / 2 else None

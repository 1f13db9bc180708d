"""Who waits least, and is that more than chance? The one that the others wait for waits least itself.

No clock is compared and no step is recovered: there is only the share of the samples in which each rank was
inside a collective, in blocks of equal length.
"""

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median, stdev
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
Shares = Mapping[K, Sequence[float]]
"""For each rank the share of each block in which it waited."""
LEAST = 0.08
"""The smallest difference of the shares that names anybody."""
SURE, MAYBE = 5.0, 3.0
"""How far the difference must stand out of its noise (Student's t): to be named, or to be looked at on."""
APART = 0.5
"""How much of the difference must lie between the late ones and the next."""
NO_NOISE = 99.0


@dataclass(frozen=True, slots=True)
class Lateness(Generic[K]):
    """How much less than the others some ranks wait."""

    who: frozenset[K]
    gap: float
    """How much less they wait than the median of the others, as a share of the time."""
    next: float
    """How much less than the next that waits little."""
    t: float
    agree: int
    """In how many blocks they waited less than the median of the others: in nearly all if `t` is large."""
    blocks: int
    smallest: float
    """The smallest gap that would have been named, with the noise that there is."""

    @property
    def maybe(self) -> bool:
        """Whether it may become clear if one looks on."""
        return self._apart and self.t >= MAYBE

    @property
    def sure(self) -> bool:
        return self._apart and self.t >= SURE

    @property
    def _apart(self) -> bool:
        return self.gap >= LEAST and self.next >= APART * self.gap


def lateness(shares: Shares[K], who: Collection[K], usual: float | None = None) -> Lateness[K]:
    """How late these are, compared with all others, of whom there must be some. `usual`: `_usual_noise`."""
    blocks = len(next(iter(shares.values())))
    others = [key for key in shares if key not in who]
    differences = [
        median(shares[key][at] for key in others) - mean(shares[key][at] for key in who)
        for at in range(blocks)
    ]
    gap = median(mean(shares[key]) for key in others) - mean(mean(shares[key]) for key in who)
    usual = _usual_noise(shares) if usual is None else usual
    error = max(_noise(differences), usual * math.sqrt(1 / len(who) + 1 / len(others))) / math.sqrt(blocks)
    return Lateness(
        who=frozenset(who),
        gap=gap,
        next=min(mean(shares[key]) for key in others) - max(mean(shares[key]) for key in who),
        t=mean(differences) / error if error else (NO_NOISE if gap > 0 else 0.0),
        agree=sum(d > 0 for d in differences),
        blocks=blocks,
        smallest=max(LEAST, SURE * error),
    )


def _usual_noise(shares: Shares[K]) -> float:
    """How much the share of the usual rank differs from block to block, less what all have in common. The own
    noise of one that is chosen among many is often too small by luck.
    """
    common = [median(block) for block in zip(*shares.values(), strict=True)]
    apart = (_noise([own - all_of for own, all_of in zip(of, common, strict=True)]) for of in shares.values())
    return median(apart) / math.sqrt(1 - 1 / len(shares))


def _noise(values: Sequence[float]) -> float:
    """Their standard deviation."""
    return stdev(values) if len(values) > 1 else 0.0


def latest(shares: Shares[K], groups: Collection[Collection[K]] = ()) -> Lateness[K]:
    """Who is late, if anybody: one alone, one of the `groups` as a whole (the ranks of a host), or the few
    that wait least. The first of them that is sure counts, else the first that may be, else the lowest.
    """
    order = sorted(shares, key=lambda key: mean(shares[key]))
    whole = [set(group) for group in groups if len(group) > 1 and 2 * len(group) <= len(shares)]
    whole.sort(key=lambda group: mean(mean(shares[key]) for key in group))
    few = [order[:number] for number in range(2, len(order) // 2 + 1)]
    usual = _usual_noise(shares)
    tried = [lateness(shares, who, usual) for who in (order[:1], *whole[:1], *few)]
    return next((one for one in tried if one.sure), next((one for one in tried if one.maybe), tried[0]))

"""The usual suspects: machines that became faulty on more days than chance gives one of so many.

Each day on which a check made a sound machine faulty is thrown among all machines on which that check could
have done so, by their days; so CPU nodes do not make GPU nodes suspect. A machine is named if that gives it
so many days with a probability below one in a thousand for the whole fleet. The days of several checks are
taken together with their mean share, which is never less likely than with each share (Hoeffding).
"""

from collections import Counter
from collections.abc import Sequence
from math import exp, lgamma, log, log1p

from doctor.history.envelope import Machine

ERROR = 0.001
"""The probability that chance alone names a machine of the fleet."""


def suspect(machines: Sequence[Machine]) -> None:
    """Write into each machine whether it is suspect."""
    fell, looked = Counter[str](), Counter[str]()
    for each in machines:
        fell.update(each.fell)
        looked.update(each.looked)
    for each in machines:
        days = sum(each.fell.values())
        own = [check for check in fell if check in each.looked]
        everywhere = sum(fell[check] for check in own)
        each.expected = sum(fell[check] * each.looked[check] / looked[check] for check in own)
        if days:
            each.chance = min(1.0, len(machines) * _at_least(days, everywhere, each.expected / everywhere))
            each.suspect = each.chance < ERROR


def _at_least(hits: int, tries: int, share: float) -> float:
    """The probability of at least so many hits (binomial)."""
    if hits <= tries * share or share >= 1:
        return 1.0
    return sum(exp(_log_exactly(k, tries, share)) for k in range(hits, tries + 1))


def _log_exactly(hits: int, tries: int, share: float) -> float:
    ways = lgamma(tries + 1) - lgamma(hits + 1) - lgamma(tries - hits + 1)
    return ways + hits * log(share) + (tries - hits) * log1p(-share)

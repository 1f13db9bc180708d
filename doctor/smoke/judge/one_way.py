"""Two or three hosts: too few pairs to compare, so each pair sent one way at a time, five turns each way.

A direction is slow if its quickest turn is below half of all but the slowest turn of the other direction, and
its three quickest turns are alike: a slow link sets the same limit each time, even if a busy processor may
miss it; a busy processor alone does not. Waits for a processor are taken off its turns. They may differ then,
if the link set the limit while a rank waited: a direction is slow as well if all of its turns are below a
tenth, all but one are alike, and the waits do not explain it. A host of three is slow if both its pairs carry
less than a quarter of the pair without it. Runs were drawn at random from transfers on two cores beside four
programs that compute. The first rule was wrong in 0.02 % of runs of two hosts, the second in 0.04 %; without
these programs, the first was wrong in 0.002 % and the second never.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from doctor.smoke.events import Transfer
from doctor.smoke.judge.cells import Cell
from doctor.smoke.judge.link_stages import Way, rate, rate_at_best, transfers
from doctor.smoke.onhost.bandwidthplan import few_rounds
from doctor.smoke.result import SmokePlan

TURNS = 5
OF_THE_OTHER = 0.5
BROKEN = 0.1
"""A link below this share of its other direction or of other links does not fit a job."""
STEADY, ALIKE = 1.2, 3
"""The quickest turn of a limited direction is at most this multiple of the third."""
OF_THE_THIRD = 0.25
LITTLE = 0.2
"""The share of a turn that its ends may wait for a processor without any doubt about its rate."""


@dataclass(frozen=True)
class OneWayRates:
    """Bytes a second of each turn, by way; only of pairs that had all their turns."""

    turns: Mapping[Way, Sequence[float]]
    at_best: Mapping[Way, Sequence[float]]
    """Of turns without a wait for a processor if those are enough, else of all, as if without waits."""
    missing: Collection[Way] = ()
    """Ways that were to be measured and were not, or not as often."""

    @cached_property
    def middle(self) -> Mapping[Way, float]:
        return {way: median(rates) for way, rates in self.turns.items()}

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        return tuple(sorted({host for way in self.turns for host in way}))

    @cached_property
    def slow_ways(self) -> tuple[Way, ...]:
        return tuple(way for way in self.turns if self.is_limited(way, OF_THE_OTHER))

    @cached_property
    def doubtful_ways(self) -> tuple[Way, ...]:
        """Ways that carried less than half of the other direction, but not steadily."""
        below = (way for way in self.turns if self.middle[way] < OF_THE_OTHER * self.middle[way[::-1]])
        return tuple(way for way in below if way not in self.slow_ways)

    @cached_property
    def slow_hosts(self) -> Mapping[str, float]:
        """Slow host of three -> the rate of its better pair, as a share of that of the pair without it."""
        return {host: part for host in self.hosts if (part := self._of_the_third(host)) < OF_THE_THIRD}

    def is_limited(self, way: Way, part: float) -> bool:
        """Whether this direction is below this part of the other one, each time by the same limit."""
        best, own, other = map(sorted, (self.at_best[way], self.turns[way], self.turns[way[::-1]]))
        if max(own[-1], median(best)) < min(part, BROKEN) * other[1] and own[-1] <= STEADY * own[1]:
            return True
        return best[-1] < part * other[1] and best[-1] <= STEADY * best[-ALIKE]

    def _of_the_third(self, host: str) -> float:
        pairs = {frozenset(way): way for way in self.turns}
        if len(self.hosts) != 3 or len(pairs) < 3:
            return 1.0
        (apart,) = (way for pair, way in pairs.items() if host not in pair)
        third = median(map(min, self.turns[apart], self.turns[apart[::-1]]))
        own = (way for pair, way in pairs.items() if host in pair)
        return max(min(median(self.at_best[way]), median(self.at_best[way[::-1]])) for way in own) / third

    def names(self, host: str) -> bool:
        """Whether the host is slow beyond doubt."""
        return host in self.slow_hosts or any(self.slow_sides(host))

    def slow_sides(self, host: str) -> tuple[bool, bool]:
        """Whether all that the host sends to two others is slow, and whether all that it receives is."""
        others = [other for other in self.hosts if other != host]
        if len(others) < 2:
            return False, False
        out = all((host, other) in self.slow_ways for other in others)
        return out, all((other, host) in self.slow_ways for other in others)


def _at_best(turns: Sequence[Sequence[Transfer]]) -> list[float]:
    sure = [each for each in turns if sum(said.queued for said in each) < LITTLE * each[0].seconds]
    return [*map(rate, sure)] if len(sure) >= ALIKE else [*map(rate_at_best, turns)]


def one_way_rates(plan: SmokePlan, cell: Cell) -> OneWayRates | None:
    """The rates; None if the cell did not send one way at a time, or some pair did not finish its turns."""
    rates = rates_of_all(plan, cell)
    whole = rates and not rates.missing and all(len(turns) >= TURNS for turns in rates.turns.values())
    return rates if whole else None


def transfers_by_way(plan: SmokePlan, cell: Cell) -> dict[Way, dict[int, list[Transfer]]]:
    """Way -> turn -> what both ends said; empty if hosts sent both ways at once."""
    heard: dict[Way, dict[int, list[Transfer]]] = defaultdict(lambda: defaultdict(list))
    for here, there, said in transfers(plan, cell):
        if said.way != "both":
            heard[(here, there) if said.way == "out" else (there, here)][said.stage].append(said)
    return heard


def rates_of_all(plan: SmokePlan, cell: Cell) -> OneWayRates | None:
    """The rates of all ways of pairs that had all their turns both ways; None if there is none."""
    heard = transfers_by_way(plan, cell)
    most = max((len(turns) for turns in heard.values()), default=0)
    whole = {way for way, own in heard.items() if len(own) == most and len(heard.get(way[::-1], ())) == most}
    turns = {way: [heard[way][turn] for turn in sorted(heard[way])] for way in sorted(whole)}
    rates = {way: [*map(rate, each)] for way, each in turns.items()}
    at_best = {way: _at_best(each) for way, each in turns.items()}
    return OneWayRates(rates, at_best, planned_ways(plan, cell) - whole) if whole else None


def planned_ways(plan: SmokePlan, cell: Cell) -> set[Way]:
    """What an acceptance test measures in this cell."""
    hosts = list(dict.fromkeys(plan.seat(rank).host for rank in cell.ranks))
    pairs = [(hosts[one], hosts[other]) for met in few_rounds(len(hosts)) for one, other in met]
    return {*pairs, *(pair[::-1] for pair in pairs)}

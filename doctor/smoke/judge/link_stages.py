"""What the bandwidth phase measured at each meeting of all pairs of a cell: rates and round trips.

Both ends report a transfer. The slower report counts for the rate, the quicker for the round trip; if each
direction was measured alone, the slower one counts.

If others had the processor of a rank, its link looks slow. What a link would have carried without these waits
is its rate at best. To call it slow, its rate at best is compared with what the others really carried.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from doctor.smoke.events import Transfer
from doctor.smoke.judge.cells import Cell
from doctor.smoke.result import SmokePlan, SmokeResult

Pair = tuple[str, str]
Way = tuple[str, str]
"""The sender and the receiver."""
LEAST_OF_A_TRANSFER = 0.01
"""The share of its time that a transfer took at least without waits for processors."""


class PairStage(NamedTuple):
    """The results of one meeting of all pairs: bytes a second, and seconds of a round trip."""

    rates: dict[Pair, float]
    trips: dict[Pair, float]
    at_best: dict[Pair, float]

    def doubting(self, *ends: str) -> dict[Pair, float]:
        """The rates, those of the pairs of this host, or of this pair, at best."""
        return {pair: self.at_best[pair] if {*ends} <= {*pair} else rate for pair, rate in self.rates.items()}


def transfers(plan: SmokePlan, cell: Cell) -> Iterator[tuple[str, str, Transfer]]:
    """Each transfer between two hosts, with the host that reports it and the other one; no nonsense."""
    for place in cell.places:
        here = plan.seat(cell.ranks[place]).host
        for said in cell.seen[place].pairs:
            if said.peer < len(cell.seen) and said.bytes and said.seconds:
                there = plan.seat(cell.ranks[said.peer]).host
                if here != there:
                    yield here, there, said


def stages_of(plan: SmokePlan, cell: Cell) -> list[PairStage]:
    """The meetings of the cell; none if a pair missed one."""
    met: dict[int, dict[Pair, list[Transfer]]] = defaultdict(lambda: defaultdict(list))
    for here, there, said in transfers(plan, cell):
        met[said.stage][min(here, there), max(here, there)].append(said)
    stages = [_stage(met[number]) for number in sorted(met)]
    whole = len(stages) > 1 and all(stage.rates.keys() == stages[0].rates.keys() for stage in stages)
    return stages if whole else []


def _stage(met: Mapping[Pair, Sequence[Transfer]]) -> PairStage:
    return PairStage(
        {pair: rate(both) for pair, both in met.items()},
        {pair: min(said.rtt for said in both) for pair, both in met.items()},
        {pair: rate_at_best(both) for pair, both in met.items()},
    )


def rate(both: Sequence[Transfer]) -> float:
    return min(said.bytes / said.seconds for said in both)


def rate_at_best(both: Sequence[Transfer]) -> float:
    """The rate if each wait of either end for a processor had been at the expense of the transfer."""
    queued = sum(said.queued for said in both)
    return min(said.bytes / max(said.seconds - queued, LEAST_OF_A_TRANSFER * said.seconds) for said in both)


def split(values: Mapping[Pair, float], host: str) -> tuple[list[float], list[float]]:
    """The values of the pairs that the host is in, and those of the others."""
    own = [value for pair, value in values.items() if host in pair]
    return own, [value for pair, value in values.items() if host not in pair]


def sent_again(result: SmokeResult) -> Mapping[Way, tuple[int, int]]:
    """Way between two hosts -> the TCP segments with data that ranks sent, and how many were sent again."""
    hosts = {address: host for host, address in result.plan.addresses.items() if address}
    found: dict[Way, tuple[int, int]] = {}
    for seen in result.ranks:
        here = result.plan.seat(seen.rank).host
        for address, (sent, again) in (seen.segments.peers if seen.segments else {}).items():
            there = hosts.get(address, here)
            if there != here:
                before = found.get((here, there), (0, 0))
                found[here, there] = before[0] + sent, before[1] + again
    return found

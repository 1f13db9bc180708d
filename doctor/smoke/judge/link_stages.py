"""What the bandwidth phase measured at each meeting of all pairs of a cell: rates and round trips.

Both ends report a transfer. The slower report counts for the rate, the quicker for the round trip; if each
direction was measured alone, the slower one counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from doctor.smoke.judge.cells import Cell
from doctor.smoke.result import SmokePlan, SmokeResult

Pair = tuple[str, str]
Way = tuple[str, str]
"""The sender and the receiver."""


class PairStage(NamedTuple):
    """The results of one meeting of all pairs: bytes a second, and seconds of a round trip."""

    rates: dict[Pair, float]
    trips: dict[Pair, float]


def stages_of(plan: SmokePlan, cell: Cell) -> list[PairStage]:
    """The meetings of the cell; none if a pair missed one."""
    numbers = {said.stage for seen in cell.seen for said in seen.pairs}
    stages = [_stage(plan, cell, number) for number in sorted(numbers)]
    whole = len(stages) > 1 and all(stage.rates.keys() == stages[0].rates.keys() for stage in stages)
    return stages if whole and stages[0].rates else []


def hosts_of(stages: Sequence[PairStage]) -> list[str]:
    return sorted({host for pair in stages[0].rates for host in pair})


def _stage(plan: SmokePlan, cell: Cell, stage: int) -> PairStage:
    rates: dict[Pair, list[float]] = defaultdict(list)
    trips: dict[Pair, list[float]] = defaultdict(list)
    for place in cell.places:
        here = plan.seat(cell.ranks[place]).host
        for said in cell.seen[place].pairs:
            if said.stage != stage or said.peer >= len(cell.seen) or not said.bytes or not said.seconds:
                continue
            there = plan.seat(cell.ranks[said.peer]).host
            if here != there:
                pair = (min(here, there), max(here, there))
                rates[pair].append(said.bytes / said.seconds)
                trips[pair].append(said.rtt)
    return PairStage({pair: min(r) for pair, r in rates.items()}, {pair: min(t) for pair, t in trips.items()})


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

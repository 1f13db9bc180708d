"""What the links of each host carried in a smoke run, as the numbers of a baseline."""

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import median, median_high

from doctor.baseline import Measure
from doctor.smoke.judge.link_charges import CellMeasurements
from doctor.smoke.judge.link_stages import split
from doctor.smoke.judge.links import SLOWER_THAN_NETWORKS, measured_cells
from doctor.smoke.result import SmokeResult

BITS = 8 / 1e9
MICRO = 1e6


def link_rates(result: SmokeResult, *, at_best: bool = False) -> dict[str, dict[str, Measure]]:
    """By the better half of its pairs: a slow peer makes nobody slow. `at_best`: without waits of ranks."""
    if result.plan.backend in SLOWER_THAN_NETWORKS:
        return {}
    cells = list(measured_cells(result))
    return {host: dict(_of_host(seen, host, at_best)) for seen in cells for host in seen.hosts}


def load(result: SmokeResult) -> float:
    """How much ran and waited on each core of the busiest host."""
    return round(max((host.load / host.cores for host in result.hosts if host.cores), default=0.0), 2)


def _of_host(seen: CellMeasurements, host: str, at_best: bool) -> Iterator[tuple[str, Measure]]:
    if one_way := seen.one_way:
        rates = one_way.at_best if at_best else one_way.turns
        for key, end in (("out_gbit_s", 0), ("in_gbit_s", 1)):
            own = [way for way in rates if way[end] == host]
            if own:
                yield key, _measure([rates[way] for way in own], [one_way.turns[way] for way in own])
    else:
        turns = _by_pair([stage.rates for stage in seen.stages], host)
        best = _by_pair([stage.at_best for stage in seen.stages], host)
        yield "both_gbit_s", _measure(best if at_best else turns, turns)
    trips = [min(split(stage.trips, host)[0]) for stage in seen.stages]
    yield "trip_us", (_short(min(trips) * MICRO), _noise([trips]), len(trips))


def _by_pair(stages: Sequence[Mapping[tuple[str, str], float]], host: str) -> list[list[float]]:
    return [[stage[pair] for stage in stages] for pair in stages[0] if host in pair]


def _measure(rates: Sequence[Sequence[float]], turns: Sequence[Sequence[float]]) -> Measure:
    """`rates` and `turns` by pair."""
    middle = median_high(map(median, rates)) * BITS
    return _short(middle), _noise(turns), min(map(len, turns))


def _noise(turns: Sequence[Sequence[float]]) -> float:
    """Half of what the turns of a pair are apart, of the worst pair: of so few, a middle is small by luck."""
    return round(max(math.log(max(each) / min(each)) for each in turns) / 2, 3)


def _short(value: float) -> float:
    return float(f"{value:.4g}")

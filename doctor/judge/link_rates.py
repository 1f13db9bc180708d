"""What each host did in a smoke run, as the numbers of a baseline."""

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import median, median_high

from doctor.baseline import LINKS, Measure
from doctor.facts.smoke import JudgedRun
from doctor.rules.accept import collective_rates
from doctor.rules.alone import TIMES, host_rates
from doctor.smoke.judge.link_charges import CellMeasurements
from doctor.smoke.judge.link_stages import split
from doctor.smoke.judge.links import SLOWER_THAN_NETWORKS, measured_cells
from doctor.smoke.result import SmokeResult
from doctor.text.grouped import grouped

BITS = 8 / 1e9
MICRO = 1e6
SHARED_NOISE = 0.1
"""That of what a host computes while others use it, at least."""


def unit(key: str) -> tuple[str, float]:
    """The unit of a measure, and how many of ours it is."""
    first = key.split(" ")[0]
    units = {"trip_us": ("us", 1.0), "matmul": ("GFLOP/s", 1e9), "fsync": ("/s", 1.0)}
    other = ("Gbit/s", 1.0) if first in LINKS else ("s", 1.0) if first in TIMES else ("MB/s", 1e6)
    return units.get(first, other)


def measures(run: JudgedRun, *, at_best: bool = False) -> dict[str, dict[str, Measure]]:
    """Host -> its links, what it does alone, by the slowest rank, and the collectives in which it took part.
    `at_best`: by the better pass and the quickest call; without what others may have slowed.
    """
    links = link_rates(run.result, at_best=at_best)
    found = {host: links.get(host, {}) for host in run.plan.hosts}
    for (host, key), own in grouped(((r.host, r.name), r) for r in host_rates(run) if r.passes).items():
        slowest = min(own, key=lambda each: each.rate)
        rate, noise = max(slowest.passes) if at_best else slowest.rate, max(each.noise for each in own)
        shared = any(each.shared for each in own)
        if not (at_best and shared and slowest.folder):
            noise = max(noise, SHARED_NOISE) if shared else noise
            found[host][key] = _short(rate / unit(key)[1]), noise, len(slowest.passes)
    for each in collective_rates(run):
        noise = round(math.log(each.median_ms / each.least_ms), 3)
        rate = each.at_best if at_best else each.bus_bytes_per_second
        for host in [each.host] if each.host else run.plan.hosts:
            found[host][f"{each.name} of {each.ranks}"] = _short(rate / 1e6), noise, each.calls
    return {host: {key: own for key, own in told.items() if own[0] > 0} for host, told in found.items()}


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
    return _short(median_high(map(median, rates)) * BITS), _noise(turns), min(map(len, turns))


def _noise(turns: Sequence[Sequence[float]]) -> float:
    """Half of what the turns of a pair are apart, of the worst pair: of so few, a middle is small by luck."""
    return round(max(math.log(max(each) / min(each)) for each in turns) / 2, 3)


def _short(value: float) -> float:
    return float(f"{value:.4g}")

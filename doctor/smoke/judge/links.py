"""Slow links, from transfers between hosts: a host whose pairs are slow, or one pair among fast ones.

A host is compared with the pairs that it is not in, so that it cannot hide behind pairs that it slows down.
If few hosts sent one way at a time, what `one_way` proves counts as well.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import median, median_high, median_low

from doctor.smoke.judge import link_charges
from doctor.smoke.judge.cells import cells
from doctor.smoke.judge.charge import SmokeCharge
from doctor.smoke.judge.link_stages import Pair, PairStage, Way, split, stages_of
from doctor.smoke.judge.one_way import BROKEN, one_way_rates, rates_of_all
from doctor.smoke.judge.speed import MAD, spread, waited
from doctor.smoke.result import SmokeResult

LEAST_HOSTS = 3
FEW_PAIRS = 6
SLOWER = 0.12
NOISY, SLOWER_IF_NOISY = 0.08, 0.30
PAIR_FACTOR = 0.5
BLIND = 0.1
"""If only a host below this share of the usual rate could have been named, no comparison was made."""
APART, LEAST_OTHER_PAIRS = 0.5, 3
"""A host's pairs carry less than half of the slowest other one: noise never does that twice."""
LATE_FACTOR, LATE_SECONDS, LATE_IF_SHARED = 5.0, 0.001, 0.02
"""If ranks wait for their processors, one message may take several time slices of the scheduler."""
SLOWER_THAN_NETWORKS = ("mccl",)
"""Backends whose rates say more about the processors than about the links: MindSpore's carried 2 to 43 MB/s
over any link, one of 100 Mbit/s among them, and on a busy machine four times as much one way as the other.
"""


def judge_links(result: SmokeResult) -> Iterator[SmokeCharge]:
    if result.plan.backend in SLOWER_THAN_NETWORKS:
        return
    shared = waited(result, [seen.rank for seen in result.ranks])
    for seen in measured_cells(result):
        yield from _judge(seen, LATE_IF_SHARED if shared else LATE_SECONDS)


def _judge(seen: link_charges.CellMeasurements, least: float) -> Iterator[SmokeCharge]:
    stages, one_way = seen.stages, seen.one_way
    rated = not seen.plan.turns  # the rates of an acceptance test are judged by `accept-slow-link`
    noise = _repeat_noise(stages)
    trips = {pair: min(stage.trips[pair] for stage in stages) for pair in stages[0].trips}
    guilty = set()
    for host in seen.hosts:
        slow = rated and (
            _is_slow_each_time(stages, host, noise) or (one_way is not None and one_way.names(host))
        )
        late = _is_late(trips, host, least)
        if slow or late:
            guilty.add(host)
            broken = all(_is_below(stage.doubting(host), host, BROKEN) for stage in stages)
            yield link_charges.host_charge(seen, host, slow, late, broken)
    for way in one_way.slow_ways if one_way and rated else ():
        if one_way and guilty.isdisjoint(way):
            yield link_charges.way_charge(seen, one_way, way)
    if rated and len(seen.hosts) >= link_charges.LEAST_FOR_PAIR:
        for pair in sorted(stages[0].rates):
            if guilty.isdisjoint(pair) and all(
                _pair_is_slow(stage.doubting(*pair), pair, noise, PAIR_FACTOR) for stage in stages
            ):
                broken = all(_pair_is_slow(stage.doubting(*pair), pair, noise, BROKEN) for stage in stages)
                yield link_charges.pair_charge(seen, pair, broken)


def measured_cells(result: SmokeResult) -> Iterator[link_charges.CellMeasurements]:
    """The cells in which hosts can be compared: three or more, or two that sent one way at a time."""
    for cell in cells(result):
        one_way = (rates_of_all if result.plan.turns else one_way_rates)(result.plan, cell)
        if stages := stages_of(result.plan, cell):
            seen = link_charges.CellMeasurements(result, stages, one_way)
            if one_way or len(seen.hosts) >= LEAST_HOSTS:
                yield seen


def perhaps_slow_hosts(result: SmokeResult) -> list[str]:
    """Hosts that were mostly slow by the limit for noisy networks, but not beyond the noise of this run."""
    return [
        host
        for seen in measured_cells(result)
        for host in seen.hosts
        if 2 * sum(_is_below(stage.rates, host, 1 - SLOWER_IF_NOISY) for stage in seen.stages)
        > len(seen.stages)
        and not _is_slow_each_time(seen.stages, host, _repeat_noise(seen.stages))
        and not (seen.one_way and seen.one_way.names(host))
    ]


def perhaps_slow_ways(result: SmokeResult) -> list[Way]:
    """Directions that carried less than half of the other one, but not steadily."""
    return [way for seen in measured_cells(result) if seen.one_way for way in seen.one_way.doubtful_ways]


def too_noisy(result: SmokeResult) -> bool:
    """Whether transfers varied so much that no host could have been named, however slow."""
    measured = list(measured_cells(result))
    return bool(measured) and all(
        seen.one_way is None
        and _limit(max(_repeat_noise(seen.stages), _noise(stage.rates, host)), len(seen.hosts) - 1) <= BLIND
        for seen in measured
        for stage in seen.stages
        for host in seen.hosts
    )


def _noise(rates: Mapping[Pair, float], host: str) -> float:
    """How much the rates of the pairs without this host differ from each other."""
    others = [math.log(rate) for rate in split(rates, host)[1]]
    return spread(others) if others else 0.0


def _repeat_noise(stages: Sequence[PairStage]) -> float:
    """How much a pair varies from one meeting to the next, as a standard deviation of logarithms."""
    apart = []
    for pair in stages[0].rates:
        rates = [stage.rates[pair] for stage in stages]
        apart.append(math.log(max(rates) / min(rates)))
    if len(apart) < FEW_PAIRS:
        return max(apart)  # a median of so few values is often too small by luck
    return MAD * median(apart) / math.sqrt(2)


def _limit(noise: float, votes: int) -> float:
    """The share of the usual rate below which a median of `votes` pairs is slow."""
    slower = max(SLOWER, 5 * noise * 1.25 / math.sqrt(min(votes, 3)))
    return 1 - max(slower, SLOWER_IF_NOISY if noise > NOISY else 0.0)


def _is_slow_each_time(stages: Sequence[PairStage], host: str, noise: float) -> bool:
    return all(_is_slow(stage.doubting(host), host, noise) for stage in stages) or all(
        _is_apart(stage.doubting(host), host) for stage in stages
    )


def _is_slow(rates: Mapping[Pair, float], host: str, repeat: float) -> bool:
    return _is_below(rates, host, _limit(max(repeat, _noise(rates, host)), len(split(rates, host)[0])))


def _is_below(rates: Mapping[Pair, float], host: str, part: float) -> bool:
    """Whether more than half of its pairs carry less than this part of what other hosts usually do."""
    own, others = split(rates, host)
    if len(own) < 2 or not others:
        return False
    return median_high(own) < part * _usual(rates, host)


def _is_apart(rates: Mapping[Pair, float], host: str) -> bool:
    own, others = split(rates, host)
    return len(own) > 1 and len(others) >= LEAST_OTHER_PAIRS and max(own) < APART * min(others)


def _usual(rates: Mapping[Pair, float], host: str) -> float:
    """The usual rate among the other hosts, taken by host: one very fast host makes nobody else slow."""
    without = {pair: rate for pair, rate in rates.items() if host not in pair}
    hosts = {name for pair in without for name in pair}
    return median_low(median_low(split(without, name)[0]) for name in hosts)


def _is_late(trips: Mapping[Pair, float], host: str, least: float) -> bool:
    """Whether all its round trips are longer than any between the others."""
    own, others = split(trips, host)
    if len(own) < 2 or not others:
        return False
    usual = median(others)
    late = min(own)
    return late > LATE_FACTOR * usual and late > usual + least and late > max(others)


def _pair_is_slow(rates: Mapping[Pair, float], pair: Pair, repeat: float, part: float) -> bool:
    """Whether this pair carries less than this part although both ends are fast with everybody else."""
    others = {other: rate for other, rate in rates.items() if other != pair}
    if any(all(end not in other for other in others) for end in pair):
        return False
    usual = median(others.values())
    if max(repeat, spread([math.log(rate) for rate in others.values()])) > NOISY:
        return False
    return all(rates[pair] < part * min(usual, median_low(split(others, end)[0])) for end in pair)

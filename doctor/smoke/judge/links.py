"""Slow links, from transfers between hosts: a host whose pairs are slow, or one pair among fast ones.

A host is compared with the pairs that it is not in, so that it cannot hide behind pairs that it slows down.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from shlex import quote
from statistics import median, median_high, median_low
from typing import NamedTuple

from doctor.model import Confidence, Evidence, Severity
from doctor.smoke.judge.cells import Cell, cells
from doctor.smoke.judge.charge import SmokeCharge
from doctor.smoke.judge.speed import MAD, spread, waited
from doctor.smoke.result import SmokePlan, SmokeResult

CHECK = "smoke-slow-link"
Pair = tuple[str, str]
STAGES = (1, 2)
LEAST_HOSTS = 3
LEAST_FOR_PAIR = 4
FEW_PAIRS = 6
SLOWER = 0.12
NOISY, SLOWER_IF_NOISY = 0.08, 0.30
PAIR_FACTOR = 0.5
BLIND = 0.1
"""If only a host below this share of the usual rate could have been named, no comparison was made."""
APART, LEAST_OTHER_PAIRS = 0.5, 3
"""A host stands apart if all its pairs carry less than half of the slowest other pair: noise never does that
twice.
"""
LATE_FACTOR, LATE_SECONDS, LATE_IF_SHARED = 5.0, 0.001, 0.02
"""If ranks wait for their processors, a turn takes some time slices of the scheduler."""


class PairStage(NamedTuple):
    """The results of one meeting of all pairs: bytes a second, and seconds of a round trip."""

    rates: dict[Pair, float]
    trips: dict[Pair, float]


def judge_links(result: SmokeResult) -> Iterator[SmokeCharge]:
    shared = waited(result, [seen.rank for seen in result.ranks])
    for stages, hosts in _stages_and_hosts(result):
        noise = _repeat_noise(stages)
        slow = [host for host in hosts if _is_slow_each_time(stages, host, noise)]
        trips = {pair: min(stage.trips[pair] for stage in stages) for pair in stages[0].trips}
        least = LATE_IF_SHARED if shared else LATE_SECONDS
        late = [host for host in hosts if _is_late(trips, host, least)]
        for host in hosts:
            if host in slow or host in late:
                yield _host_charge(result.plan, stages, host, host in slow, host in late)
        guilty = {*slow, *late}
        if len(hosts) >= LEAST_FOR_PAIR:
            for pair in sorted(stages[0].rates):
                if guilty.isdisjoint(pair) and all(
                    _pair_is_slow(stage.rates, pair, noise) for stage in stages
                ):
                    yield _pair_charge(result.plan, stages, pair)


def perhaps_slow_hosts(result: SmokeResult) -> list[str]:
    """Hosts that were slow each time by the limit for noisy networks, but within the noise of this one."""
    return [
        host
        for stages, hosts in _stages_and_hosts(result)
        for host in hosts
        if all(_is_below(stage.rates, host, 1 - SLOWER_IF_NOISY) for stage in stages)
        and not _is_slow_each_time(stages, host, _repeat_noise(stages))
    ]


def too_noisy(result: SmokeResult) -> bool:
    """Whether transfers varied so much that no host could have been named, however slow."""
    measured = list(_stages_and_hosts(result))
    return bool(measured) and all(
        _limit(max(_repeat_noise(stages), _noise(stage.rates, host)), len(hosts) - 1) <= BLIND
        for stages, hosts in measured
        for stage in stages
        for host in hosts
    )


def _stages_and_hosts(result: SmokeResult) -> Iterator[tuple[list[PairStage], list[str]]]:
    """Both stages and the hosts of each cell in which all pairs met twice."""
    for cell in cells(result):
        stages = [_stage(result.plan, cell, stage) for stage in STAGES]
        hosts = sorted({host for pair in stages[0].rates for host in pair})
        if len(hosts) >= LEAST_HOSTS and set(stages[0].rates) == set(stages[1].rates):
            yield stages, hosts


def _noise(rates: Mapping[Pair, float], host: str) -> float:
    """How much the rates of the pairs without this host differ from each other."""
    others = [math.log(rate) for rate in _split(rates, host)[1]]
    return spread(others) if others else 0.0


def _stage(plan: SmokePlan, cell: Cell, stage: int) -> PairStage:
    """Both ends report a transfer; the slower report counts for the rate, the quicker for the round trip."""
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


def _split(values: Mapping[Pair, float], host: str) -> tuple[list[float], list[float]]:
    """The values of the pairs that the host is in, and those of the others."""
    own = [value for pair, value in values.items() if host in pair]
    return own, [value for pair, value in values.items() if host not in pair]


def _repeat_noise(stages: Sequence[PairStage]) -> float:
    """How much a pair varies between its two meetings, as a standard deviation of logarithms."""
    first, second = (stage.rates for stage in stages)
    apart = [abs(math.log(rate / second[pair])) for pair, rate in first.items()]
    if len(apart) < FEW_PAIRS:
        return max(apart)  # a median of so few values is often too small by luck
    return MAD * median(apart) / math.sqrt(2)


def _limit(noise: float, votes: int) -> float:
    """The share of the usual rate below which a median of `votes` pairs is slow."""
    slower = max(SLOWER, 5 * noise * 1.25 / math.sqrt(min(votes, 3)))
    return 1 - max(slower, SLOWER_IF_NOISY if noise > NOISY else 0.0)


def _is_slow_each_time(stages: Sequence[PairStage], host: str, noise: float) -> bool:
    return all(_is_slow(stage.rates, host, noise) for stage in stages) or all(
        _is_apart(stage.rates, host) for stage in stages
    )


def _is_slow(rates: Mapping[Pair, float], host: str, repeat: float) -> bool:
    votes = len(_split(rates, host)[0])
    return _is_below(rates, host, _limit(max(repeat, _noise(rates, host)), votes))


def _is_below(rates: Mapping[Pair, float], host: str, part: float) -> bool:
    """Whether more than half of its pairs carry less than this part of what other hosts usually do."""
    own, others = _split(rates, host)
    if len(own) < 2 or not others:
        return False
    return median_high(own) < part * _usual(rates, host)


def _is_apart(rates: Mapping[Pair, float], host: str) -> bool:
    own, others = _split(rates, host)
    return len(own) > 1 and len(others) >= LEAST_OTHER_PAIRS and max(own) < APART * min(others)


def _usual(rates: Mapping[Pair, float], host: str) -> float:
    """The usual rate among the other hosts, taken by host: one very fast host makes nobody else slow."""
    without = {pair: rate for pair, rate in rates.items() if host not in pair}
    hosts = {name for pair in without for name in pair}
    return median_low(median_low(_split(without, name)[0]) for name in hosts)


def _is_late(trips: Mapping[Pair, float], host: str, least: float) -> bool:
    """Whether all its round trips are longer than any between the others."""
    own, others = _split(trips, host)
    if len(own) < 2 or not others:
        return False
    usual = median(others)
    late = min(own)
    return late > LATE_FACTOR * usual and late > usual + least and late > max(others)


def _pair_is_slow(rates: Mapping[Pair, float], pair: Pair, repeat: float) -> bool:
    """Whether this pair is slow although both ends are fast with everybody else."""
    others = {other: rate for other, rate in rates.items() if other != pair}
    if any(all(end not in other for other in others) for end in pair):
        return False
    usual = median(others.values())
    if max(repeat, spread([math.log(rate) for rate in others.values()])) > NOISY:
        return False
    return all(rates[pair] < PAIR_FACTOR * min(usual, median_low(_split(others, end)[0])) for end in pair)


def _rate(value: float) -> str:
    """The rate in bits a second; `value` is in bytes a second."""
    bits = 8 * value
    return f"{bits / 1e9:.2f} Gbit/s" if bits >= 1e9 else f"{bits / 1e6:.1f} Mbit/s"


def _trip(seconds: float) -> str:
    return f"{1000 * seconds:.2f} ms"


def _host_charge(
    plan: SmokePlan, stages: Sequence[PairStage], host: str, slow: bool, late: bool
) -> SmokeCharge:
    own, others = _medians([stage.rates for stage in stages], host)
    own_trip, other_trip = _medians([stage.trips for stage in stages], host)
    found = []
    if slow:
        words = f"its network carries {_rate(own)}, {own / others:.0%} of what pairs of the other hosts do"
        found.append((words, f"about {_rate(others)}, as between the other hosts", _rate(own)))
    if late:
        words = f"round trips to it take {_trip(own_trip)}, and {_trip(other_trip)} between the others"
        found.append((words, f"round trips of about {_trip(other_trip)}", _trip(own_trip)))
    summary, expected, actual = map("; ".join, zip(*found, strict=True))
    few = len({name for pair in stages[0].rates for name in pair}) < LEAST_FOR_PAIR
    return SmokeCharge(
        check=CHECK,
        kind="slow" if slow else "late",
        summary=summary,
        expected=expected,
        actual=actual,
        hosts=(host,),
        phase="bandwidth",
        confidence=Confidence.SUSPECT if few else Confidence.STRONG,
        severity=Severity.WARN,
        evidence=(Evidence("transfers between hosts", _table(stages, host)),),
        commands=_look(plan, (host,)),
    )


def _medians(stages: Sequence[Mapping[Pair, float]], host: str) -> tuple[float, float]:
    """The medians of the pairs that the host is in, and of the others."""
    own, others = zip(*(_split(values, host) for values in stages), strict=True)
    return median(chain(*own)), median(chain(*others))


def _pair_charge(plan: SmokePlan, stages: Sequence[PairStage], pair: Pair) -> SmokeCharge:
    own = median(stage.rates[pair] for stage in stages)
    usual = median(rate for stage in stages for other, rate in stage.rates.items() if other != pair)
    address = plan.addresses.get(pair[1]) or pair[1]
    return SmokeCharge(
        check=CHECK,
        kind="pair",
        summary=f"the link between two hosts carries {_rate(own)}, {own / usual:.0%} of what either "
        "of them does with the others",
        expected=f"about {_rate(usual)}",
        actual=_rate(own),
        hosts=pair,
        phase="bandwidth",
        confidence=Confidence.SUSPECT,
        severity=Severity.WARN,
        undecided=True,
        evidence=(Evidence("transfers between hosts", _table(stages, pair[0])),),
        commands=(
            f"ssh {quote(pair[0])} tracepath -n {quote(address)}",
            f"iperf3 -c {quote(address)} -t 5    # on {pair[0]}, while `iperf3 -s -1` runs on {pair[1]}",
            *_look(plan, pair),
        ),
    )


def _table(stages: Sequence[PairStage], host: str) -> str:
    """All pairs, one per line: those of the host first, each part from the slowest on."""
    pairs = sorted(stages[0].rates, key=lambda pair: (host not in pair, stages[0].rates[pair]))
    lines = []
    for pair in pairs[:24]:
        rates = " and ".join(_rate(stage.rates[pair]) for stage in stages)
        trips = " and ".join(_trip(stage.trips[pair]) for stage in stages)
        lines.append(f"{pair[0]} <-> {pair[1]}: {rates}; round trip {trips}")
    return "\n".join(lines)


def _look(plan: SmokePlan, hosts: Sequence[str]) -> tuple[str, ...]:
    """Commands that show the speed and the losses of the port with the data address."""
    commands = []
    for host in hosts:
        address = plan.addresses.get(host)
        if address:
            find = f"i=$(ip -o addr show to {quote(address)} | awk '{{print $2; exit}}')"
            show = "ip -s link show $i; ethtool $i | grep -E 'Speed|Duplex'"
            count = "ethtool -S $i | grep -iE 'err|drop|discard|crc|pause'"
            commands.append(f"{find}; {show}; {count}    # on {host}")
    return (*commands, "doctor check --only link-speed-mismatch,mtu-mismatch,nic-errors")

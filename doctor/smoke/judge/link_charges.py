"""The charges of slow links, with what was measured."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from shlex import quote
from statistics import median

from doctor.model import Confidence, Evidence, Severity
from doctor.smoke.judge.charge import SmokeCharge, Worded, worded
from doctor.smoke.judge.link_stages import Pair, PairStage, Way, sent_again, split
from doctor.smoke.judge.one_way import BROKEN, OneWayRates
from doctor.smoke.result import SmokePlan, SmokeResult

LEAST_FOR_PAIR = 4
MANY_SEGMENTS = 1000
"""Fewer say nothing about the share that is sent again."""


@dataclass(frozen=True)
class CellMeasurements:
    """All that was measured in one cell."""

    result: SmokeResult
    stages: Sequence[PairStage]
    one_way: OneWayRates | None

    @property
    def plan(self) -> SmokePlan:
        return self.result.plan

    @property
    def hosts(self) -> list[str]:
        return sorted({host for pair in self.stages[0].rates for host in pair})


def host_charge(seen: CellMeasurements, host: str, slow: bool, late: bool, broken: bool) -> SmokeCharge:
    """`broken`: its pairs carry less than a tenth of the others, which is a fault if the host is sure."""
    stages = seen.stages
    own_trip, other_trip = _medians([stage.trips for stage in stages], host)
    found = []
    if slow:
        found.append(_side(seen.one_way, host) or _pairs(stages, host))
    if late:
        words = f"round trips to it take {_trip(own_trip)}, and {_trip(other_trip)} between the others"
        found.append((words, f"round trips of about {_trip(other_trip)}", _trip(own_trip)))
    summary, expected, actual = map("; ".join, zip(*found, strict=True))
    sure = len(seen.hosts) >= LEAST_FOR_PAIR or (slow and seen.one_way and seen.one_way.names(host))
    kind = "slow" if slow else "late"
    return SmokeCharge(
        *worded("slow host", kind=kind, words=summary, expected=expected, seen=actual),
        hosts=(host,),
        confidence=Confidence.STRONG if sure else Confidence.SUSPECT,
        severity=Severity.FAIL if slow and sure and broken else Severity.WARN,
        evidence=tuple(_evidence(seen, host)),
        commands=_look(seen.plan, (host,)),
    )


def _pairs(stages: Sequence[PairStage], host: str) -> tuple[str, str, str]:
    """The summary, what is expected, and the actual rate, in words, for a host whose pairs are slow."""
    own, others = _medians([stage.rates for stage in stages], host)
    words = f"its network carries {bit_rate(own)}, {own / others:.0%} of what pairs of the other hosts do"
    return words, f"about {bit_rate(others)}, as between the other hosts", bit_rate(own)


def _side(one_way: OneWayRates | None, host: str) -> tuple[str, str, str] | None:
    """Like `_pairs`, if only what the host sends is slow, or only what it receives; None otherwise."""
    out, into = one_way.slow_sides(host) if one_way else (False, False)
    if one_way is None or out == into:
        return None
    ways = [way for way in one_way.turns if host == way[0 if out else 1]]
    own = median(one_way.middle[way] for way in ways)
    back = median(one_way.middle[way[::-1]] for way in ways)
    what = "what it sends to the others" if out else "what the others send to it"
    here, there = bit_rate(own), bit_rate(back)
    return f"{what} arrives at {here}, and at {there} the other way", there, here


def way_charge(seen: CellMeasurements, one_way: OneWayRates, way: Way) -> SmokeCharge:
    """One direction between two hosts."""
    own, back = one_way.middle[way], one_way.middle[way[::-1]]
    words = worded("way", way=way, own=bit_rate(own), back=bit_rate(back), share=own / back)
    return _between(seen, way, words, one_way.is_limited(way, BROKEN))


def _medians(stages: Sequence[Mapping[Pair, float]], host: str) -> tuple[float, float]:
    """The medians of the pairs that the host is in, and of the others."""
    own, others = zip(*(split(values, host) for values in stages), strict=True)
    return median(chain(*own)), median(chain(*others))


def pair_charge(seen: CellMeasurements, pair: Pair, broken: bool) -> SmokeCharge:
    stages = seen.stages
    own = median(stage.rates[pair] for stage in stages)
    usual = median(rate for stage in stages for other, rate in stage.rates.items() if other != pair)
    words = worded("pair", own=bit_rate(own), usual=bit_rate(usual), share=own / usual)
    return _between(seen, pair, words, broken)


def _between(seen: CellMeasurements, way: Way, words: Worded, broken: bool) -> SmokeCharge:
    """Either end may limit it, or what is between them."""
    return SmokeCharge(
        *words,
        hosts=tuple(sorted(way)),
        confidence=Confidence.SUSPECT,
        severity=Severity.FAIL if broken else Severity.WARN,
        undecided=True,
        evidence=tuple(_evidence(seen, way[0])),
        commands=(*_by_hand(seen.plan, way), *_look(seen.plan, way)),
    )


def _evidence(seen: CellMeasurements, host: str) -> Iterator[Evidence]:
    table = _turns(seen.one_way) if seen.one_way else _table(seen.stages, host)
    yield Evidence("transfers between hosts", table)
    segments = {way: said for way, said in sent_again(seen.result).items() if {*way} <= {*seen.hosts}}
    lines = [
        f"{sender} -> {receiver}: {again:,} of {sent:,} ({again / sent:.1%})"
        for (sender, receiver), (sent, again) in sorted(segments.items(), key=lambda each: -each[1][1])
        if sent >= MANY_SEGMENTS
    ]
    if lines:
        yield Evidence("TCP segments that were sent again", "\n".join(lines[:24]))


def _turns(one_way: OneWayRates) -> str:
    """All turns, one way per line, the slowest first."""
    ways = sorted(one_way.turns, key=lambda way: one_way.middle[way])
    return "\n".join(f"{way[0]} -> {way[1]}: {', '.join(map(bit_rate, one_way.turns[way]))}" for way in ways)


def _by_hand(plan: SmokePlan, way: Way) -> tuple[str, ...]:
    address = plan.addresses.get(way[1]) or way[1]
    return (
        f"ssh {quote(way[0])} tracepath -n {quote(address)}",
        f"iperf3 -c {quote(address)} -t 5    # package iperf3, on {way[0]}; first on {way[1]}: iperf3 -s -1",
    )


def _table(stages: Sequence[PairStage], host: str) -> str:
    """All pairs, one per line: first those of the host, then the others, the slowest of each first."""
    pairs = sorted(stages[0].rates, key=lambda pair: (host not in pair, stages[0].rates[pair]))
    lines = []
    for pair in pairs[:24]:
        rates = " and ".join(bit_rate(stage.rates[pair]) for stage in stages)
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


def bit_rate(value: float) -> str:
    """The rate in bits a second; `value` is in bytes a second."""
    bits = 8 * value
    return f"{bits / 1e9:.2f} Gbit/s" if bits >= 1e9 else f"{bits / 1e6:.1f} Mbit/s"


def _trip(seconds: float) -> str:
    return f"{1000 * seconds:.2f} ms"

"""The links of an acceptance test: below a floor, or slower than those of the peers, and who explains it.

They are judged by the floor, by the baseline and by the peers, in this order. A way is below a floor if its
quickest turn is, too: if turns vary, it is not the link that limits them, and it carries more than was seen.
"""

from collections.abc import Collection, Iterator, Sequence
from statistics import median
from typing import NamedTuple

import msgspec

from doctor.api import Confidence, Evidence, Place, Problem, Severity, fold
from doctor.facts.smoke import JudgedRun
from doctor.floors import CollectiveFloor, Floor
from doctor.smoke.judge.link_stages import Way
from doctor.smoke.judge.links import SLOWER_THAN_NETWORKS, measured_cells
from doctor.smoke.judge.one_way import OneWayRates
from doctor.smoke.judge.pairs import End, SlowLinks, slow_links
from doctor.smoke.onhost.sweepplan import SCOPES, TIMED, bus_share, size_text

BLIND = 0.1
"""If only a host below this share of the usual rate would have been named, peers have judged nothing."""
CARRY, SENDS, RECEIVES = "its links carry", "what it sends arrives at", "what it receives arrives at"
TABLE = 24
"""The most ways that evidence lists."""


class CollectiveRate(msgspec.Struct, frozen=True):
    """How long calls of a collective of one size took, each by its slowest rank."""

    scope: str
    op: str
    bytes: int
    ranks: int
    host: str | None
    calls: int
    least_ms: float
    median_ms: float
    worst_ms: float
    algorithm_bytes_per_second: int
    bus_bytes_per_second: int

    @property
    def name(self) -> str:
        return f"{self.scope} {self.op} {size_text(self.bytes)}"

    @property
    def at_best(self) -> float:
        """The bus bandwidth of the quickest call."""
        return self.bus_bytes_per_second * self.median_ms / self.least_ms


def named(rates: Sequence[CollectiveRate], floor: CollectiveFloor) -> list[CollectiveRate]:
    """What a floor is about. Where all ranks are the only group, this group has the name of all too."""
    only = rates[0].scope if len({each.scope for each in rates}) == 1 else "all"
    return [each for each in rates if each.name in (floor.name, floor.name.replace("all", only, 1))]


def collective_rates(run: JudgedRun) -> tuple[CollectiveRate, ...]:
    """Each collective of each size, in the order of the plan."""
    found: dict[tuple[int, int, int, str], CollectiveRate] = {}
    for seat, seen in zip(run.plan.seats, run.result.ranks, strict=True):
        for said in seen.sweep:
            host = seat.host if said.scope == "intra" else None
            least, middle, worst = (round(1e3 * seconds, 6) for seconds in said.seconds)
            rates = (round(s * said.bytes / said.seconds[1]) for s in (1, bus_share(said.op, said.ranks)))
            about = said.scope, said.op, said.bytes, said.ranks, host, said.calls
            place = SCOPES.index(said.scope), TIMED.index(said.op), said.bytes, host or ""
            found.setdefault(place, CollectiveRate(*about, least, middle, worst, *rates))
    return tuple(found[place] for place in sorted(found))


class Culprit(NamedTuple):
    """Who explains what these ways carry, in words."""

    words: str
    hosts: tuple[str, ...]
    ways: Collection[Way]
    subject: str | None = None


def rates_of_pairs(runs: Sequence[JudgedRun]) -> OneWayRates | None:
    """What the last run measured that measured all pairs; None if there is none."""
    results = [run.result for run in reversed(runs) if run.plan.turns]
    cells = (c for r in results if r.plan.backend not in SLOWER_THAN_NETWORKS for c in measured_cells(r))
    return next((cell.one_way for cell in cells if cell.one_way), None)


def below_floor(rates: OneWayRates, floor: Floor) -> Iterator[Problem]:
    best = {way: max(turns) for way, turns in rates.turns.items()}
    below = {way for way, own in best.items() if own < floor.value}
    for culprit in _explained(below, best, rates.hosts):
        most = max(best[way] for way in culprit.ways)
        words = f"{culprit.words} {rate(most)} at most; the floor is {floor.text}"
        yield _problem(rates, culprit, words, floor.text, Severity.FAIL)


def perhaps_below(rates: OneWayRates, floor: Floor) -> str:
    """The ways that are below the floor in most turns but not in all, in words; empty if there is none."""
    near = [way for way, own in rates.turns.items() if median(own) < floor.value <= max(own)]
    share = f"{len(near)} of {len(rates.turns)} ways"
    return f"{share} are below the floor {floor.text} in most turns, but not in all" if near else ""


def beside_peers(
    rates: OneWayRates, compared: Collection[End], *, floor_met: bool = False
) -> Iterator[Problem]:
    """A warning about a host of which the floor or the baseline judged what it sends or receives (0, 1)."""
    peers = slow_links(rates)
    culprits = _by_peers(rates, peers) if peers else _of_few(rates)
    for culprit, usual in culprits:
        own = median(rates.middle[way] for way in culprit.ways)
        words = f"{culprit.words} {rate(own)}, {own / usual:.0%} of {rate(usual)}"
        ends = {(host, way.index(host)) for host in culprit.hosts for way in culprit.ways}
        judged = floor_met or (not culprit.subject and ends <= {*compared})
        severity = Severity.WARN if judged else Severity.FAIL
        yield _problem(rates, culprit, words, f"about {rate(usual)}", severity)


def unjudged(rates: OneWayRates) -> str:
    """Why the peers judge nothing; empty if they do."""
    peers = slow_links(rates)
    if len(rates.hosts) < 3:
        return "two hosts have no peers: their rates are shown, and nothing judged them"
    if peers is None:
        return "rates varied too much to compare three hosts" if rates.doubtful_ways else ""
    if peers.too_many:
        return "so many hosts are slow that who is usual cannot be told"
    if peers.quick:
        return "some links carry far more than most: who is usual cannot be told"
    unseen = f"rates varied too much: only a host below {peers.limit:.0%} of the usual would be named"
    return unseen if peers.limit < BLIND else ""


def _by_peers(rates: OneWayRates, peers: SlowLinks) -> Iterator[tuple[Culprit, float]]:
    """Each culprit, and what its ways should carry."""
    if peers.sides:
        left, right = peers.sides
        across = {way for way in rates.turns if (way[0] in left) != (way[1] in left)}
        inside = median(own for way, own in rates.middle.items() if way not in across)
        subject = f"{fold(left)} | {fold(right)}"
        yield Culprit("links between two sides of the network carry", (), across, subject), inside
    for host, (out, into) in peers.hosts.items():
        words = CARRY if out and into else SENDS if out else RECEIVES
        ways = [way for way in rates.turns if (out and way[0] == host) or (into and way[1] == host)]
        yield Culprit(words, (host,), ways), peers.usual
    for culprit in _single(peers.ways):
        yield culprit, peers.usual


def _of_few(rates: OneWayRates) -> Iterator[tuple[Culprit, float]]:
    """Of two or three hosts: a host beside the pair without it, or a direction beside the other one."""
    guilty = [host for host in rates.hosts if rates.names(host)]
    for host in guilty:
        ways = [way for way in rates.turns if host in way]
        yield Culprit(CARRY, (host,), ways), max(rates.middle.values())
    for way in rates.slow_ways:
        if {*way}.isdisjoint(guilty):
            yield from ((culprit, rates.middle[way[::-1]]) for culprit in _single([way]))


def _explained(bad: Collection[Way], every: Collection[Way], hosts: Sequence[str]) -> Iterator[Culprit]:
    """The smallest explanation: all links, a host, what it sends or receives, else pairs and single ways."""
    if len(bad) == len(every) > 2:
        yield Culprit("all links carry", tuple(hosts), bad)
        return
    left = {*bad}
    suspects = sorted({host for way in bad for host in way})
    for words, ends in ((CARRY, (0, 1)), (SENDS, (0,)), (RECEIVES, (1,))):
        for host in suspects if len(hosts) > 2 else ():
            own = [way for way in every if any(way[end] == host for end in ends)]
            if left.intersection(own) and all(way in bad for way in own):
                yield Culprit(words, (host,), own)
                left.difference_update(own)
    yield from _single(left)


def _single(ways: Collection[Way]) -> Iterator[Culprit]:
    """Pairs of which both ways are bad, and single ways. Either end may limit them, or what is between."""
    for way in sorted(ways):
        if way[::-1] not in ways:
            words = f"what {way[0]} sends to {way[1]} arrives at"
            yield Culprit(words, way, [way], " -> ".join(way))
        elif way[0] < way[1]:
            yield Culprit("the link between two hosts carries", way, [way, way[::-1]], " <-> ".join(way))


def _problem(rates: OneWayRates, culprit: Culprit, words: str, expected: str, severity: Severity) -> Problem:
    hosts = culprit.hosts
    pair = hosts if culprit.subject and len(hosts) == 2 else ()
    slowest = sorted(rates.middle.items(), key=lambda each: each[1])[:TABLE]
    return Problem(
        words,
        expected=expected,
        actual=rate(median(rates.middle[way] for way in culprit.ways)),
        evidence=(
            Evidence(
                "transfers, median of the turns, the slowest first",
                "\n".join(f"{way[0]} -> {way[1]}: {rate(own)}" for way, own in slowest),
            ),
        ),
        subject=culprit.subject,
        hosts=hosts,
        where=(Place(pair[0], peer=pair[1]),) if pair else (),
        severity=severity,
        confidence=Confidence.SUSPECT if pair else Confidence.STRONG,
    )


def rate(value: float) -> str:
    """In bits a second; `value` is in bytes a second."""
    bits = 8 * value
    return f"{bits / 1e9:.2f} Gbit/s" if bits >= 1e9 else f"{bits / 1e6:.1f} Mbit/s"

"""The links of a new rack or a repaired node, all pairs of it, and collectives by size: `doctor accept`.

Links are judged by the floor, by the baseline and by the peers, in this order. A way is below a floor if its
quickest turn is, too: if turns vary, it is not the link that limits them, and it carries more than was seen.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median, quantiles
from typing import NamedTuple

from doctor.api import (
    Confidence,
    Damage,
    Evidence,
    Place,
    Problem,
    Scope,
    Severity,
    Undecided,
    check,
    fold,
    maybe,
)
from doctor.facts.baseline import COLLECTIVE_FLOORS, FLOOR, SINCE, CollectiveFloor, Floor, SinceBaseline
from doctor.facts.smoke import SMOKE, SmokeRounds
from doctor.rules.accept import LEFT_OF_MANY, CollectiveRate, collective_rates, named, rates_of_pairs
from doctor.rules.smoke import accused
from doctor.smoke.judge.link_charges import MANY_SEGMENTS, bit_rate
from doctor.smoke.judge.link_stages import Way, sent_again
from doctor.smoke.judge.one_way import OneWayRates
from doctor.smoke.judge.speed import MAD

LINES = 44
"""The most sizes that evidence lists: all of four hosts."""


@check(
    "accept-slow-link",
    SMOKE,
    FLOOR,
    maybe(SINCE),
    scope=Scope.CLUSTER,
    damage=Damage.LOAD,
    remedy="look-at-link",
)
def accept_slow_link(
    seen: SmokeRounds, floor: Floor | None, since: SinceBaseline | None
) -> Iterator[Problem]:
    """A link carries less than its floor, or far less than those of the other hosts.

    Why it matters: a ring is as fast as its slowest link. What is accepted with a slow port, cable or switch
    stays slow for years.

    How it is known: every pair of hosts sends, one way at a time, in rounds in which nobody is in two pairs;
    up to seven hosts seven times, more hosts four times, above 64 hosts in a few rounds near and far. What
    they carry is judged by the floor (`--floor`), then by the baseline (`--baseline`), then by the peers.
    Below a floor is what is below it even in its best turn. Among four hosts and more, the smallest
    explanation is named: two sides of a network, a host, what it sends or what it receives, or single
    directions. Its limit is 80 % of the usual (70 % for single directions) and six times the noise of the
    run, and it must be slow again in two turns that decided nothing before. Of two or three hosts, a
    direction must be steadily below half of the other one, or a host below a quarter of the pair without it.
    Near hosts send what was lost again so soon that links stay fast: if none is slow, who loses 1 % of what
    TCP sends, and ten times as much as all others, is named as well.
    If a floor was met, or a host carries what it did in the baseline, what differs from peers is a warning.

    Numbers that nothing judged are no pass: two hosts without a floor and a baseline, rates so uneven that
    only a host below a half would be named, links of which some carry far more than most, a host
    that was slow in some turns alone, or a pair that was not measured, end with exit code 3.

    What to do: check the speed and the error counters of the host's port and of the switch port at the other
    end; exchange cable or optics with a fast host, and see whether the fault moves with them.
    """
    rates, floor = rates_of_pairs(seen.runs), floor if floor and floor.value else None
    known = since.steady if since else {}
    steady = {(host, ENDS[key]) for (host, key), steadily in known.items() if steadily and key in ENDS}
    if rates is not None:
        below = [*_below_floor(rates, floor)] if floor else []
        named = [(each.hosts, each.subject) for each in below]
        peers = [*_beside_peers(rates, steady, floor_met=floor is not None)]
        yield from below
        yield from (each for each in peers if (each.hosts, each.subject) not in named)
        yield from () if below or peers else _losing(seen, rates)
    yield from accused(seen, "accept-slow-link", "bandwidth")
    if rates is None:
        raise Undecided("no pair of hosts was measured", essential=True)
    compared = all((way[0], 0) in steady or (way[1], 1) in steady for way in rates.turns)
    if why := _perhaps_below(rates, floor) if floor else "" if compared else _unjudged(rates):
        raise Undecided(why, essential=True)
    if rates.missing:
        hosts = tuple(sorted({host for way in rates.missing for host in way}))
        raise Undecided("not all pairs of hosts were measured in all turns", hosts, essential=True)


@check(
    "accept-slow-collective",
    SMOKE,
    COLLECTIVE_FLOORS,
    scope=Scope.CLUSTER,
    damage=Damage.LOAD,
    remedy="look-at-link",
)
def accept_slow_collective(seen: SmokeRounds, floors: tuple[CollectiveFloor, ...]) -> Iterator[Problem]:
    """A collective carries less than its floor.

    Why it matters: a step of a training ends when its slowest collective does.

    How it is known: `doctor accept` times collectives of 1 KB to 1 GB inside each host, between one rank of
    each host, and over all ranks, on the backend of the job. The slowest rank of each call counts. A floor,
    such as `inter all_reduce 256MB >= 180 GB/s`, is about the bus bandwidth, as nccl-tests prints it. Below
    it is what is below it even in the quickest call; a median below it alone is undecided, and so is a size
    that time or memory did not allow: exit code 3. Inside hosts, the hosts below are named. A ring between
    hosts is as slow as its slowest hop and does not say which that is: what `accept-slow-link` says about
    pairs does.

    What to do: if a link is named too, begin there. If none is, compare the settings of the library (which
    adapters, which algorithm) and the placement of ranks with those of a rack that is good.
    """
    runs = (collective_rates(run) for run in reversed(seen.runs))
    rates: Sequence[CollectiveRate] = next(filter(None, runs), ())
    open_questions = []
    for floor in floors:
        own = named(rates, floor)
        below = [each for each in own if each.at_best < floor.value]
        near = [each for each in own if each.bus_bytes_per_second < floor.value]
        if below:
            yield _below(floor, below, rates)
        elif near:
            where = f" on {fold(hosts)}" if (hosts := [each.host for each in near if each.host]) else ""
            open_questions.append(f"most calls{where} are below the floor {floor.text}, but not all")
        elif not own:
            open_questions.append(f"the floor {floor.text} judged nothing: its size was not reached")
    if open_questions:
        raise Undecided("; ".join(open_questions), essential=True)


def _below(
    floor: CollectiveFloor, below: Sequence[CollectiveRate], rates: Sequence[CollectiveRate]
) -> Problem:
    alike = [each for each in rates if (each.scope, each.op) == (below[0].scope, below[0].op)]
    best, hosts = max(each.at_best for each in below), tuple(each.host for each in below if each.host)
    what = floor.name if hosts else "it"
    return Problem(
        f"{what} carries {_text(best)} at most; the floor is {_text(floor.value)}",
        expected=floor.text,
        actual=_text(median(each.bus_bytes_per_second for each in below)),
        evidence=(
            Evidence(
                "bus bandwidth, and the least, median and worst time of a call",
                "\n".join(map(_line, alike[-LINES:])),
            ),
        ),
        subject=floor.name,
        hosts=hosts,
        confidence=Confidence.STRONG,
    )


def _line(rate: CollectiveRate) -> str:
    times = ", ".join(f"{each:.3g}" for each in (rate.least_ms, rate.median_ms, rate.worst_ms))
    on = f" on {rate.host}" if rate.host else ""
    return f"{rate.name}{on}: {_text(rate.bus_bytes_per_second)}, {times} ms"


def _text(rate: float) -> str:
    return f"{rate / 1e9:.3g} GB/s" if rate >= 1e9 else f"{rate / 1e6:.3g} MB/s"


ENDS = {"out_gbit_s": 0, "in_gbit_s": 1}
End = tuple[str, int]
"""A host as sender (0) or as receiver (1)."""
AGAIN = 2
"""The last turns, which only confirm."""
LEAST_HOSTS = 4
SLOWER, SLOWER_PAIR, TIMES = math.log(0.8), math.log(0.7), 6.0
LEFT = {1: 1.0, 2: 0.83, 3: 0.75, 4: 0.65}
"""What is left of the noise of one turn in the better of so many."""
SURE_NOISE, MOST_NAMED = 0.1, 0.25
"""With more noise, no more than this share of the hosts is named."""
CONTRADICTING = 0.1
SWEEPS = 4


@dataclass(frozen=True, slots=True)
class SlowLinks:
    """`hosts`: host -> whether what it sends is slow, and what it receives. `usual` is the rate of
    the others. `limit`: a host below this share of it would have been named.
    """

    usual: float
    limit: float
    noise: float
    hosts: Mapping[str, tuple[bool, bool]] = field(default_factory=dict)
    ways: Collection[Way] = ()
    sides: tuple[tuple[str, ...], ...] = ()
    too_many: bool = False
    quick: Collection[Way] = ()
    """Ways as far above the usual as a slow host is below it: perhaps most hosts are slow."""
    doubted: Collection[str] = ()
    """Hosts that were slow, and not in the last turns, or not without the time that ranks waited."""


BLIND = 0.5
"""If only a host below this share of the usual rate would have been named, peers have judged nothing."""

CARRY, SENDS, RECEIVES = "its links carry", "what it sends arrives at", "what it receives arrives at"
LOST = {CARRY: "from it and to it", SENDS: "that it sends", RECEIVES: "to it"}
MANY_LOST, FAR_MORE, ALIKE_LOSS = 0.01, 10, 4
"""Links that lose nothing send up to 0.4 % again on a busy machine. All that a culprit loses is within a
quarter of its worst way, and all other ways lose less than a tenth of that.
"""

TABLE = 24
"""The most ways that evidence lists."""


class _Culprit(NamedTuple):
    """Who explains what these ways carry, in words."""

    words: str
    hosts: tuple[str, ...]
    ways: Collection[Way]
    subject: str | None = None


def _below_floor(rates: OneWayRates, floor: Floor) -> Iterator[Problem]:
    best = {way: max(turns) for way, turns in rates.turns.items()}
    below = {way for way, own in best.items() if own < floor.value}
    for culprit in _explained(below, best, rates.hosts):
        most = max(best[way] for way in culprit.ways)
        words = f"{culprit.words} {bit_rate(most)} at most; the floor is {floor.text}"
        yield _problem(rates, culprit, words, floor.text, Severity.FAIL)


def _perhaps_below(rates: OneWayRates, floor: Floor) -> str:
    """The ways that are below the floor in most turns but not in all, in words; empty if there is none."""
    near = [way for way, own in rates.turns.items() if median(own) < floor.value <= max(own)]
    share = f"{len(near)} of {len(rates.turns)} ways"
    return f"{share} are below the floor {floor.text} in most turns, but not in all" if near else ""


def _beside_peers(
    rates: OneWayRates, compared: Collection[End], *, floor_met: bool = False
) -> Iterator[Problem]:
    """A warning about a host of which the floor or the baseline judged what it sends or receives (0, 1)."""
    peers = slow_links(rates)
    culprits = _by_peers(rates, peers) if peers else _of_few(rates)
    for culprit, usual in culprits:
        own = median(rates.middle[way] for way in culprit.ways)
        words = f"{culprit.words} {bit_rate(own)}, {own / usual:.0%} of {bit_rate(usual)}"
        ends = {(host, way.index(host)) for host in culprit.hosts for way in culprit.ways}
        judged = floor_met or (not culprit.subject and ends <= {*compared})
        severity = Severity.WARN if judged else Severity.FAIL
        yield _problem(rates, culprit, words, f"about {bit_rate(usual)}", severity)


def _losing(seen: SmokeRounds, rates: OneWayRates) -> Iterator[Problem]:
    """Who loses part of what links carry, though they carry as much as the others."""
    counted = next(sent_again(run.result) for run in reversed(seen.runs) if run.plan.turns)
    known = ((way, counted.get(way, (0, 0))) for way in rates.turns)
    shares = {way: again / sent for way, (sent, again) in known if sent >= MANY_SEGMENTS}
    most = max(shares.values(), default=0.0)
    lossy = {way: share for way, share in shares.items() if share >= most / ALIKE_LOSS}
    others = max((share for way, share in shares.items() if way not in lossy), default=most)
    if most < MANY_LOST or others > most / FAR_MORE:
        return
    lines = [
        f"{way[0]} -> {way[1]}: {shares[way]:.2%}" for way in sorted(shares, key=lambda way: -shares[way])
    ]
    for culprit in _explained(lossy, shares, rates.hosts):
        what = LOST.get(culprit.words) or f"between {' and '.join(culprit.hosts)}"
        own, subject = median(shares[way] for way in culprit.ways), culprit.subject
        yield Problem(
            f"{own:.1%} of the TCP segments {what} were sent again, and {others:.2%} of the others at most",
            expected=f"about {others:.2%}",
            actual=f"{own:.1%}",
            evidence=(Evidence("TCP segments that were sent again", "\n".join(lines[:TABLE])),),
            subject=subject,
            hosts=culprit.hosts,
            where=(Place(culprit.hosts[0], peer=culprit.hosts[1]),) if subject else (),
            confidence=Confidence.SUSPECT if subject else Confidence.STRONG,
        )


def _unjudged(rates: OneWayRates) -> str:
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
    if peers.doubted:
        return f"{fold(peers.doubted)} carried less than the others, but not each time"
    unseen = f"rates varied too much: only a host below {peers.limit:.0%} of the usual would be named"
    return unseen if peers.limit < BLIND else ""


def _by_peers(rates: OneWayRates, peers: SlowLinks) -> Iterator[tuple[_Culprit, float]]:
    """Each culprit, and what its ways should carry."""
    if peers.sides:
        left, right = peers.sides
        across = {way for way in rates.turns if (way[0] in left) != (way[1] in left)}
        inside = median(own for way, own in rates.middle.items() if way not in across)
        subject = f"{fold(left)} | {fold(right)}"
        yield _Culprit("links between two sides of the network carry", (), across, subject), inside
    for host, (out, into) in peers.hosts.items():
        words = CARRY if out and into else SENDS if out else RECEIVES
        ways = [way for way in rates.turns if (out and way[0] == host) or (into and way[1] == host)]
        yield _Culprit(words, (host,), ways), peers.usual
    for culprit in _single(peers.ways):
        yield culprit, peers.usual


def _of_few(rates: OneWayRates) -> Iterator[tuple[_Culprit, float]]:
    """Of two or three hosts: a host beside the pair without it, or a direction beside the other one."""
    guilty = [host for host in rates.hosts if rates.names(host)]
    for host in guilty:
        ways = [way for way in rates.turns if host in way]
        yield _Culprit(CARRY, (host,), ways), max(rates.middle.values())
    for way in rates.slow_ways:
        if {*way}.isdisjoint(guilty):
            yield from ((culprit, rates.middle[way[::-1]]) for culprit in _single([way]))


def _explained(bad: Collection[Way], every: Collection[Way], hosts: Sequence[str]) -> Iterator[_Culprit]:
    """The smallest explanation: all links, a host, what it sends or receives, else pairs and single ways."""
    if len(bad) == len(every) > 2:
        yield _Culprit("all links carry", tuple(hosts), bad)
        return
    left = {*bad}
    suspects = sorted({host for way in bad for host in way})
    for words, ends in ((CARRY, (0, 1)), (SENDS, (0,)), (RECEIVES, (1,))):
        for host in suspects if len(hosts) > 2 else ():
            own = [way for way in every if any(way[end] == host for end in ends)]
            if left.intersection(own) and all(way in bad for way in own):
                yield _Culprit(words, (host,), own)
                left.difference_update(own)
    yield from _single(left)


def _single(ways: Collection[Way]) -> Iterator[_Culprit]:
    """Pairs of which both ways are bad, and single ways. Either end may limit them, or what is between."""
    for way in sorted(ways):
        if way[::-1] not in ways:
            words = f"what {way[0]} sends to {way[1]} arrives at"
            yield _Culprit(words, way, [way], " -> ".join(way))
        elif way[0] < way[1]:
            yield _Culprit("the link between two hosts carries", way, [way, way[::-1]], " <-> ".join(way))


def _problem(rates: OneWayRates, culprit: _Culprit, words: str, expected: str, severity: Severity) -> Problem:
    hosts = culprit.hosts
    pair = hosts if culprit.subject and len(hosts) == 2 else ()
    slowest = sorted(rates.middle.items(), key=lambda each: each[1])[:TABLE]
    return Problem(
        words,
        expected=expected,
        actual=bit_rate(median(rates.middle[way] for way in culprit.ways)),
        evidence=(
            Evidence(
                "transfers, median of the turns, the slowest first",
                "\n".join(f"{way[0]} -> {way[1]}: {bit_rate(own)}" for way, own in slowest),
            ),
        ),
        subject=culprit.subject,
        hosts=hosts,
        where=(Place(pair[0], peer=pair[1]),) if pair else (),
        severity=severity,
        confidence=Confidence.SUSPECT if pair else Confidence.STRONG,
    )


def slow_links(rates: OneWayRates) -> SlowLinks | None:
    """Who makes links slow: the smallest explanation. None for fewer than four hosts, or if a way has too few
    turns.

    First the two sides of a network, each quick inside and slow to the other; then a host, in what it sends,
    what it receives, or both; then a pair or one direction of it, between hosts that are not named. Each
    limit widens with the noise that the run itself measured, and whoever is named must also be slow in the
    last turns, which decided nothing before, and without the time that ranks waited for a processor. If half
    of the hosts would be named, nobody is: who is usual cannot be told. By simulation with the noise of a
    shared machine, fewer than one healthy run in a thousand is accused.
    """
    turns = rates.turns
    hosts = sorted({host for way in turns for host in way})
    if len(hosts) < LEAST_HOSTS or any(len(own) <= AGAIN for own in turns.values()):
        return None
    first = {way: [math.log(rate) for rate in own[:-AGAIN]] for way, own in turns.items()}
    again = {way: math.log(max(*own[-AGAIN:], median(rates.at_best[way]))) for way, own in turns.items()}
    value = {way: median(own) if len(own) >= 5 else max(own) for way, own in first.items()}
    usual = median(value.values())
    noise = _noise(first)
    limit = math.exp(_limit(hosts, _fitted(hosts, value), noise))
    known = SlowLinks(math.exp(usual), limit, noise)
    confirmed = {way: max(value[way], again[way]) for way in value}
    sides = _sides(hosts, value, noise)
    if sides and _sides(hosts, confirmed, noise):
        return replace(known, sides=sides)
    suspects = _slow_ends(hosts, value, noise)
    doubted = {way for way in value if suspects.keys() & {(way[0], 0), (way[1], 1)}}
    mixed = {way: confirmed[way] if way in doubted else value[way] for way in value}
    named = {end: share for end, share in _slow_ends(hosts, mixed, noise).items() if end in suspects}
    guilty = {host for host, _ in named}
    most = len(hosts) / 2 if noise <= SURE_NOISE else MOST_NAMED * len(hosts) + 0.5
    if len(guilty) >= most:
        return replace(known, too_many=True)
    rest = {way: own for way, own in value.items() if guilty.isdisjoint(way)}
    ways = _slow_ways(rest, again, noise, SLOWER_PAIR)
    again = {way: -math.log(min(own[-AGAIN:])) for way, own in turns.items()}
    quick = _slow_ways({way: -own for way, own in rest.items()}, again, noise, SLOWER)
    usual = median((rest or value).values())
    return replace(
        known,
        usual=math.exp(usual),
        hosts={host: ((host, 0) in named, (host, 1) in named) for host in sorted(guilty)},
        ways=ways,
        quick=quick,
        doubted=sorted({host for host, _ in suspects} - guilty),
    )


def _noise(first: Mapping[Way, Sequence[float]]) -> float:
    """How far a way is from itself in one turn, less what taking several of them leaves."""
    apart = [abs(b - a) for own in first.values() for a, b in pairwise(own)]
    number = min(map(len, first.values()))
    left = LEFT_OF_MANY if number >= 5 else LEFT[number]
    return MAD * median(apart) / math.sqrt(2) * left if apart else 0.0


def _limit(hosts: Sequence[str], effects: Mapping[End, float], noise: float) -> float:
    """The logarithm of the share below which an end is slow: beyond what ends are apart, and noise."""
    by_noise = 1.25 * noise / math.sqrt(min(len(hosts) - 1, 4))
    return min(SLOWER, -TIMES * max(MAD * median(map(abs, effects.values())), by_noise))


def _slow_ends(hosts: Sequence[str], value: Mapping[Way, float], noise: float) -> dict[End, float]:
    """The senders and receivers below the limit, as logarithms of their share of the usual."""
    effects = _fitted(hosts, value)
    limit = _limit(hosts, effects, noise)
    left = {way: own - effects[way[0], 0] - effects[way[1], 1] for way, own in value.items()}
    usual, middle = median(left.values()), median(value.values())

    def wholly(end: End) -> bool:
        """Whether nearly all its ways are slow: two of the three of four hosts may be two single ways."""
        own = [way for way in value if way[end[1]] == end[0]]
        alone = (min(value[way] - middle, left[way] + effects[end] - usual) for way in own)
        return sum(each >= SLOWER for each in alone) <= CONTRADICTING * len(own)

    return {end: own for end, own in effects.items() if own < limit and wholly(end)}


def _fitted(hosts: Sequence[str], value: Mapping[Way, float]) -> dict[End, float]:
    """What each sender and receiver adds to the usual, by sweeps of medians."""
    ends = [(host, end) for end in (0, 1) for host in hosts]
    effects = dict.fromkeys(ends, 0.0)
    own: dict[End, list[Way]] = {end: [] for end in ends}
    for way in value:
        own[way[0], 0].append(way)
        own[way[1], 1].append(way)
    for _ in range(SWEEPS):
        for side in (0, 1):
            usual = median(value[way] - effects[way[0], 0] - effects[way[1], 1] for way in value)
            for end in ends[side * len(hosts) : (side + 1) * len(hosts)]:
                left = [value[way] - effects[way[1 - side], 1 - side] - usual for way in own[end]]
                effects[end] = median(left) if left else 0.0
            middle = median(effects[host, side] for host in hosts)
            for host in hosts:
                effects[host, side] -= middle
    return effects


def _slow_ways(
    value: Mapping[Way, float], again: Mapping[Way, float], noise: float, least: float
) -> tuple[Way, ...]:
    """Those that are slow by this and by the noise, and are so again."""
    if len(value) < 2 * LEAST_HOSTS:
        return ()
    usual = median(value.values())
    spread = max(noise, MAD * median(abs(own - usual) for own in value.values()))
    limit = usual + min(least, -TIMES * spread)
    return tuple(way for way, own in value.items() if max(own, again[way]) < limit)


def _sides(hosts: Sequence[str], value: Mapping[Way, float], noise: float) -> tuple[tuple[str, ...], ...]:
    """Two groups of hosts, quick inside and slow between them; () if there are none."""
    pairs = {
        way: min(own, value[way[::-1]])
        for way, own in value.items()
        if way[0] < way[1] and way[::-1] in value
    }
    if len(pairs) < 2 * LEAST_HOSTS - 2:
        return ()
    tenths = quantiles(pairs.values(), n=10, method="inclusive")
    middle = (tenths[0] + tenths[-1]) / 2
    left = _split(hosts, {pair: 1.0 if own > middle else -1.0 for pair, own in pairs.items()})
    right = [host for host in hosts if host not in left]
    if min(len(left), len(right)) < max(2, len(hosts) // 8):
        return ()
    groups = [[own for pair, own in pairs.items() if {*pair} <= {*side}] for side in (left, right)]
    across = [own for pair, own in pairs.items() if len({*pair} & {*left}) == 1]
    inside = groups[0] + groups[1]
    if not across or any(not own or median(own) < middle for own in groups):
        return ()  # two slow hosts are slow with each other too
    wrong = (
        sum(own < middle for own in inside) / len(inside),
        sum(own > middle for own in across) / len(across),
    )
    gap = median(inside) - median(across)
    enough = max(-SLOWER, TIMES * noise / math.sqrt(min(len(inside), len(across), 16)))
    return (tuple(left), tuple(right)) if max(wrong) <= CONTRADICTING and gap > enough else ()


def _split(hosts: Sequence[str], signs: Mapping[Way, float]) -> list[str]:
    """The hosts on the first one's side: by the leading vector of the signs, from a fixed start."""
    vector = {host: 1.0 + (number * 0.618) % 1.0 * (-1) ** number for number, host in enumerate(hosts)}
    for _ in range(40):
        after = dict(vector)
        for (one, other), sign in signs.items():
            after[one] += sign * vector[other]
            after[other] += sign * vector[one]
        length = math.sqrt(sum(own * own for own in after.values())) or 1.0
        vector = {host: own / length for host, own in after.items()}
    return [host for host in hosts if (vector[host] > 0) == (vector[hosts[0]] > 0)]

"""Who makes links slow, from transfers of all pairs, one way at a time and several turns each: the smallest
explanation.

First the two sides of a network, each quick inside and slow to the other; then a host, in what it sends, what
it receives, or both; then a pair or one direction of it, between hosts that are not named. Each limit widens
with the noise that the run itself measured, and whoever is named must also be slow in the last turns, which
decided nothing before, and without the time that ranks waited for a processor. If half of the hosts would be
named, nobody is: who is usual cannot be told. By simulation with the noise of a shared machine, fewer
than one healthy run in a thousand is accused.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median, quantiles

from doctor.smoke.judge.link_stages import Way
from doctor.smoke.judge.one_way import OneWayRates

AGAIN = 2
"""The last turns, which only confirm."""
LEAST_HOSTS = 4
SLOWER, SLOWER_PAIR, TIMES = math.log(0.8), math.log(0.7), 6.0
LEFT = {1: 1.0, 2: 0.83, 3: 0.75, 4: 0.65}
LEFT_OF_MANY = 0.56
"""What is left of the noise of one turn: of the better of a few, or of the median of five."""
MAD = 1.4826
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


def slow_links(rates: OneWayRates) -> SlowLinks | None:
    """None for fewer than four hosts, or if a way has too few turns."""
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
    )


End = tuple[str, int]
"""A host as sender (0) or as receiver (1)."""


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
    return {end: own for end, own in effects.items() if own < limit}


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

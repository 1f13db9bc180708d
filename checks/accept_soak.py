"""Who slowed down or ended in a soak: `doctor accept --for`.

Each host is compared with the others in the same round, so that what slows all cancels out, and then with
itself at other times, so that hosts may be of different kinds.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from itertools import pairwise
from statistics import median, median_high
from typing import NamedTuple

from doctor.api import (
    Confidence,
    Damage,
    Evidence,
    Problem,
    Scope,
    Severity,
    Undecided,
    check,
)
from doctor.facts.smoke import SMOKE, SOAK, SmokeRounds, Soak
from doctor.smoke.judge.speed import MAD, spread

TRAIN = "train"
DOES = {
    TRAIN: "computes steps",
    "matmul": "multiplies matrices",
    "copy": "copies memory",
    "sends": "sends",
    "receives": "receives",
    "write": "writes to",
    "read": "reads from",
}
LEAST = -math.log(0.9)
"""The least effect, as a logarithm."""
TIMES = 6.0
LEAST_POINTS, LEAST_SLOW = 6, 3
"""So many rounds there must be, and so many of them must be slow one after the other."""
LEAST_HOSTS = 3
MANY = 8
CLEAR = 0.8
"""The share of rounds that must be on their side of the middle."""
LINES, BEFORE = 44, 3
MOST_SPELLS = 3


class Spell(NamedTuple):
    """The points from `first` until before `end`, by how much they are slower as a logarithm, and whether
    ever more.
    """

    first: int
    end: int
    effect: float
    ramp: bool


@check(
    "accept-soak",
    SMOKE,
    SOAK,
    scope=Scope.CLUSTER,
    damage=Damage.LOAD,
    remedy="find-what-slows",
)
def accept_soak(_: SmokeRounds, soak: Soak) -> Iterator[Problem]:
    """A host slowed down or ended in a soak.

    Why it matters: what is good for a minute may be bad for an hour: what warms up throttles, a link loses
    its light, a host restarts.

    How it is known: until the time of `--for` is over, training, transfers between hosts and what each host
    does alone are measured in rounds. In each round a host is compared with the median of the others, so that
    what slows all of them is nobody's fault. It is slow if it was below its own share at other times by 10 %
    and by six times the noise of the soak, in three rounds one after the other, or more if there are many.
    That may have lasted to the end, or have ended, and it may have grown. A host that breaks a round is left
    out from then on.

    Fewer than six rounds, or fewer than three hosts, judge nobody's pace: exit code 3.

    What to do: see what else happened on the host at that time: its kernel's log, the clocks and temperatures
    of its devices, its fans and power, what else ran there.
    """
    for host, at, why in soak.left:
        yield Problem(
            f"ended in the soak at {_clock(at, soak)}: {why}",
            subject="end",
            hosts=(host,),
            severity=Severity.FAIL,
        )
    found = [*_spells(soak)]
    slow = {host for host, _, _ in found}
    hosts = {host for _, figures in soak.rounds for own in figures.values() for host in own}
    if 2 * len(slow) > len(hosts):
        raise Undecided("so many hosts slowed down that who is usual cannot be told", essential=True)
    for host in sorted(slow):
        own = [(what, spell) for other, what, spell in found if other == host]
        for among in _together(own):
            yield _problem(soak, host, among)
    if len(soak.rounds) < LEAST_POINTS:
        raise Undecided(
            f"rounds were compared from {LEAST_POINTS} on, and there were {len(soak.rounds)}", essential=True
        )
    if len(hosts) < LEAST_HOSTS:
        raise Undecided("fewer than three hosts have no peers: nothing judged their pace", essential=True)


def _spells(soak: Soak) -> Iterator[tuple[str, str, Spell]]:
    """Host, what it did more slowly, and when."""
    for what in dict.fromkeys(what for _, figures in soak.rounds for what in figures):
        series = [figures.get(what, {}) for _, figures in soak.rounds]
        beside = _beside(series)
        noise = _noise(beside)
        for host, ratios in beside.items():
            own = {n: math.log(series[n][host]) for n in ratios}
            for spell in spells(ratios, noise[host]):
                inside = [own[n] for n in own if spell.first <= n < spell.end]
                outside = [own[n] for n in own if not spell.first <= n < spell.end]
                if median(outside) - median(inside) >= LEAST / 2:  # else it is the others who changed
                    yield host, what, spell


def _beside(series: Sequence[Mapping[str, float]]) -> dict[str, dict[int, float]]:
    """Host -> point -> what it did there beside the median of the others, as a logarithm."""
    found: dict[str, dict[int, float]] = {}
    for number, own in enumerate(series):
        logs = {host: math.log(value) for host, value in own.items()}
        if len(logs) >= LEAST_HOSTS:
            for host, value in logs.items():
                usual = median_high(other for name, other in logs.items() if name != host)
                found.setdefault(host, {})[number] = value - usual
    return found


def _noise(beside: Mapping[str, Mapping[int, float]]) -> dict[str, float]:
    """How far hosts are from themselves in the next round, and the others of a host in all rounds: hosts that
    are shared wander.
    """
    apart = [abs(b - a) for own in beside.values() for a, b in pairwise(own.values())]
    wander = {host: spread([*own.values()]) for host, own in beside.items()}
    return {
        host: max(
            MAD * median(apart) / math.sqrt(2) if apart else 0.0,
            median(own for other, own in wander.items() if other != host),
        )
        for host in beside
    }


def spells(ratios: Mapping[int, float], noise: float) -> Iterator[Spell]:
    """When a host was slower than at other times, the worst first."""
    left = dict(ratios)
    for _ in range(MOST_SPELLS):
        spell = _worst(left, noise)
        if spell is None:
            return
        yield spell
        left = {n: value for n, value in left.items() if not spell.first <= n < spell.end}


def _worst(ratios: Mapping[int, float], noise: float) -> Spell | None:
    if len(ratios) < LEAST_POINTS:
        return None
    places, values = [*ratios], [*ratios.values()]
    ordered = sorted(values)
    usual = ordered[3 * len(values) // 4]
    slow = min(ordered[LEAST_SLOW - 1], usual - LEAST)
    for _ in range(3):
        first, end = _slow_part(values, usual, (usual + slow) / 2)
        inside, outside = values[first:end], values[:first] + values[end:]
        if not inside or not outside:
            return None
        usual = median(outside) if len(outside) >= LEAST_SLOW else usual
        slow = min(median(inside), usual - LEAST)
    effect, middle = usual - median(inside), (usual + slow) / 2
    if min(len(inside), len(outside)) < max(LEAST_SLOW, len(values).bit_length() - 2):
        return None
    few = 1 / min(len(inside), MANY) + 1 / min(len(outside), MANY)
    limit = TIMES * max(noise, spread(outside)) * math.sqrt(few)
    clear = sum(value < middle for value in inside) >= CLEAR * len(inside) and sum(
        value > middle for value in outside
    ) >= CLEAR * len(outside)
    if effect < max(LEAST, limit) or not clear:
        return None
    third = len(inside) // 3
    early, late = median(inside[:third]), median(inside[-third:])
    ramp = len(inside) >= LEAST_POINTS and early - late >= max(LEAST / 2, effect / 2, 3 * noise)
    while ramp and first and values[first - 1] < usual - LEAST / 2:
        first -= 1
    return Spell(places[first], places[end - 1] + 1, usual - late if ramp else effect, ramp)


def _slow_part(values: Sequence[float], usual: float, middle: float) -> tuple[int, int]:
    """The part with the largest sum of what its values are below the middle; single ones do not decide."""
    best, total, start, found = 0.0, 0.0, 0, (0, 0)
    for place, value in enumerate(values):
        if total <= 0:
            total, start = 0.0, place
        total += max(-2 * (usual - middle), min(3 * (usual - middle), middle - value))
        if total > best:
            best, found = total, (start, place + 1)
    return found


def _together(own: Sequence[tuple[str, Spell]]) -> Iterator[list[tuple[str, Spell]]]:
    """What was slow at the same time is one finding; what trains comes first, then the largest effect."""
    left = sorted(own, key=lambda each: (each[0] != TRAIN, -each[1].effect))
    while left:
        _, spell = left[0]
        yield [each for each in left if each[1].first < spell.end and spell.first < each[1].end]
        left = [each for each in left if not (each[1].first < spell.end and spell.first < each[1].end)]


def _problem(soak: Soak, host: str, among: Sequence[tuple[str, Spell]]) -> Problem:
    what, spell = among[0]
    begin, n = _clock(soak.rounds[spell.first][0], soak), soak.every * (spell.end - spell.first)
    does, share = _does(what), f"{1 - math.exp(-spell.effect):.0%}"
    if spell.ramp:
        words = (
            f"{does} ever more slowly than its peers for {n} rounds from about {begin} on and {share} at last"
        )
    elif spell.end == len(soak.rounds):
        words = f"{does} {share} more slowly than its peers for {n} rounds from {begin} on"
    else:
        end = _clock(soak.rounds[spell.end][0], soak)
        words = f"{does} {share} more slowly than its peers for {n} rounds from {begin} to {end}"
    return Problem(
        words,
        expected="as its peers in the same round",
        actual=share,
        evidence=tuple(
            Evidence(f"{_does(other)}, beside its peers", "\n".join(_lines(soak, host, other, each)))
            for other, each in among
        ),
        subject=what,
        hosts=(host,),
        severity=Severity.FAIL,
        confidence=Confidence.STRONG,
    )


def _lines(soak: Soak, host: str, what: str, spell: Spell) -> Iterator[str]:
    """Its share of what its peers do, in the rounds before, in and after the spell."""
    first = max(0, spell.first - BEFORE)
    for at, did in soak.rounds[first : min(spell.end + BEFORE, first + LINES)]:
        figures = did.get(what, {})
        if host in figures and len(figures) >= LEAST_HOSTS:
            usual = median_high(value for other, value in figures.items() if other != host)
            yield f"{_clock(at, soak)}: {figures[host] / usual:.0%}"


def _does(what: str) -> str:
    """What a host does, in words."""
    name, _, folder = what.partition(" ")
    return f"{DOES[name]} {folder}".strip()


def _clock(at: float, soak: Soak) -> str:
    """The time of the day; with the day, if the soak lasted for several."""
    days = {f"{datetime.fromtimestamp(each, timezone.utc):%F}" for each, _ in soak.rounds}
    form = "%H:%M:%S" if len(days) < 2 else "%F %H:%M:%S"
    return f"{datetime.fromtimestamp(at, timezone.utc):{form}} UTC"

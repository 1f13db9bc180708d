"""Who slowed down or ended in a soak: `doctor accept --for`.

Each host is compared with the others in the same round, so that what slows all cancels out, and then with
itself at other times, so that hosts may be of different kinds.
"""

import math
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from itertools import pairwise
from statistics import median, median_high
from typing import NamedTuple

from doctor.api import (
    UNDECIDED,
    Confidence,
    Damage,
    Evidence,
    Problem,
    Scope,
    Severity,
    Undecided,
    check,
    duration,
)
from doctor.facts.smoke import SMOKE, SOAK, SmokeRounds, Soak
from doctor.smoke.judge.speed import MAD, spread

TRAIN = "train"
DOES = {
    TRAIN: "computes steps",
    "matmul": "multiplies matrices",
    "copy": "copies memory",
    "to_device": "copies to its devices",
    "from_device": "copies from its devices",
    "sends": "sends",
    "receives": "receives",
    "write": "writes to",
    "read": "reads from",
}
LINKS = ("sends", "receives")
"""By the best link, which may have been that to a host that is gone."""
LEAST = -math.log(0.9)
"""The least effect, as a logarithm."""
TIMES = 6.0
LEAST_POINTS, LEAST_SLOW = 6, 3
"""So many rounds there must be, and so many of them must be slow one after the other."""
LEAST_HOSTS = 3
MANY = 8
CLEAR = 0.8
"""The share of rounds that must be on their side of the middle."""
FALSE_ALARMS = 1 / 1000
"""The share of soaks in which rounds that are slow by chance may come one after the other."""
RARE, UNSEEN = 0.01, 0.25
"""How often a round is slow by chance if none was: at least this, and so many rounds that nobody saw."""
LINES, BEFORE = 44, 3
MOST_SPELLS = 3
MOST_MOVED = 4
"""So many things that moved are told."""
FAR = 3.0
"""How many times as often something must be counted as at other times, and as on the other hosts."""
SHORTLY = 120.0
"""So many seconds before a host ended count, too."""
MANY_OF_ALL = 0.2
"""The share of the time that a host must have waited."""


class Counter(NamedTuple):
    """What is read between rounds: the pattern of its name, and what it says, with the groups of the pattern.

    `counts`: it only grows, by `{n}`. Else it `{was}` something and is something else `{now}`. `least` is how
    much that must be: below 1 the share of what it was; with `share` that of the seconds that passed.
    """

    name: str
    says: str
    least: float
    counts: bool = True
    share: bool = False


LOG = "kernel "
DEVICE = r"\w+-(?:health|pace|ecc) (\S+)"
COUNTERS = (
    Counter(r"boot", "it restarted", 60),
    Counter(rf"{LOG}(.*)", "its kernel's log has {n} times: {0}", 1),
    Counter(r"throttled", "its control group held its processes back {n} times (nr_throttled)", 5),
    Counter(r"throttle \S+", "its processors slowed down for their heat {n} times", 1),
    Counter(rf"{DEVICE} reasons (.+)", "device {0}: {1}", 1, counts=False),
    Counter(rf"{DEVICE} uncorrected|npu-ecc (\S+)", "memory of device {0}: {n} errors more", 1),
    Counter(rf"{DEVICE} celsius", "device {0}: {now} degrees, {was} at other times", 10, counts=False),
    Counter(r"edac ue_count", "its memory had {n} errors that could not be corrected", 1),
    Counter(r"edac ce_count", "its memory had {n} errors that were corrected", 10),
    Counter(r"net (\S+) carrier_changes", "its network interface {0} lost or got its link {n} times", 1),
    Counter(r"net (\S+) (\S+)", "its network interface {0} counted {n} more {1}", 20),
    Counter(r"ib (\S+) (\S+)", "its InfiniBand port {0} counted {n} more {1}", 10),
    Counter(r"steal", "its hypervisor took {n} s of its processors' time", MANY_OF_ALL, share=True),
    Counter(r"celsius", "it had {now} degrees, {was} at other times", 10, counts=False),
    Counter(r"mhz", "its processors ran at {now} MHz, {was} at other times", 0.1, counts=False),
    Counter(r"runs (.+)", "{now} processes named {0} ran", 1, counts=False),
    Counter(r"pressure memory", "its processes waited {n} s for memory", MANY_OF_ALL, share=True),
    Counter(r"pressure io", "its processes waited {n} s for its disks", MANY_OF_ALL, share=True),
    Counter(r"pressure cpu", "its processes waited {n} s for processors", MANY_OF_ALL, share=True),
    Counter(r"tcp resent", "it sent {n} TCP segments again", 50),
    Counter(r"disk (\S+)", "its disk {0} was busy for {n} s", MANY_OF_ALL, share=True),
    Counter(r"free (\S+)", "{now} MB were free in {0}, {was} at other times", 0.5, counts=False),
)
"""The most telling ones first."""


class Spell(NamedTuple):
    """The points from `first` until before `end`, by how much they are slower as a logarithm, and whether
    ever more.
    """

    first: int
    end: int
    effect: float
    ramp: bool


class Chance(NamedTuple):
    """How often rounds are slow by chance: how far each is below what its host usually does, and each two,
    three and four one after the other at least; sorted. `points`: how many figures the soak has.
    """

    drops: Sequence[Sequence[float]]
    points: int

    def allows(self, depth: float, slow: int, rounds: int) -> bool:
        """Whether so many rounds of these may be slow by chance, somewhere in the soak: as often as one or
        two are, so that a host that is slow for longer is no measure for the others.
        """
        one, two, three, four = (len(own) - bisect_right(own, depth) for own in self.drops)
        short = one - two - (three - four)
        often = short + math.sqrt(short) + UNSEEN  # few of them may be few by chance, too
        rare = min(1.0, max(RARE, often / max(1, len(self.drops[0]) - one)))
        ways = math.lgamma(rounds + 1) - math.lgamma(slow + 1) - math.lgamma(rounds - slow + 1)
        return math.log(self.points) + ways + slow * math.log(rare) > math.log(FALSE_ALARMS)


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
    and by six times the noise of the soak, in three rounds one after the other, or in more: in so many that
    rounds which are slow by chance, as rounds of all hosts are now and then, hardly ever come so. That may
    have lasted to the end, or have ended, and it may have grown. What hosts send and receive is compared as
    long as the same hosts take part. A host that breaks a round is left out from then on. If it is undecided
    which of several broke it, all of them are left out, and suspects.

    Before and after each round the counters of each host are read: those of its network, its control group
    and its processors, its temperatures, its kernel's log, its devices. What moved on a host that is named,
    then, and not on the others, is told with it: that may be why.

    Fewer than six rounds, or fewer than three hosts, judge nobody's pace, and a soak that ended early proves
    less than was wanted: exit code 3.

    What to do: see what else happened on the host at that time: its kernel's log, the clocks and temperatures
    of its devices, its fans and power, what else ran there.
    """
    yield from _ended(soak)
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
    alone = [at for at, figures in soak.rounds if max(map(len, figures.values()), default=0) < LEAST_HOSTS]
    if len(alone) >= LEAST_POINTS:
        raise Undecided(
            f"fewer than three hosts were left at {_clock(alone[0], soak)}: nothing judged their pace then",
            essential=True,
        )
    if soak.lacking:
        raise Undecided(f"the soak ended {duration(soak.lacking)} too early", essential=True)


def _ended(soak: Soak) -> Iterator[Problem]:
    """Who broke a round, once."""
    told: set[str] = set()
    for hosts, at, why, undecided in soak.left:
        doubt = UNDECIDED if undecided and len(hosts) > 1 else ""
        for among in [hosts] if doubt else [(host,) for host in hosts]:
            if not told.issuperset(among):
                yield Problem(
                    f"ended in the soak at {_clock(at, soak)}: {why.removesuffix(doubt)}{doubt}",
                    actual="; ".join(_moved(soak, among[0], at - SHORTLY, math.inf)),
                    subject="end",
                    hosts=among,
                    severity=Severity.FAIL,
                    confidence=Confidence.SUSPECT if doubt else Confidence.CERTAIN,
                )
            told.update(among)


def _spells(soak: Soak) -> Iterator[tuple[str, str, Spell]]:
    """Host, what it did more slowly, and when."""
    points = sum(len(own) for _, figures in soak.rounds for own in figures.values())
    for what in dict.fromkeys(what for _, figures in soak.rounds for what in figures):
        series = [
            {host: math.log(value) for host, value in figures.get(what, {}).items() if value > 0}
            for _, figures in soak.rounds
        ]
        for part in _parts(series) if what in LINKS else [series]:
            beside = _beside(part)
            noise, chance = _noise(beside), _chance(beside, points)
            for host, ratios in beside.items():
                for spell in spells(ratios, noise[host], chance):
                    inside = [part[n][host] for n in ratios if spell.first <= n < spell.end]
                    outside = [part[n][host] for n in ratios if not spell.first <= n < spell.end]
                    if median(outside) - median(inside) >= LEAST / 2:  # else it is the others who changed
                        yield host, what, spell


def _parts(series: Sequence[Mapping[str, float]]) -> Iterator[list[Mapping[str, float]]]:
    """The rounds with the same hosts; others are empty."""
    for hosts in dict.fromkeys(map(frozenset, series)):
        yield [own if own.keys() == hosts else {} for own in series]


def _usual(values: Mapping[str, float]) -> dict[str, float]:
    """Host -> the median of the others, the higher of two."""
    ordered = sorted(values, key=lambda host: values[host])
    middle = (len(ordered) - 1) // 2
    return {host: values[ordered[middle + (at <= middle)]] for at, host in enumerate(ordered)}


def _beside(series: Sequence[Mapping[str, float]]) -> dict[str, dict[int, float]]:
    """Host -> point -> what it did there beside the median of the others, as a logarithm."""
    found: dict[str, dict[int, float]] = {}
    for number, own in enumerate(series):
        if len(own) >= LEAST_HOSTS:
            for host, usual in _usual(own).items():
                found.setdefault(host, {})[number] = own[host] - usual
    return found


def _chance(beside: Mapping[str, Mapping[int, float]], points: int) -> Chance:
    drops: tuple[list[float], ...] = ([], [], [], [])
    for ratios in beside.values():
        usual = sorted(ratios.values())[3 * len(ratios) // 4]
        own = [usual - value for value in ratios.values()]
        for size, found in enumerate(drops, 1):
            found += [min(own[at : at + size]) for at in range(len(own) - size + 1)]
    return Chance([sorted(found) for found in drops], points)


def _noise(beside: Mapping[str, Mapping[int, float]]) -> dict[str, float]:
    """How far hosts are from themselves in the next round, and the others of a host in all rounds: hosts that
    are shared wander.
    """
    apart = [abs(b - a) for own in beside.values() for a, b in pairwise(own.values())]
    steps = MAD * median(apart) / math.sqrt(2) if apart else 0.0
    wander = _usual({host: spread([*own.values()]) for host, own in beside.items()})
    return {host: max(steps, others) for host, others in wander.items()}


def spells(ratios: Mapping[int, float], noise: float, chance: Chance) -> Iterator[Spell]:
    """When a host was slower than at other times, the worst first."""
    left = dict(ratios)
    for _ in range(MOST_SPELLS):
        spell = _worst(left, noise, chance)
        if spell is None:
            return
        yield spell
        left = {n: value for n, value in left.items() if not spell.first <= n < spell.end}


def _worst(ratios: Mapping[int, float], noise: float, chance: Chance) -> Spell | None:
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
    below, above = sum(value < middle for value in inside), sum(value > middle for value in outside)
    clear = below >= CLEAR * len(inside) and above >= CLEAR * len(outside)
    if effect < max(LEAST, limit) or not clear or chance.allows(usual - middle, below, len(inside)):
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
    does, share = _does(what), f"{min(0.99, 1 - math.exp(-spell.effect)):.0%}"  # it still goes
    if spell.ramp:
        words = (
            f"{does} ever more slowly than its peers for {n} rounds from about {begin} on and {share} at last"
        )
    elif spell.end == len(soak.rounds):
        words = f"{does} {share} more slowly than its peers for {n} rounds from {begin} on"
    else:
        end = _clock(soak.rounds[spell.end][0], soak)
        words = f"{does} {share} more slowly than its peers for {n} rounds from {begin} to {end}"
    last = soak.rounds[spell.end - 1][0]
    moved = _moved(soak, host, soak.rounds[spell.first][0], last)
    return Problem(
        words,
        expected="as its peers in the same round",
        actual="; ".join((share, *moved)),
        evidence=tuple(
            Evidence(f"{_does(other)}, beside its peers", "\n".join(_lines(soak, host, other, each)))
            for other, each in among
        ),
        subject=what,
        hosts=(host,),
        severity=Severity.FAIL,
        confidence=Confidence.STRONG,
    )


def _moved(soak: Soak, host: str, begin: float, last: float) -> list[str]:
    """What was counted of it more often from then until after the `last` round than at other times and on
    the other hosts, in words, the most telling first.
    """
    times = [at for at, _ in soak.readings]
    if not times:
        return []
    first = max(0, bisect_right(times, begin) - 1)
    end = min(bisect_right(times, last), len(times) - 1)
    told: dict[str, str] = {}
    hosts = {other for _, own in soak.readings for each in own.values() for other in each}
    for name in dict.fromkeys(name for _, own in soak.readings for name in own):
        matches = ((counter, re.fullmatch(counter.name, name)) for counter in COUNTERS)
        counter, match = next(((counter, match) for counter, match in matches if match), (None, None))
        if counter and match:
            course = {other: _course(soak, name, other) for other in hosts}
            if found := _more(counter, course, host, times, first, end):
                groups = [each for each in match.groups() if each]
                told.setdefault(counter.says, counter.says.format(*groups, **found))
    order = [counter.says for counter in COUNTERS]
    return [told[says] for says in sorted(told, key=order.index)][:MOST_MOVED]


def _course(soak: Soak, name: str, host: str) -> list[float | None]:
    """Its value at each reading; None before it was read. Lines of a log are counted from the first one."""
    value = 0.0 if name.startswith(LOG) else None
    return [value := own.get(name, {}).get(host, value) for _, own in soak.readings]


def _more(
    counter: Counter,
    course: Mapping[str, Sequence[float | None]],
    host: str,
    times: Sequence[float],
    first: int,
    end: int,
) -> dict[str, str]:
    """What fills the words of the counter; empty if it did not move, or moved as elsewhere."""
    if counter.counts:
        grew = {other: _growth(own, first, end) for other, own in course.items()}
        before = _growth(course[host], 0, first) + _growth(course[host], end, len(times) - 1)
        inside = max(times[end] - times[first], 1.0)
        outside = max(times[-1] - times[0] - inside, 1.0)
        least = counter.least * inside if counter.share else counter.least
        others = _norm(grew, host)
        if grew[host] < max(least, FAR * others, FAR * before * inside / outside):
            return {}
        return {"n": f"{grew[host]:,.0f}"}
    moved = {other: _step(own, first, end) for other, own in course.items()}
    if (own := moved[host]) is None:
        return {}
    was, now = own
    least = counter.least * was if counter.least < 1 else counter.least
    others = _norm({other: abs(b - a) for other, each in moved.items() if each for a, b in [each]}, host)
    if abs(now - was) < max(least, FAR * others) or (counter.name.startswith("runs") and now < was):
        return {}
    return {"was": f"{was:,.0f}", "now": f"{now:,.0f}"}


def _norm(values: Mapping[str, float], host: str) -> float:
    """What the other hosts have, the higher of two in the middle; 0 if there is none."""
    others = [value for other, value in values.items() if other != host]
    return median_high(others) if others else 0.0


def _growth(course: Sequence[float | None], first: int, end: int) -> float:
    """How much was counted; a counter that is less than before began again."""
    known = [value for value in course[first : end + 1] if value is not None]
    return sum(max(0.0, b - a) for a, b in pairwise(known))


def _step(course: Sequence[float | None], first: int, end: int) -> tuple[float, float] | None:
    """The median outside these readings, and inside."""
    inside = [value for value in course[first + 1 : end + 1] if value is not None]
    outside = [value or 0.0 for value in (*course[: first + 1], *course[end + 1 :])]
    return (median(outside), median(inside)) if inside and outside else None


def _lines(soak: Soak, host: str, what: str, spell: Spell) -> Iterator[str]:
    """Its share of what its peers do, in the rounds before, in and after the spell."""
    first = max(0, spell.first - BEFORE)
    for at, did in soak.rounds[first : min(spell.end + BEFORE, first + LINES)]:
        figures = {other: value for other, value in did.get(what, {}).items() if value > 0}
        if host in figures and len(figures) >= LEAST_HOSTS:
            yield f"{_clock(at, soak)}: {figures[host] / _usual(figures)[host]:.0%}"


def _does(what: str) -> str:
    """What a host does, in words."""
    name, _, folder = what.partition(" ")
    return f"{DOES.get(name, name)} {folder}".strip()


def _clock(at: float, soak: Soak) -> str:
    """The time of the day; with the day, if the soak lasted for several."""
    days = {f"{datetime.fromtimestamp(each, timezone.utc):%F}" for each, _ in soak.rounds}
    form = "%H:%M:%S" if len(days) < 2 else "%F %H:%M:%S"
    return f"{datetime.fromtimestamp(at, timezone.utc):{form}} UTC"

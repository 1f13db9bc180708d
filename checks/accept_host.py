"""What each host does alone, beside its floors and its peers: `doctor accept`."""

import math
import shlex
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from statistics import median

from doctor.api import (
    Confidence,
    Damage,
    Evidence,
    Problem,
    Scope,
    Severity,
    Skip,
    Undecided,
    check,
    fold,
    grouped,
    maybe,
)
from doctor.facts.baseline import FLOOR, SINCE, CollectiveFloor, Floor, SinceBaseline
from doctor.facts.smoke import SMOKE, JudgedRun, SmokeRounds
from doctor.rules.accept import LEFT_OF_MANY
from doctor.rules.alone import TIMES, HostRate, host_rates, of_floor, rate_text
from doctor.smoke.judge.cells import arithmetic
from doctor.smoke.judge.speed import LEAST_HOSTS, spread

LEAST, LEAST_IF_SHARED, TIMES_NOISE = 0.1, 0.6, 6
"""How much slower a rank must be; if others use its host: two threads of a core have half of it each."""
OF_OTHERS = {"write": 0.25, "read": 0.25}
"""Below this share of the others a folder is slow, unless others use the hosts: then healthy ones differed by
twenty times. Appends differ as much on quiet hosts.
"""
LINES = 64


@check(
    "accept-slow-host",
    SMOKE,
    FLOOR,
    maybe(SINCE),
    scope=Scope.CLUSTER,
    damage=Damage.LOAD,
    remedy="find-what-slows",
)
def accept_slow_host(
    seen: SmokeRounds, floor: Floor | None, since: SinceBaseline | None
) -> Iterator[Problem]:
    """A host computes, copies or stores more slowly than its floor or the other hosts.

    Why it matters: all ranks wait for the slowest host at each step, and at each checkpoint.

    How it is known: twice, with the transfers between hosts in between, each rank multiplies matrices and
    copies memory, by the second of processor time (a device: by the second), and the first rank of each host
    writes and reads a file without a name in /dev/shm, /tmp and the folders of `--path`: 2 MB at a time, each
    made safe (fsync) or read past the cache, and appends of 4 KB; at most a tenth of what is free. Below a
    floor (`host matmul >= 100 GFLOP/s`, `host write /scratch >= 1 GB/s`) is what is below it in the better
    pass, too. From three hosts on, peers judge: who computes or copies less than the like of other hosts by a
    tenth and by six times the noise of the run (by at least 60 % if others use its processors), or writes
    or reads less than a quarter of what others do on the same kind of file system, in both passes; while
    others use the hosts, floors alone judge folders. A folder in which nothing can be stored is a fault.
    What a baseline judged (`smoke-slower-than-baseline`) is a warning if the peers do more. How long a login,
    the start of Python and torch and a reverse lookup took is shown, and a baseline alone judges it.

    A floor that judged nothing, or that a host met in one pass only, ends with exit code 3.

    What to do: compare clocks, power limits, memory modules and the settings of the BIOS with those of a good
    host; of a folder, its disk, its mount and who else writes to it.
    """
    run = next((run for run in seen.runs if host_rates(run)), None)  # later ones lack whom it named
    rates, floors = host_rates(run) if run else (), floor.hosts if floor else ()
    closed = [*_closed(rates)]
    known = {place for place, steadily in since.steady.items() if steadily} if since else set()
    alone = {each.host for each in rates if each.what not in TIMES}
    compared = any((each.host, each.name) in known for each in rates)
    if not (floors or closed or compared or len(alone) >= 3):
        raise Skip("fewer than three hosts have no peers: nothing judged what they do alone")
    yield from closed
    below = [*_below_floors(rates, floors)]
    told = {(host, each.subject) for each in below for host in each.hosts}
    yield from below
    for each in _beside_others(run, rates) if run else ():
        if (*each.hosts, each.subject) not in told:
            judged = all((host, str(each.subject)) in known for host in each.hosts)
            yield replace(each, severity=Severity.WARN) if judged else each
    if why := "; ".join(_open_floors(rates, floors)):
        raise Undecided(why, essential=True)


def _closed(rates: Sequence[HostRate]) -> Iterator[Problem]:
    """Hosts that could not store anything in a folder in which others could."""
    for (folder, why), own in grouped(((r.folder, r.problem), r) for r in rates if r.problem).items():
        if any(each.passes and each.folder == folder for each in rates) or "is free" not in why:
            yield Problem(
                f"nothing can be stored in {folder}: {why}",
                subject=folder,
                hosts=tuple(each.host for each in own),
                commands=(_look(folder),),
            )


def _below_floors(rates: Sequence[HostRate], floors: Sequence[CollectiveFloor]) -> Iterator[Problem]:
    """Who is below a floor even in the better pass."""
    for floor in floors:
        own = of_floor(rates, floor)
        if below := [each for each in own if max(each.passes) < floor.value]:
            most = rate_text(below[0].what, max(max(each.passes) for each in below))
            yield _problem(
                f"{below[0].name}: {most} at most; the floor is {floor.text}", below, own, floor.text
            )


def _open_floors(rates: Sequence[HostRate], floors: Sequence[CollectiveFloor]) -> Iterator[str]:
    """Floors that judged nothing, or not all."""
    for floor in floors:
        own = of_floor(rates, floor)
        if not own:
            yield f"the floor {floor.text} judged nothing: this was not measured"
        elif near := sorted(
            {each.host for each in own if min(each.passes) < floor.value <= max(each.passes)}
        ):
            yield f"{fold(near)} met the floor {floor.text} in one of two passes"


def _beside_others(run: JudgedRun, rates: Sequence[HostRate]) -> Iterator[Problem]:
    """Who is far slower than the like of other hosts in both passes."""

    def kind(each: HostRate) -> Hashable:
        rank = run.result.ranks[each.rank]
        like = each.file_system if each.folder else (arithmetic(rank.started), len(run.plan.on(each.host)))
        return each.name, like

    for alike in grouped((kind(each), each) for each in rates if len(each.passes) > 1).values():
        usual = _usual(alike)
        slow = [each for each in alike if max(each.passes) < _limit(each, alike) * usual(each)]
        for own in grouped((each.host, each) for each in slow).values():
            worst = min(own, key=lambda each: each.rate)
            share, theirs = worst.rate / usual(worst), rate_text(worst.what, usual(worst))
            words = f"{worst.name}: {worst.text}, {share:.0%} of {theirs}"
            yield _problem(words, own, alike, f"about {theirs}")


def _usual(alike: Sequence[HostRate]) -> Callable[[HostRate], float]:
    """What the other hosts do; 0 if they are too few to tell."""

    def of_others(own: HostRate) -> float:
        others = [each for each in alike if each.host != own.host]
        many = len({each.host for each in others}) >= LEAST_HOSTS - 1
        return median(each.rate for each in others) if many else 0.0

    return of_others


def _limit(own: HostRate, alike: Sequence[HostRate]) -> float:
    """The share of the usual rate below which it is slow."""
    if own.folder:
        return 0.0 if any(each.shared for each in alike) else OF_OTHERS.get(own.what, 0.0)
    others = [math.log(each.rate) for each in alike if each.host != own.host]
    of_a_pass = LEFT_OF_MANY * median(each.noise for each in alike)
    noise = max(spread(others) if others else 0.0, of_a_pass)
    least = LEAST_IF_SHARED if own.shared else LEAST
    return 1 - max(least, 1 - math.exp(-TIMES_NOISE * noise))


def _look(folder: str) -> str:
    place = shlex.quote(folder)
    return f"findmnt -T {place}; df -h {place}; df -i {place}; cat /proc/pressure/io"


def _problem(words: str, own: Sequence[HostRate], like: Sequence[HostRate], expected: str) -> Problem:
    slowest = sorted(like, key=lambda each: each.rate)[:LINES]
    lines = (
        f"{each.host} rank {each.rank}: {', '.join(rate_text(each.what, one) for one in each.passes)}"
        + (f", time over processor time {each.stretch:.2f}" if each.stretch else "")
        for each in slowest
    )
    return Problem(
        words,
        expected=expected,
        actual=min(own, key=lambda each: each.rate).text,
        evidence=(Evidence(f"{own[0].name}, both passes, the slowest first", "\n".join(lines)),),
        subject=own[0].name,
        hosts=tuple(dict.fromkeys(each.host for each in own)),
        severity=Severity.FAIL,
        confidence=Confidence.STRONG,
        commands=(_look(own[0].folder),) if own[0].folder else (),
    )

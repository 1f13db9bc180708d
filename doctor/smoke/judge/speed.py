"""Ranks that compute more slowly than the others, and hosts whose processor is shared with other work."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from doctor.model import Confidence, Evidence, Severity
from doctor.smoke.events import TrainStep
from doctor.smoke.judge.cells import arithmetic
from doctor.smoke.judge.charge import SmokeCharge, ranks_text, worded
from doctor.smoke.judge.exits import SHELL
from doctor.smoke.result import ON_CPU, SmokeResult

SKIPPED = 3
"""The number of first steps in which caches fill and kernels compile."""
LEAST_STEPS = 10
LEAST_RANKS = 4
SLOWER = 0.12
"""Healthy ranks were up to 7 % slower with two ranks to a core."""
SLOWER_IF_SHARED, SHARED = 0.30, 1.15
"""Healthy ranks were up to 25 % slower if they had to wait for processors that did other work in between: if
time is at least SHARED times processor time.
"""
SLOWER_IF_QUEUED = 0.75
"""Other work on its processors also slows a rank while it runs: it shares caches and cores. So a rank may be
slower by this times the share of its time in which it waited for a processor. Healthy ranks beside six
programs on two cores waited for 45 to 90 % of their time, and were up to 42 % slower.
"""
OFTEN = 0.8
ALIKE, AS_MANY = 0.5, 16
"""The spread between ranks on a machine that does other work, as a part of the spread between steps: 0.47 in
359 healthy ranks beside other load. It counts as much as a measurement on AS_MANY ranks.
"""
FALSE_ALARMS = 1 / 1000
"""The share of runs in which chance may name a healthy rank."""
LEAST_HOSTS = 3
TAKEN = 1.3
"""The ratio of time to processor time in a rank's own computing above which a host is shared."""
STOPPED, RUINED = 1.5, 2.0
"""The same ratio without the waits for a processor: a healthy rank is below 1.2, also on a busy host."""
MAD = 1.4826
"""The factor from a median distance from the median to a standard deviation."""


def judge_speed(result: SmokeResult) -> Iterator[SmokeCharge]:
    """Hosts that stop their processes or are shared come first: they explain slow ranks."""
    stopped = list(_stopped(result))
    yield from stopped
    taken = {host for charge in stopped for host in charge.hosts}
    contention = [charge for charge in _contention(result) if taken.isdisjoint(charge.hosts)]
    yield from contention
    yield from _stragglers(result, taken | {host for charge in contention for host in charge.hosts})


def spread(values: Sequence[float]) -> float:
    """Their standard deviation, estimated robustly against outliers."""
    middle = median(values)
    return MAD * median(abs(value - middle) for value in values)


def waited(result: SmokeResult, ranks: Iterable[int]) -> bool:
    """Whether these ranks, on the whole, shared their processors with each other or with other work."""
    halves = [half for rank in ranks for half in _waiting(result, rank)]
    return result.plan.backend in ON_CPU and bool(halves) and median(halves) > SHARED


def queued(result: SmokeResult, rank: int) -> float:
    """The share of its time in which it waited for a processor. Waits for other ranks do not count."""
    steps = [step for step in _later_steps(result, rank).values() if step.cpu > 0]
    return median(step.queued / (step.queued + step.cpu) for step in steps) if steps else 0.0


def _later_steps(result: SmokeResult, rank: int) -> dict[int, TrainStep]:
    """The last two thirds of those planned: slow when warm is slow at the end. A cut run has too few."""
    steps = result.plan.steps
    return {
        step.step: step for step in result.ranks[rank].steps if max(SKIPPED, steps // 3) <= step.step < steps
    }


def perhaps_slow(result: SmokeResult) -> list[int]:
    """Ranks that took longer than allowed, but whose steps are too uneven to prove it."""
    paces = (pace for _, paces in _paces_by_product(result) for pace in paces.items())
    return sorted(rank for rank, pace in paces if pace.ratio > 1 + SLOWER and not pace.slow)


def _stragglers(result: SmokeResult, shared: set[str]) -> Iterator[SmokeCharge]:
    """One charge for the slow ranks of each host."""
    for middles, paces in _paces_by_product(result):
        slow: dict[str, dict[int, float]] = defaultdict(dict)
        for rank, pace in paces.items():
            host = result.plan.seat(rank).host
            if host not in shared and pace.slow:
                slow[host][rank] = pace.ratio
        for ratios in slow.values():
            yield _straggler(ratios, middles)


class _Pace(NamedTuple):
    """How many times as long as the others a rank computes at the same step. `ratio` is the median. Above
    `limit` it is slow beyond doubt. `often` is the share of steps in which it was slower than allowed.
    """

    ratio: float
    limit: float
    often: float

    @property
    def slow(self) -> bool:
        return self.ratio > self.limit and self.often >= OFTEN


def _paces_by_product(result: SmokeResult) -> Iterator[tuple[dict[int, float], dict[int, _Pace]]]:
    """For ranks of one stage on devices of one kind: the seconds that each computes a step, and its pace."""
    products: dict[object, dict[int, dict[int, float]]] = defaultdict(dict)
    for seen in result.ranks:
        burnt = {n: step.cpu for n, step in _later_steps(result, seen.rank).items() if step.cpu > 0}
        if len(burnt) >= LEAST_STEPS:
            products[arithmetic(seen.started), result.plan.stage_of(seen.rank)][seen.rank] = burnt
    for burnt_by in products.values():
        if len(burnt_by) >= LEAST_RANKS:
            least = SLOWER_IF_SHARED if waited(result, burnt_by) else SLOWER
            slower = {rank: least + SLOWER_IF_QUEUED * queued(result, rank) for rank in burnt_by}
            yield {rank: median(said.values()) for rank, said in burnt_by.items()}, _paces(burnt_by, slower)


def _paces(burnt_by: Mapping[int, Mapping[int, float]], slower: Mapping[int, float]) -> dict[int, _Pace]:
    """Rank -> its pace. To be slow, it must take longer than the others by more than `slower` allows."""
    times = {rank: each for rank in burnt_by if (each := _times_as_long(rank, burnt_by))}
    ratios = {rank: median(each) for rank, each in times.items()}
    uneven = median(spread([math.log(time) for time in each]) for each in times.values()) if times else 0.0
    paces = {}
    for rank, each in times.items():
        others = [math.log(ratio) for other, ratio in ratios.items() if other != rank]
        limit = max(1 + slower[rank], math.exp(min(_beyond_doubt(others, uneven), 10.0)))
        paces[rank] = _Pace(ratios[rank], limit, sum(time > 1 + SLOWER for time in each) / len(each))
    return paces


def _times_as_long(rank: int, burnt_by: Mapping[int, Mapping[int, float]]) -> list[float]:
    """How many times as long as the others it took, step by step: what slows all at a step cancels out."""
    return [
        own / median(theirs)
        for step, own in burnt_by[rank].items()
        if (theirs := [said[step] for other, said in burnt_by.items() if other != rank and step in said])
    ]


def _beyond_doubt(others: Sequence[float], uneven: float) -> float:
    """The logarithm of a ratio that chance cannot explain: few ranks may be alike by luck, steps are not."""
    apart = spread(others) if others else 0.0
    known = len(others) - 1
    noise = math.sqrt((AS_MANY * (ALIKE * uneven) ** 2 + known * apart**2) / (AS_MANY + known))
    return noise * math.sqrt(2 * math.log((len(others) + 1) / FALSE_ALARMS))


def _straggler(ratios: Mapping[int, float], middles: Mapping[int, float]) -> SmokeCharge:
    usual = median(middle for rank, middle in middles.items() if rank not in ratios)
    lines = [f"{ranks_text([rank])}: {1000 * middle:.2f} ms" for rank, middle in sorted(middles.items())[:64]]
    own = ", ".join(f"{1000 * middles[rank]:.2f} ms" for rank in sorted(ratios))
    return SmokeCharge(
        *worded("straggler", worst=max(ratios.values()), usual=1000 * usual, own=own),
        ranks=tuple(sorted(ratios)),
        confidence=Confidence.STRONG,
        severity=Severity.WARN,
        evidence=(Evidence("computing a step, median", "\n".join(lines)),),
    )


def _stopped(result: SmokeResult) -> Iterator[SmokeCharge]:
    """Hosts that kept ranks from computing for long: medians of steps do not show such a pause."""
    for host in result.plan.hosts if result.plan.backend == "gloo" else ():
        times = [_times(result, seat.rank) for seat in result.plan.on(host)]
        worst = [half for halves in times for half in halves]
        if worst and all(halves and min(halves) > STOPPED for halves in times):
            times_as_long = median(worst)
            yield SmokeCharge(
                *worded("kept from running", times=times_as_long),
                hosts=(host,),
                confidence=Confidence.STRONG,
                severity=Severity.FAIL if times_as_long > RUINED else Severity.WARN,
                commands=SHELL["stops"],
            )


def _times(result: SmokeResult, rank: int) -> list[float]:
    """Time over processor time without waits, in each half; empty if the kernel counts no waits."""
    steps = [*_later_steps(result, rank).values()]
    halves = steps[: len(steps) // 2], steps[len(steps) // 2 :]
    if len(steps) < LEAST_STEPS or not all(sum(step.queued for step in half) for half in halves):
        return []
    return [
        sum(step.compute - step.queued for step in half) / max(sum(step.cpu for step in half), 1e-6)
        for half in halves
    ]


def _contention(result: SmokeResult) -> Iterator[SmokeCharge]:
    """Charges hosts that are shared, unless all are: then the run itself is too large for them."""
    if result.plan.backend != "gloo":
        return
    halves = {
        host: [half for seat in result.plan.on(host) for half in _all_along(result, seat.rank)]
        for host in result.plan.hosts
    }
    waits = {host: median(each) for host, each in halves.items() if each}
    if len(waits) < LEAST_HOSTS:
        return
    taken = [host for host in waits if _stands_apart(host, min(halves[host]), waits)]
    for host in taken if 2 * len(taken) < len(waits) else ():  # else it is unclear which are unusual
        yield _shared(result, host, waits[host], waits)


def _stands_apart(host: str, least: float, waits: Mapping[str, float]) -> bool:
    """Whether all its ranks waited all the time: for a moment, or to one rank, that happens on any host."""
    others = [other for name, other in waits.items() if name != host]
    usual, noise = median(others), spread([math.log(other) for other in others])
    return usual < TAKEN and least > TAKEN and least > usual * max(TAKEN, math.exp(5 * min(noise, 10.0)))


def _all_along(result: SmokeResult, rank: int) -> list[float]:
    """The same ratio in the training, and before and after it if the rank computed alone."""
    return [*_waiting(result, rank), *(each.stretch for each in result.ranks[rank].alone if each.stretch)]


def _waiting(result: SmokeResult, rank: int) -> list[float]:
    """The ratio of time to processor time in the median step of each half of the steps."""
    steps = _later_steps(result, rank).values()
    ratios = [max(1.0, step.compute / step.cpu) for step in steps if step.cpu > 0 and step.compute > 0]
    middle = len(ratios) // 2
    return [median(ratios[:middle]), median(ratios[middle:])] if len(ratios) >= LEAST_STEPS else []


def _shared(result: SmokeResult, host: str, ratio: float, waits: Mapping[str, float]) -> SmokeCharge:
    seen = result.host(host)
    busy = f"; load {seen.load:.1f} on {seen.cores} cores when the run began" if seen and seen.cores else ""
    usual = median(other for name, other in waits.items() if name != host)
    lines = [f"{name}: {each:.2f}" for name, each in list(waits.items())[:64]]
    return SmokeCharge(
        *worded("shared", ratio=ratio, most=TAKEN, usual=usual, busy=busy),
        hosts=(host,),
        confidence=Confidence.STRONG,
        severity=Severity.WARN,
        evidence=(Evidence("time over processor time of computing", "\n".join(lines)),),
    )

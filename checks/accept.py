"""The links of a new rack or a repaired node, all pairs of it, and collectives by size: `doctor accept`."""

from collections.abc import Iterator, Sequence
from statistics import median

from doctor.api import Confidence, Damage, Evidence, Problem, Scope, Undecided, check, fold, maybe
from doctor.facts.baseline import COLLECTIVE_FLOORS, FLOOR, SINCE, CollectiveFloor, Floor, SinceBaseline
from doctor.facts.smoke import SMOKE, SmokeRounds
from doctor.rules.accept import (
    CollectiveRate,
    below_floor,
    beside_peers,
    collective_rates,
    named,
    perhaps_below,
    rates_of_pairs,
    unjudged,
)
from doctor.rules.smoke import accused

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
    If a floor was met, or a host carries what it did in the baseline, what differs from peers is a warning.

    Numbers that nothing judged are no pass: two hosts without a floor and a baseline, rates so uneven that
    only a host below a tenth would be named, links of which some carry far more than most, or a pair that was
    not measured, end with exit code 3.

    What to do: check the speed and the error counters of the host's port and of the switch port at the other
    end; exchange cable or optics with a fast host, and see whether the fault moves with them.
    """
    rates, floor = rates_of_pairs(seen.runs), floor if floor and floor.value else None
    steady = {end for end, own in since.steady.items() if own} if since else set()
    if rates is not None:
        below = [*below_floor(rates, floor)] if floor else []
        named = [(each.hosts, each.subject) for each in below]
        peers = beside_peers(rates, steady, floor_met=floor is not None)
        yield from below
        yield from (each for each in peers if (each.hosts, each.subject) not in named)
    yield from accused(seen, "accept-slow-link", "bandwidth")
    if rates is None:
        raise Undecided("no pair of hosts was measured", essential=True)
    compared = all((way[0], 0) in steady or (way[1], 1) in steady for way in rates.turns)
    if why := perhaps_below(rates, floor) if floor else "" if compared else unjudged(rates):
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

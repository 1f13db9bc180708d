"""The links of a new rack or a repaired node, all pairs of it, one way at a time: `doctor accept`."""

from collections.abc import Iterator

from doctor.api import Damage, Problem, Scope, Undecided, check, maybe
from doctor.facts.baseline import FLOOR, SINCE, Floor, SinceBaseline
from doctor.facts.smoke import SMOKE, SmokeRounds
from doctor.rules.accept import below_floor, beside_peers, perhaps_below, rates_of_pairs, unjudged
from doctor.rules.smoke import accused


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
    rates = rates_of_pairs(seen.runs)
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

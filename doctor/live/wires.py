"""What the connections between ranks show: for how long they are silent, who waits for whom, which are cut.

Ages are by the clock of the host that saw them, so the hosts need no common clock.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from doctor.live.evidence import Connection, JobMember

TICK = 4
"""The resolution of the kernel's clock in milliseconds. Smaller differences do not count."""
SHORT = 64
"""A connection that received fewer bytes than this was only opened."""
AGAIN = 2
"""A connection counts as cut after at least this many consecutive retransmissions."""

Key = tuple[str, int]
"""Host and PID of a rank."""


@dataclass(frozen=True, slots=True)
class Wire:
    """One end of a connection between two ranks, and its other end."""

    of: Key
    to: Key
    here: Connection
    there: Connection


def key(member: JobMember) -> Key:
    return member.host, member.pid


def wires(members: Sequence[JobMember], *, first: bool = False, rendezvous: bool = False) -> tuple[Wire, ...]:
    """Both directions of each connection between ranks; those of the rendezvous only if `rendezvous` is set.
    An end that is seen on two hosts is left out: in a private network, anybody can use any address.
    """
    masters = {member.master for member in members if member.master and not rendezvous}
    ports = {master.rpartition(":")[2] for master in masters}
    ends: dict[tuple[str, str, str], tuple[Key, Connection]] = {}
    twice: set[tuple[str, str, str]] = set()
    for member in members:
        look = member.a if first else member.b
        for each in look.connections if look else ():
            if not ports_of(each) & ports:
                end = scope(member.host, each), each.local, each.peer
                if end in ends and ends[end][0][0] != member.host:
                    twice.add(end)
                ends[end] = key(member), each
    return tuple(_paired({end: of for end, of in ends.items() if end not in twice}))


def scope(host: str, each: Connection) -> str:
    """The host for a loopback address, which is a different one on each host; else empty."""
    return host if each.local.startswith(("127.", "[::1]", "::1")) else ""


def ports_of(each: Connection) -> set[str]:
    """The ports of both its ends."""
    return {each.local.rpartition(":")[2], each.peer.rpartition(":")[2]}


def _paired(ends: Mapping[tuple[str, str, str], tuple[Key, Connection]]) -> Iterator[Wire]:
    for (scope, local, peer), (of, here) in ends.items():
        other = ends.get((scope, peer, local))
        if other is not None and other[0] != of:
            yield Wire(of, other[0], here, other[1])


def unpaired(members: Iterable[JobMember]) -> list[tuple[JobMember, Connection]]:
    """Connections of ranks that have carried data and whose other end belongs to no rank. Those of the
    rendezvous and those that stay on the host do not count.
    """
    ranks = [each for each in members if each.helps is None and each.b is not None]
    ports = {each.master.rpartition(":")[2] for each in ranks if each.master}
    pairs = [(rank, each) for rank in ranks for each in (rank.b.connections if rank.b else ())]
    known = {(each.local, each.peer) for _, each in pairs}
    return [
        (rank, each)
        for rank, each in pairs
        if each.state == "ESTAB"
        and each.received >= SHORT
        and (each.peer, each.local) not in known
        and not scope(rank.host, each)
        and not ports_of(each) & ports
    ]


def received_between(before: Iterable[Wire], after: Iterable[Wire], least: float = 0) -> int:
    """Bytes received between the looks, over connections that received more than `least`. Sent bytes do not
    count, because a dead link retransmits.
    """
    had = {(wire.of, wire.here.local, wire.here.peer): wire.here.received for wire in before}
    came = (
        wire.here.received - had.get((wire.of, wire.here.local, wire.here.peer), wire.here.received)
        for wire in after
    )
    return sum(each for each in came if each > least)


def silent_for(after: Iterable[Wire]) -> float | None:
    """Seconds since any rank received anything from another."""
    ages = [wire.here.last_received for wire in after if wire.here.received >= SHORT]
    return min(ages) / 1000 if ages else None


def last_exchange(after: Iterable[Wire], least: int = 0) -> dict[Key, float]:
    """For each rank, the seconds since it sent anything to another, or received anything, over a connection
    that has received so many bytes.
    """
    found: dict[Key, float] = {}
    for wire in after:
        if wire.here.received >= least:
            age = min(wire.here.last_sent, wire.here.last_received) / 1000
            found[wire.of] = min(found.get(wire.of, age), age)
    return found


def is_lossy(connection: Connection) -> bool:
    """Whether it sends again and again, and nothing of that is acknowledged."""
    return connection.unacknowledged > 0 and connection.backoff >= AGAIN and not connection.persist


def edges(after: Iterable[Wire]) -> frozenset[tuple[Key, Key]]:
    """Pairs (i, j) where i waits for j: i sent last, and both ends agree on that. Only the youngest pairs of
    each rank count, because idle groups keep old ones.
    """
    said = [
        (wire.of, wire.to, wire.here.last_sent)
        for wire in after
        if wire.there.received >= SHORT
        and wire.here.last_received - wire.here.last_sent >= TICK
        and wire.there.last_sent - wire.there.last_received >= TICK
    ]
    youngest: dict[Key, int] = {}
    for of, _, age in said:
        youngest[of] = min(youngest.get(of, age), age)
    return frozenset((of, to) for of, to, age in said if age <= youngest[of] + TICK)

"""What the connections between ranks say: since when they stand still, who waits for whom, what is cut.

Ages count on the clock of the host that saw them, so they need no common clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from doctor.hang.evidence import Connection, Member

TICK = 4
"""Milliseconds of the kernel's clock; a smaller difference is none."""
SHORT = 64
"""Bytes: less was received on a connection that was merely opened."""
AGAIN = 2
"""Retransmissions in a row that call a connection cut."""

Key = tuple[str, int]
"""Host and PID of a rank."""


@dataclass(frozen=True, slots=True)
class Wire:
    """One end of a connection between two ranks, and its other end where that was seen."""

    of: Key
    to: Key
    here: Connection
    there: Connection


def key(member: Member) -> Key:
    return member.host, member.pid


def wires(members: Sequence[Member], *, first: bool = False, rendezvous: bool = False) -> tuple[Wire, ...]:
    """Both directions of each connection; those of the rendezvous only if they are asked for. An end that is
    seen on two hosts is not a connection between them: anybody can have any address in a network of his own.
    """
    masters = {member.master for member in members if member.master and not rendezvous}
    ports = {master.rpartition(":")[2] for master in masters}
    ends: dict[tuple[str, str, str], tuple[Key, Connection]] = {}
    twice: set[tuple[str, str, str]] = set()
    for member in members:
        look = member.a if first else member.b
        for each in look.connections if look else ():
            if not {each.local.rpartition(":")[2], each.peer.rpartition(":")[2]} & ports:
                end = _scope(member.host, each), each.local, each.peer
                if end in ends and ends[end][0][0] != member.host:
                    twice.add(end)
                ends[end] = key(member), each
    return tuple(_paired({end: of for end, of in ends.items() if end not in twice}))


def _scope(host: str, each: Connection) -> str:
    """Loopback addresses mean another thing on each host."""
    return host if each.local.startswith(("127.", "[::1]", "::1")) else ""


def _paired(ends: Mapping[tuple[str, str, str], tuple[Key, Connection]]) -> Iterator[Wire]:
    for (scope, local, peer), (of, here) in ends.items():
        other = ends.get((scope, peer, local))
        if other is not None and other[0] != of:
            yield Wire(of, other[0], here, other[1])


def received_between(before: Iterable[Wire], after: Iterable[Wire]) -> int:
    """Bytes between the looks. What was sent does not count: a dead link sends again."""
    had = {(wire.of, wire.here.local, wire.here.peer): wire.here.received for wire in before}
    return sum(
        max(0, wire.here.received - had.get((wire.of, wire.here.local, wire.here.peer), wire.here.received))
        for wire in after
    )


def silent_for(after: Iterable[Wire]) -> float | None:
    """Seconds since any rank received anything from another."""
    ages = [wire.here.last_received for wire in after if wire.here.received >= SHORT]
    return min(ages) / 1000 if ages else None


def cut(after: Iterable[Wire]) -> tuple[tuple[Key, Key], ...]:
    """Pairs between which data is sent again and again without an answer."""
    lost = {
        (min(wire.of, wire.to), max(wire.of, wire.to))
        for wire in after
        if wire.here.unacknowledged > 0 and wire.here.backoff >= AGAIN and not wire.here.persist
    }
    return tuple(sorted(lost))


def edges(after: Iterable[Wire]) -> frozenset[tuple[Key, Key]]:
    """i waits for j: i spoke last, and both ends agree. Only the youngest: idle groups keep old ones."""
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

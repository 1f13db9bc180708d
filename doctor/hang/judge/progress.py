"""What a process got done between the looks, as far as the kernel counts it or its stacks show it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from doctor.live import threads
from doctor.live.evidence import Connection, JobMember, Look
from doctor.live.places import lines_of, main_thread
from doctor.live.wires import TICK, ports_of, scope

BUSY = 0.15
"""A process counts as busy if it uses more than this share of a core."""
TICKS = 100
"""Ticks of CPU time per second."""

Ends = frozenset[tuple[str, str]]
"""The ranks' ends of their connections, and ports of the rendezvous."""
NONE: Ends = frozenset()


@dataclass(frozen=True, slots=True)
class Progress:
    bytes: int = 0
    """Bytes that it read, wrote, sent or received. Those between ranks do not count."""
    network: int = 0
    """How many of them went over its own connections to others than ranks."""
    calls: int = 0
    """How often its main thread read or wrote."""
    read_on: bool = False
    """Its main thread read or wrote, and the offset in a file changed."""
    woken: bool = False
    """Its main thread did not sleep all the time."""
    ran: bool = False
    """Its main thread was seen running."""
    lines: bool = False
    """Its main thread was seen at different lines."""
    other_thread: bool = False
    """Another Python thread of it was seen at different lines, or computes."""


def ends_of_ranks(ranks: Iterable[JobMember]) -> Ends:
    found = set()
    for rank in ranks:
        port = rank.master.rpartition(":")[2]
        found |= {("", f":{port}")} if port else set()
        for look in rank.looks:
            found |= {(scope(rank.host, each), each.local) for each in look.connections}
    return frozenset(found)


def progress(member: JobMember, apart: float, ranks: Ends = NONE) -> Progress:
    a, b = member.a, member.b
    if a is None or b is None:
        return Progress()
    moved = max(0, b.bytes_moved - a.bytes_moved, b.disk - a.disk)
    network = _network(member, a, b, ranks)
    calls = max(0, b.calls - a.calls)
    return Progress(
        bytes=moved + network,
        network=network,
        calls=calls,
        read_on=calls > 0 and set(a.positions) != set(b.positions),
        woken=threads.woken(a, b),
        ran=any(look.state == "R" for look in member.looks),
        lines=len({lines_of(thread.frames) for look in member.looks if (thread := main_thread(look))}) > 1,
        other_thread=any(_other_threads(member, a, b, apart)),
    )


def _network(member: JobMember, a: Look, b: Look, ranks: Ends) -> int:
    """Bytes over its connections to others than ranks. A new connection counts with all its bytes."""
    had = {(each.local, each.peer): each.received + each.acknowledged for each in a.connections}
    return sum(
        max(0, each.received + each.acknowledged - had.get((each.local, each.peer), 0))
        for each in elsewhere(member, b, ranks)
    )


def elsewhere(member: JobMember, look: Look | None, ranks: Ends) -> Iterator[Connection]:
    """Its connections to others than itself, ranks and their rendezvous."""
    own = {each.local for each in look.connections} if look else set()
    for each in look.connections if look else ():
        ends = {("", f":{port}") for port in ports_of(each)} | {(scope(member.host, each), each.peer)}
        if each.peer not in own and not ends & ranks:
            yield each


def asked(member: JobMember, ranks: Ends) -> Connection | None:
    """A connection to somebody else on which it spoke last, so that an answer is due; None if there is none.
    The connection of the latest request comes first.
    """
    waiting = [
        each for each in elsewhere(member, member.b, ranks) if each.state == "ESTAB" and _spoke_last(each)
    ]
    return min(waiting, key=lambda each: each.last_sent, default=None)


def _spoke_last(each: Connection) -> bool:
    """A first request may be sent within the same millisecond in which the connection was made."""
    return (each.received == 0 and each.acknowledged > 1) or each.last_received - each.last_sent >= TICK


def _other_threads(member: JobMember, a: Look, b: Look, apart: float) -> Iterator[bool]:
    """For each other Python thread: whether it was seen at different lines, or computes."""
    mains = {thread.tid for look in member.looks if (thread := main_thread(look))}
    seen: dict[int, set[object]] = {}
    for look in member.looks:
        for thread in look.python:
            if thread.tid not in mains and thread.frames:
                seen.setdefault(thread.tid, set()).add(lines_of(thread.frames))
    before = {thread.tid: thread.cpu for thread in a.threads}
    for now in b.threads:
        if now.tid in seen:
            used = (now.cpu - before.get(now.tid, now.cpu)) / TICKS / max(apart, 0.1)
            yield len(seen[now.tid]) > 1 or used > BUSY


def busy(member: JobMember, apart: float) -> bool:
    """Whether it computes. State R in both looks counts as well: on a crowded host it may get no CPU time.
    Threads of libraries that spin, as NCCL's do, do not count beside a main thread that sleeps.
    """
    a, b = member.a, member.b
    if a is None or b is None:
        return False
    if a.state == b.state == "R":
        return True
    before, now = threads.main(a), threads.main(b)
    if before and now and "nanosleep" in before.waits and "nanosleep" in now.waits:
        return (now.cpu - before.cpu) / TICKS / max(apart, 0.1) > BUSY
    return (b.cpu - a.cpu) / TICKS / max(apart, 0.1) > BUSY

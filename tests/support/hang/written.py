"""Jobs of any size, written as they would be seen: one word describes what a rank does."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from doctor.live.evidence import (
    Connection,
    Frame,
    HostEvidence,
    JobMember,
    LiveEvidence,
    Look,
    PythonThread,
    Thread,
)
from tests.support.cases import from_cases

LIB = "/opt/venv/lib/python3.11/site-packages/torch"
OWN = "/srv/job/train.py"
FRAMES = from_cases(__file__, "FRAMES", dict[str, Frame])
MAIN, COLLECTIVE, FORWARD = FRAMES["main"], FRAMES["collective"], FRAMES["forward"]
IMPORT, EVALUATE, MEASURE = FRAMES["import"], FRAMES["evaluate"], FRAMES["measure"]
STACKS = from_cases(__file__, "STACKS", dict[str, tuple[Frame, ...]])
FUTEX, NANOSLEEP = "futex_do_wait", "hrtimer_nanosleep"
WAITS = from_cases(__file__, "WAITS", dict[str, str])
BUSY = {"spins", "compiles", "evaluates", "imports"}


def threads(pid: int, does: str, *, device: bool) -> tuple[Thread, ...]:
    """The main thread, and the threads of one gloo group or of NCCL."""
    waits = WAITS.get(does, FUTEX)
    read = {"storage": ("0", "0x9"), "types": ("0", "0x0")}.get(does) or ("202", "0x1", "0x189", "0x0", "0x0")
    state = "R" if does in BUSY else "S"
    main = Thread(tid=pid, name="python", state=state, switches=50, waits=waits, syscall=read)
    if device:
        return (main, Thread(tid=pid + 1, name="pt_nccl_watchdg", state="S"))
    limit = "0x7f6cf2c10240" if does in ("waits", "backward") else "0x0"
    idle = ("202", "0x1", "0x189", "0x0", "0x0")
    return (
        main,
        Thread(tid=pid + 1, name="gloo_tcp_loop", state="S", syscall=("232", "0x10")),
        Thread(tid=pid + 2, name="pt_gloo_runloop", state="S", syscall=(*idle[:4], limit)),
        Thread(tid=pid + 3, name="pt_gloo_runloop", state="S", syscall=idle),
    )


def look(pid: int, does: str, second: bool, *, device: bool = False, step: int | None = None) -> Look:
    if does == "ended":
        return Look(pid=pid, state="Z")
    stack = STACKS.get(does, STACKS["sleeps"])
    if does == "evaluates" and second:
        stack = (MEASURE, MAIN)
    return Look(
        pid=pid,
        state={"stopped": "T", "stuck": "D", "spins": "R", "compiles": "R"}.get(does, "S"),
        cpu=190 if second and does in BUSY else 10,
        bytes_moved=30_000_000 if second and does == "saves" else 1_000,
        threads=threads(pid, does, device=device),
        files=("/data/shard-17.bin", "/srv/job/out.log") if does == "storage" else (),
        python=(PythonThread(tid=pid, name="MainThread", frames=stack, step=step),),
    )


def ring(number: int, world: int, hosts: Sequence[str], silent: float) -> tuple[Connection, ...]:
    """Both ends of the connections with its neighbours; the later rank connected. No rank is behind: the
    tests change that.
    """
    age = int(silent * 1000)
    made = []
    for low, high in {(number, (number + 1) % world), ((number - 1) % world, number)} if world > 1 else ():
        ends = [f"10.0.0.{host_of(rank, world, hosts) + 1}:{20_000 + rank}" for rank in (low, high)]
        ends[1] = ends[1].replace(":2", ":4", 1)
        local, peer = ends if number == low else ends[::-1]
        made.append(
            Connection(
                state="ESTAB", local=local, peer=peer, received=9_000, last_sent=age, last_received=age
            )
        )
    return tuple(made)


def host_of(rank: int, world: int, hosts: Sequence[str]) -> int:
    return rank * len(hosts) // world


def evidence(
    does: Sequence[str] | Mapping[int, str],
    hosts: Sequence[str] = ("node1", "node2"),
    *,
    world: int | None = None,
    silent: float = 200.0,
    age: float = 3_600.0,
    apart: float = 2.0,
    device: bool = False,
    job: str = "node1:29500",
    steps: tuple[int, int] | None = None,
    unreached: Mapping[str, str] | None = None,
) -> LiveEvidence:
    """Ranks that are not in `does` were not found."""
    said = dict(does) if isinstance(does, Mapping) else dict(enumerate(does))
    size = world or len(said)
    of: dict[str, list[JobMember]] = {name: [] for name in hosts if name not in (unreached or {})}
    for rank, word in said.items():
        name = hosts[host_of(rank, size, hosts)]
        if name not in of:
            continue
        pid = 4_000 + rank * 10
        first, last = steps or (None, None)
        a = look(pid, word, False, device=device, step=first)
        b = look(pid, word, True, device=device, step=last)
        if word not in ("ended", "meets") and not device:
            b = replace(b, connections=ring(rank, size, hosts, silent))
            a = replace(a, connections=ring(rank, size, hosts, max(0.0, silent - apart)))
        of[name].append(
            JobMember(
                host=name,
                pid=pid,
                parent=100,
                job=job,
                rank=rank,
                world=size,
                launcher="torchrun",
                command="python train.py",
                user="alice",
                age=age,
                master=job,
                a=a,
                b=b,
            )
        )
    seen = tuple(
        HostEvidence(
            host=name,
            members=tuple(members),
            at=1_763_629_200.0,
            apart=apart,
            root=True,
            stacks="py-spy 0.4.3",
        )
        for name, members in of.items()
    )
    return LiveEvidence(
        started="2025-11-20T09:00:00Z", hosts=seen, unreached=dict(unreached or {}), asked=tuple(hosts)
    )


def changed(
    seen: LiveEvidence, change: Callable[[JobMember], JobMember], rank: int | None = None
) -> LiveEvidence:
    """The same with other processes: all of them, or those of one rank."""

    def member(each: JobMember) -> JobMember:
        return change(each) if rank in (None, each.rank) else each

    hosts = tuple(replace(host, members=tuple(map(member, host.members))) for host in seen.hosts)
    return replace(seen, hosts=hosts)


def looked(member: JobMember, change: Callable[[Look], Look]) -> JobMember:
    """The same process with another first and last look."""
    return replace(member, a=member.a and change(member.a), b=member.b and change(member.b))


def at_last(member: JobMember, change: Callable[[Look], Look]) -> JobMember:
    """The same process with another last look."""
    return replace(member, b=member.b and change(member.b))


def with_main(look: Look, **changes: Any) -> Look:
    """The same look with another main thread."""
    main, *rest = look.threads
    return replace(look, threads=(replace(main, **changes), *rest))


def both(one: LiveEvidence, other: LiveEvidence) -> LiveEvidence:
    """Two jobs on the same hosts."""
    members = {host.host: host.members for host in other.hosts}
    hosts = tuple(replace(host, members=(*host.members, *members[host.host])) for host in one.hosts)
    return replace(one, hosts=hosts)


def seen_from_outside(seen: LiveEvidence, *, loose: bool = True, user: str = "alice") -> LiveEvidence:
    """The job as another user sees it: no stacks, system calls, kernel functions or owners of connections."""

    def look(each: Look | None) -> Look | None:
        if each is None:
            return None
        threads = tuple(replace(thread, waits="", syscall=()) for thread in each.threads)
        return replace(each, threads=threads, python=(), connections=(), files=(), bytes_moved=0)

    def connections(member: JobMember) -> list[Connection]:
        return [replace(each, user=user) for each in (member.b.connections if member.b else ())]

    def member(each: JobMember) -> JobMember:
        return replace(each, rank=None, world=None, hidden=True, master="", a=look(each.a), b=look(each.b))

    hosts = []
    for host in seen.hosts:
        ends = tuple(each for one in host.members for each in connections(one)) if loose else ()
        made = tuple(map(member, host.members))
        hosts.append(replace(host, members=made, loose=ends, root=False, stacks=""))
    return replace(seen, hosts=tuple(hosts))

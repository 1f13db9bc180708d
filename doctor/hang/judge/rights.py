"""How much of a job could be seen, and what would show more."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.hang.evidence import Evidence, HostSeen
from doctor.hang.judge.judgement import Job, Rights
from doctor.hang.pyspy import MACHINES

ROOT, OWN, OTHER = "root", "the job's own user", "another user"


def rights_of(evidence: Evidence, job: Job) -> Rights:
    hosts = [host for host in evidence.hosts if host.host in job.hosts]
    looks = [look for rank in job.ranks for look in (rank.a, rank.b) if look]
    if not looks:
        return Rights("", False, False, tuple(_unread(hosts)), ("a longer --timeout",))
    stacks = any(look.python for look in looks)
    own = stacks or any(thread.syscall for look in looks for thread in look.threads)
    level = ROOT if hosts and all(host.root for host in hosts) else OWN if own else OTHER
    connections = all(host.ages for host in hosts)
    unread = tuple(dict.fromkeys((*_unread(hosts), *(each for look in looks for each in look.unread))))
    user = next((rank.user for rank in job.ranks if rank.user), "")
    refused = any("permi" in each.lower() for each in unread)
    lacks = tuple(sorted({host.lacks for host in hosts} & {*MACHINES.values()}))
    raises = tuple(_raises(level, stacks, connections, user, refused, lacks))
    return Rights(level, stacks, connections, unread, raises, lacks)


def _unread(hosts: list[HostSeen]) -> Iterator[str]:
    for host in hosts:
        yield from (f"{host.host}: {each}" for each in host.unread)


def _raises(
    level: str, stacks: bool, connections: bool, user: str, refused: bool, lacks: tuple[str, ...]
) -> Iterator[str]:
    if level == OTHER:
        who = f"as {user}, who owns the job, or with --sudo" if user else "as the job's owner, or with --sudo"
        yield f"{'with --sudo' if user == 'root' else who}: what each rank waits for, and its stack"
    elif not stacks and refused:
        yield "--sudo, or in a container --cap-add SYS_PTRACE: the line of each rank"
    elif not stacks and not lacks:
        yield "py-spy on the hosts: the line of each rank"
    if lacks:
        yield f"a py-spy for {' and '.join(lacks)} (--pyspy FILE): the line of each rank"
    if not connections:
        yield "ss (iproute2) on the hosts: for how long the job has stood still"

"""How much of a job could be seen, how to see more, and which ranks were judged without stacks."""

import re
from collections.abc import Iterable, Iterator, Sequence

from doctor.hang.judge.judgement import Rights
from doctor.live.evidence import HostEvidence, JobMember, LiveEvidence
from doctor.live.jobs.job import RunningJob
from doctor.live.pyspy import MACHINES
from doctor.text.grouped import grouped
from doctor.text.nodeset import fold
from doctor.text.ranks import ranks_text

ROOT, OWN, OTHER = "root", "the job's own user", "another user"
MOST = 4
_SILENT = re.compile(r"^Python stacks?: .*no answer within (\S+ s)\b")
"""The message that a host or a process gave no stack in time."""


def rights_of(evidence: LiveEvidence, job: RunningJob) -> Rights:
    hosts = [host for host in evidence.hosts if host.host in job.hosts]
    looks = [look for each in job.ranks or job.starters for look in (each.a, each.b) if look]
    if not looks:
        return Rights("", False, False, tuple(_unread(hosts)), ("a longer --timeout",))
    stacks = any(look.python for look in looks)
    own = stacks or any(thread.syscall for look in looks for thread in look.threads)
    level = ROOT if hosts and all(host.root for host in hosts) else OWN if own else OTHER
    connections = all(host.ages for host in hosts)
    unread = tuple(dict.fromkeys((*_unread(hosts), *(each for look in looks for each in look.unread))))
    user = job.owner
    refused = any("permi" in each.lower() for each in unread)
    lacks = tuple(sorted({host.lacks for host in hosts} & {*MACHINES.values()}))
    raises = tuple(_raises(level, stacks, connections, user, refused, lacks))
    return Rights(level, stacks, connections, unread, raises, lacks)


def _unread(hosts: list[HostEvidence]) -> Iterator[str]:
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


def silent(member: JobMember, of_host: Iterable[str] = ()) -> str:
    """The time within which its host, being busy, gave no stack of it; empty if there is a stack, or if it
    is missing for another reason.
    """
    if any(look.python for look in member.looks):
        return ""
    said = (*of_host, *(each for look in member.looks for each in look.unread))
    return next((found[1] for each in said if (found := _SILENT.search(each))), "")


def stackless(evidence: LiveEvidence, job: RunningJob) -> Iterator[str]:
    """ "no stacks of rank 3 within 10 s: it is judged by /proc alone" """
    hosts = {host.host: host.unread for host in evidence.hosts}
    asked = ((silent(rank, hosts.get(rank.host, ())), rank) for rank in job.ranks)
    waited = grouped((seconds, rank) for seconds, rank in asked if seconds)
    late = [rank for rank in job.ranks if rank.a and rank.b is None]
    if late:
        yield f"{_named(late)}: only the first of two looks was answered in time"
    for seconds, members in waited.items():
        they = "it is" if len(members) == 1 else "they are"
        yield f"no stacks of {_named(members)} within {seconds}: {they} judged by /proc alone"


def _named(members: Sequence[JobMember]) -> str:
    """ "ranks 2-3 on node2" """
    ranks = [member.rank for member in members if member.rank is not None]
    whom = ranks_text(ranks, most=MOST) if len(ranks) == len(members) else f"{len(members)} processes"
    return f"{whom} on {fold(dict.fromkeys(member.host for member in members))}"

"""Whether ranks are connected to a local process that is none of them: then a rank was not recognised."""

from collections.abc import Iterator

from doctor.live.evidence import Connection, HostEvidence, JobMember, LiveEvidence
from doctor.live.jobs.job import RunningJob
from doctor.live.jobs.owners import HERE
from doctor.live.wires import SHORT, Key, key, ports_of

MOST = 20_000


def unrecognised(evidence: LiveEvidence, job: RunningJob) -> tuple[Key, ...]:
    """The ranks with such a connection. If every number of the world is held, no rank can be missing."""
    numbers = {rank.rank for rank in job.ranks}
    if job.world is not None and job.world <= MOST and numbers >= {*range(job.world)}:
        return ()
    return tuple(
        key(rank)
        for host in evidence.hosts
        for rank in job.ranks
        if rank.host == host.host and any(_leads_away(rank, host))
    )


def _leads_away(rank: JobMember, host: HostEvidence) -> Iterator[bool]:
    known = {(each.local, each.peer) for member in host.members for each in _connections(member)}
    port = rank.master.rpartition(":")[2]
    for each in _connections(rank):
        here = each.peer.startswith(HERE) or each.peer.rpartition(":")[0].strip("[]") in host.addresses
        if here and each.received >= SHORT and port not in ports_of(each):
            yield (each.peer, each.local) not in known


def _connections(member: JobMember) -> tuple[Connection, ...]:
    return member.b.connections if member.b else ()

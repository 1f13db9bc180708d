"""Jobs of other users: what can be seen of ranks that may not be read. This never suffices to accuse one."""

from collections.abc import Iterator, Sequence

from doctor.hang.judge.judgement import Cause
from doctor.hang.judge.progress import busy as is_busy
from doctor.live import threads
from doctor.live.evidence import JobMember, LiveEvidence
from doctor.live.jobs.job import RunningJob
from doctor.live.wires import SHORT, scope

MOVING = 1.0
"""Seconds: a job that exchanged data within this time moves."""
FEWEST = 3
"""The fewest processes in which one can be the odd one: if there are two, either could be."""


def silence(evidence: LiveEvidence, job: RunningJob) -> tuple[bool, float | None]:
    """Whether the connections show for how long the job has been silent, and the seconds; None if unknown.

    A job is silent while its user's processes exchange no data. It is unknown which process a connection
    belongs to, so both ends must belong to this user, on hosts of this job. A recent exchange counts only if
    every rank was woken as well.
    """
    looks = [rank.b for rank in job.ranks]
    if any(map(threads.uses_device, looks)) or not any(map(threads.uses_gloo, looks)):
        return False, None
    user = job.ranks[0].user
    ends = [
        (scope(host.host, each), each)
        for host in evidence.hosts
        if host.host in job.hosts
        for each in host.loose
        if each.user == user and each.received >= SHORT
    ]
    known = {(network, each.local, each.peer) for network, each in ends}
    ages = [each.last_received / 1000 for network, each in ends if (network, each.peer, each.local) in known]
    still = min(ages, default=None)
    if still is None or (still < MOVING and not all(threads.woken(rank.a, rank.b) for rank in job.ranks)):
        return False, None
    return True, min(still, job.age or still)


def odd(ranks: Sequence[JobMember], apart: float) -> Iterator[tuple[JobMember, Cause, str]]:
    """The only busy or the only idle process among several equal ones, with the cause in words."""
    if len(ranks) < FEWEST or len({each.command for each in ranks}) > 1:
        return
    busy = [each for each in ranks if is_busy(each, apart)]
    asleep = [each for each in ranks if threads.slept(each.a, each.b)]
    idle = [each for each in asleep if {look.state for look in (each.a, each.b) if look} == {"S"}]
    if len(busy) + len(idle) < len(ranks):
        return
    if len(busy) == 1:
        yield busy[0], Cause.COMPUTES, "uses its processor, and the others do nothing"
    elif len(idle) == 1:
        yield idle[0], Cause.ELSEWHERE, "does nothing, and the others use their processors"

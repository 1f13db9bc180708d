"""Jobs of other users, whose ranks may not be read: whether they move, by the connections of their user."""

from doctor.live import threads
from doctor.live.evidence import LiveEvidence
from doctor.live.jobs.job import RunningJob
from doctor.live.wires import SHORT, scope

MOVING = 1.0
"""Seconds: a job that exchanged data within this time moves."""


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

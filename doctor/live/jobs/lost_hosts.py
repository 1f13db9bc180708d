"""Hosts to which ranks have connections whose other end is gone: they were rebooted, or lost their processes
without a word.
"""

from collections import Counter
from collections.abc import Collection, Sequence

from doctor.live.evidence import HostEvidence, JobMember, LiveEvidence
from doctor.live.jobs.job import LostHost, RunningJob
from doctor.live.wires import unpaired
from doctor.text.grouped import grouped

MARGIN = 2.0
"""Seconds by which the ages of a host and of a job, or of an event, may be wrong."""


def lost_hosts(evidence: LiveEvidence, job: RunningJob) -> tuple[LostHost, ...]:
    missing = sorted({*job.missing} - {rank for rank, _ in job.gone})
    own = {host.host: {*host.addresses} for host in evidence.hosts}
    leads = [
        (f"{each.peer} {each.local}", rank)
        for rank, each in (unpaired(job.ranks) if missing else ())
        if each.peer.rpartition(":")[0].strip("[]") not in own[rank.host]
    ]
    # Several hosts may have one address, such as that of a bridge for containers.
    claims = Counter(end for host in evidence.hosts if host.ends for end in {*host.ends.lacks})
    found: list[tuple[HostEvidence, list[JobMember], str]] = []
    for host in evidence.hosts:
        gone = {end for end in (host.ends.lacks if host.ends else ()) if claims[end] == 1}
        waiting = [(end, rank) for end, rank in leads if end in gone and rank.host != host.host]
        if waiting:
            found.append(
                (host, [rank for _, rank in waiting], waiting[0][0].partition(" ")[0].rpartition(":")[0])
            )
    of_host = _homes([host for host, *_ in found], evidence.asked, job.ranks, missing)
    return tuple(
        _lost(host, waiting, address, of_host.get(host.host, ()), job.age, missing)
        for host, waiting, address in found
    )


def _lost(
    host: HostEvidence,
    waiting: Sequence[JobMember],
    address: str,
    ranks: tuple[int, ...],
    age: float,
    missing: Collection[int],
) -> LostHost:
    assert host.ends is not None
    own = [each for each in host.members if each.helps is None]
    may_be = [each for each in own if each.rank is None or each.rank in missing]
    unsure = f"process {may_be[0].pid} there may be it" if may_be else host.ends.unsure
    numbers = sorted({rank.rank for rank in waiting if rank.rank is not None})
    again = host.ends.uptime if 0 < host.ends.uptime < age - MARGIN else None
    return LostHost(host.host, ranks, tuple(numbers), address, unsure, _killed(host.ends.killed, age), again)


def _killed(lines: Sequence[str], age: float) -> str:
    """ "the kernel killed python (pid 812) there 40 s ago" """
    for line in reversed(lines):
        seconds, pid, name = [*line.split(" ", 2), "", ""][:3]
        if seconds.isdigit() and pid.isdigit() and int(seconds) <= age + MARGIN:
            return f"its kernel killed {name} (pid {pid}) {seconds} s ago for lack of memory"
    return ""


def _homes(
    hosts: Sequence[HostEvidence], asked: Sequence[str], ranks: Sequence[JobMember], missing: Sequence[int]
) -> dict[str, tuple[int, ...]]:
    """The missing ranks of each of these hosts, if all hosts have as many ranks and these hosts explain all
    that are missing: one host, or several if the order of the hosts is that of the ranks.
    """
    of_host = grouped((rank.host, rank.rank or 0) for rank in ranks)
    sizes = {len(numbers) for numbers in of_host.values()}
    size = sizes.pop() if len(sizes) == 1 else 0
    first = [min(of_host[host]) for host in asked if host in of_host]
    if not size or len(missing) != size * len(hosts) or (len(hosts) > 1 and first != sorted(first)):
        return {}
    return {host.host: tuple(missing[at * size : (at + 1) * size]) for at, host in enumerate(hosts)}

"""Jobs without a name of their own are named after a process, so the host is added to the name."""

from msgspec.structs import replace

from doctor.live.evidence import HostEvidence, JobMember
from doctor.live.onhost.launchers import NAMELESS


def own_jobs(seen: HostEvidence) -> HostEvidence:
    return replace(seen, members=tuple(_with_host(member, seen.host) for member in seen.members))


def _with_host(member: JobMember, host: str) -> JobMember:
    return replace(member, job=f"{member.job} on {host}"[:256]) if member.job.startswith(NAMELESS) else member

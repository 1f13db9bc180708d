"""The job that is meant, where several run."""

from __future__ import annotations

from msgspec.structs import replace

from doctor.errors import UsageError
from doctor.hang.evidence import Evidence, Member


def chosen(evidence: Evidence, pid: int | None = None, port: int | None = None) -> Evidence:
    """The evidence of this job alone. Raises UsageError where no job has such a process or port."""
    if pid is None and port is None:
        return evidence
    members = [member for host in evidence.hosts for member in host.members]
    jobs = {m.job for m in members if _meant(m, pid, port)}
    if not jobs:
        what = " ".join(
            ([f"--pid {pid}"] if pid is not None else []) + ([f"--master-port {port}"] if port else [])
        )
        raise UsageError(f"{what}: no job that was found has it.", "Without it, all jobs are listed.")
    hosts = tuple(
        replace(host, members=tuple(m for m in host.members if m.job in jobs)) for host in evidence.hosts
    )
    return replace(evidence, hosts=hosts)


def _meant(member: Member, pid: int | None, port: int | None) -> bool:
    of_port = port is None or member.master.rpartition(":")[2] == str(port)
    return of_port and (pid is None or pid in (member.pid, member.parent))

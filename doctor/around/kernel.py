"""The kernel's log of a host, as far as it is about the job: a kernel reports on all programs, for weeks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

_TIME = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{6}[+-]\d\d:\d\d")
_ANNOUNCED = re.compile(rb"invoked oom-killer|oom_reaper: reaped process")
_KILLED = re.compile(rb"(?:[Oo]ut of memory(?: \([^)]*\))?: Kill(?:ed)? process |oom-kill:.*,pid=)(\d{1,9})")
_GROUP = re.compile(rb"(?:,task_memcg=([^,]*)|\bTask in (\S+) killed as a result of limit)")
"""The control group of the process; kernels before 5.0 say it in a line of its own, before the process."""
_IN_CONTAINER = re.compile(r"(?:^|[/-])(?:docker|libpod|podman|kubepods|containerd|cri-o|crio|lxc|garden)\b")
_ABOUT_PROCESSES = re.compile(rb"(?i)\b(?:pids?|(?:sub)?process|killed|signal|sigkill)\b")
_NUMBER = re.compile(rb"(?<![\w.])\d{1,9}(?![\w.]*\w)")
_LOST = re.compile(
    r"(?i)\bsigkill\b|\bsignal:? ?9\b|(?<![\w-])killed\s*$|(?:code|status)\W{0,9}(?:-9|137)(?!\d)"
    r"|\d killed\b|\bkilled by signal|已杀死".encode()
)
"""What launchers and shells print of a process that KILL ended."""
_WITH_PID = re.compile(r"(?i)\bpids?\b\W{0,3}[1-9]|\d (?:killed|已杀死)".encode())
JOB_IDS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID")
LAST = 120.0
"""Seconds before the end of the job in which a process that nobody names may be the one that it lost."""


@dataclass(frozen=True, slots=True)
class JobProcesses:
    """How the processes of a job are known on its hosts."""

    named: frozenset[int] = frozenset()
    """The numbers in what the job printed about processes: launchers name the PIDs of lost ranks."""
    pids: frozenset[int] = frozenset()
    """PIDs on this machine."""
    job_ids: tuple[str, ...] = ()
    """The ids under which the scheduler runs it; control groups have them in their names."""
    lost: bool = False
    """Whether KILL ended the job, or one of its processes as the job says."""
    names_lost: bool = False
    """Whether the job named the PID of such a process."""

    def has(self, pid: int, group: str, *, here: bool) -> bool:
        """Whether the kernel killed a process of the job. `here`: the log is of this machine."""
        if any(re.search(rf"(?:^|[/_.-]){re.escape(each)}(?:[/_.-]|$)", group) for each in self.job_ids):
            return True
        return pid in self.named or (here and pid in self.pids)

    def may_have(self, group: str) -> bool:
        """Whether the job may have lost such a process without naming it as the kernel does: in a container
        processes have other PIDs.
        """
        return self.lost and (not self.names_lost or _IN_CONTAINER.search(group) is not None)


def processes_of(
    said: bytes, pids: Iterable[int], environ: Mapping[str, str], *, killed: bool
) -> JobProcesses:
    """What is known of the processes of a job that printed this. `killed`: KILL ended it."""
    lines = [line for line in said.splitlines() if _ABOUT_PROCESSES.search(line) or _LOST.search(line)]
    lost = [line for line in lines if _LOST.search(line)]
    return JobProcesses(
        frozenset(int(each) for line in lines for each in _NUMBER.findall(line)),
        frozenset(pids),
        tuple(value for name in JOB_IDS if (value := environ.get(name, ""))),
        killed or bool(lost),
        any(_WITH_PID.search(line) for line in lost),
    )


def of_job(
    text: bytes, begin: float, until: float, job: JobProcesses, *, here: bool
) -> tuple[bytes, frozenset[int]]:
    """The lines from the time of the job, without processes of others that were killed for lack of memory;
    with the PIDs of those that only may be the job's.
    """
    lines = [*_between(text.splitlines(keepends=True), begin, until)]
    ours = {pid for pid, group in _killed(lines) if job.has(pid, group, here=here)}
    maybe: set[int] = set()
    if not ours:
        last = _between(lines, max(begin, until - LAST), until)
        maybe = {pid for pid, group in _killed(last) if job.may_have(group)}
    return b"".join(line for line in lines if _stays(line, ours | maybe)), frozenset(maybe)


def pid_of_killed(line: str) -> int | None:
    """The process that the kernel killed for lack of memory, as the line says."""
    killed = _KILLED.search(line.encode())
    return int(killed[1]) if killed else None


def _stays(line: bytes, ours: set[int]) -> bool:
    if _ANNOUNCED.search(line):  # the line that names the process says the same
        return False
    killed = _KILLED.search(line)
    return killed is None or int(killed[1]) in ours


def _killed(lines: Iterable[bytes]) -> Iterator[tuple[int, str]]:
    """The processes that were killed, each with its control group; that is empty if it is unknown."""
    groups: dict[int, str] = {}
    before = ""
    for line in lines:
        group, killed = _GROUP.search(line), _KILLED.search(line)
        if group and not killed:
            before = _text(group)
        if killed:
            pid = int(killed[1])
            groups[pid] = (_text(group) if group else before) or groups.get(pid, "")
            before = ""
    yield from groups.items()


def _text(group: re.Match[bytes]) -> str:
    return (group[1] or group[2] or b"").decode(errors="replace")


def _between(lines: Iterable[bytes], begin: float, until: float) -> Iterator[bytes]:
    """What came before or later did not end the job, and what has no time may be weeks old."""
    keeps = False
    for line in lines:
        if said := _TIME.match(line):
            stamp = said[0].decode().replace(",", ".")
            keeps = begin <= datetime.fromisoformat(stamp).timestamp() <= until
        if keeps:
            yield line

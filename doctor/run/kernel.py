"""The kernel's log of a host, as far as it is about the job: a kernel reports on all programs, for weeks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from doctor.agents.onhost.kernel_words import own_words

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


CLOCK = 0.5
"""Seconds by which the time of the kernel may differ from that of its machine."""
SAME = 10.0
"""Seconds in which the kernel says twice that it killed a process."""


@dataclass(frozen=True, slots=True)
class KilledProcess:
    """A process that the kernel killed for lack of memory. `group` is its control group, if it is known."""

    pid: int
    group: str
    at: float
    """In seconds since 1970."""


@dataclass(frozen=True, slots=True)
class JobProcesses:
    """How the processes of a job are known on its hosts."""

    named: frozenset[int] = frozenset()
    """The numbers in what the job printed about processes: launchers name the PIDs of lost ranks."""
    here: Mapping[int, Sequence[tuple[float, float]]] = field(default_factory=dict)
    """The PIDs on this machine, and from when until when, in seconds since 1970, each was the job's."""
    job_ids: tuple[str, ...] = ()
    """The ids under which the scheduler runs it; control groups have them in their names."""
    lost: bool = False
    """Whether KILL ended the job, or one of its processes as the job says."""
    names_lost: bool = False
    """Whether the job named the PID of such a process."""

    def has(self, killed: KilledProcess, *, here: bool) -> bool:
        """Whether the kernel killed a process of the job. `here`: the log is of this machine."""
        group, pid = killed.group, killed.pid
        if any(re.search(rf"(?:^|[/_.-]){re.escape(each)}(?:[/_.-]|$)", group) for each in self.job_ids):
            return True
        spans = self.here.get(pid, ()) if here else ()
        return pid in self.named or any(begin - CLOCK <= killed.at <= until + CLOCK for begin, until in spans)

    def may_have(self, group: str) -> bool:
        """Whether the job may have lost such a process without naming it as the kernel does: in a container
        processes have other PIDs.
        """
        return self.lost and (not self.names_lost or _IN_CONTAINER.search(group) is not None)


def processes_of(
    said: bytes,
    here: Mapping[int, Sequence[tuple[float, float]]],
    environ: Mapping[str, str],
    *,
    killed: bool,
) -> JobProcesses:
    """What is known of the processes of a job that printed this. `killed`: KILL ended it."""
    lines = [line for line in said.splitlines() if _ABOUT_PROCESSES.search(line) or _LOST.search(line)]
    lost = [line for line in lines if _LOST.search(line)]
    return JobProcesses(
        frozenset(int(each) for line in lines for each in _NUMBER.findall(line)),
        here,
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
    killed = _killed(lines)
    ours = {each for each in killed.values() if job.has(each, here=here)}
    maybe = set()
    if not ours:
        last = max(begin, until - LAST)
        maybe = {each for each in killed.values() if each.at >= last and job.may_have(each.group)}
    stays = (
        line
        for number, line in enumerate(lines)
        if killed.get(number) in (None, *ours, *maybe) and not _ANNOUNCED.search(line)
    )  # the line that names the process says what its announcement does
    return b"".join(stays), frozenset(each.pid for each in maybe)


def pid_of_killed(line: str) -> int | None:
    """The process that the kernel killed for lack of memory, as the line says."""
    killed = _KILLED.search(line.encode())
    return int(killed[1]) if killed else None


def _killed(lines: Sequence[bytes]) -> dict[int, KilledProcess]:
    """The processes that were killed, by the numbers of the lines: often two lines are about one."""
    found: dict[int, KilledProcess] = {}
    latest: dict[int, KilledProcess] = {}
    before, at = "", 0.0
    for number, line in enumerate(lines):
        at = _time(line) or at
        said = _own_words(line)
        group, killed = _GROUP.search(said), _KILLED.search(said)
        if group and not killed:
            before = _text(group)
        if killed:
            pid = int(killed[1])
            last, own = latest.get(pid), _text(group) if group else before
            same = last is not None and not own and at - last.at < SAME
            found[number] = latest[pid] = last if last and same else KilledProcess(pid, own, at)
            before = ""
    return found


def _own_words(line: bytes) -> bytes:
    begin = _TIME.match(line)
    said = line[begin.end() if begin else 0 :].strip().decode(errors="replace")
    return own_words(said).encode(errors="replace")


def _text(group: re.Match[bytes]) -> str:
    return (group[1] or group[2] or b"").decode(errors="replace")


def _between(lines: Iterable[bytes], begin: float, until: float) -> Iterator[bytes]:
    """What came before or later did not end the job, and what has no time may be weeks old."""
    keeps = False
    for line in lines:
        if at := _time(line):
            keeps = begin <= at <= until
        if keeps:
            yield line


def _time(line: bytes) -> float | None:
    """In seconds since 1970; None if the line goes on with what another began."""
    said = _TIME.match(line)
    return datetime.fromisoformat(said[0].decode().replace(",", ".")).timestamp() if said else None

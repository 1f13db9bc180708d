"""Processes that obstruct a job, and what the kernel logged."""

import re
from dataclasses import dataclass

from doctor.agents.onhost.kernel_kills import LACK
from doctor.agents.onhost.kernel_words import is_crash, own_words, whole_lines
from doctor.api import Capture, Fact, Run, UnreadableOutput
from doctor.devices import every
from doctor.text.hostprogram import host_program


@dataclass(frozen=True, slots=True)
class DeviceProcess:
    pid: int
    parent: int
    state: str
    user: str
    seconds: int
    command: str
    """The program, and the part of its command line that makes it a worker; older recordings: all of it."""


@dataclass(frozen=True, slots=True)
class Processes:
    """Only suspicious processes: stuck, zombie, or workers whose launcher is gone. `init` is the program of
    process 1; it is empty if no process is suspicious."""

    init: str
    shown: tuple[DeviceProcess, ...]


_WORKER = "multiprocessing.(spawn|forkserver|resource_tracker)"
_PS = host_program(__file__, "processes.sh", worker=_WORKER, hidden=_WORKER.replace("g.", "[g]."))
"""A command line of any user's process may hold a secret: only the program and the part that makes a process
a worker leave the host. Most hosts have none of these. The brackets keep the pattern from finding itself. The
probe's own session is left out: its shells are in state D for an instant whenever they fork.
"""
_OURSELVES = re.compile(r"awk (?:-v own=\S* )?\$[12] == 1 ")


def _processes(capture: Capture) -> Processes:
    rows = re.findall(
        r"^ *(\d{1,10}) +(\d{1,10}) +(\S{1,8}) +(\S+) +(\d{1,12}) +(.*)$", capture.stdout, re.MULTILINE
    )
    found = [
        DeviceProcess(int(p), int(pp), st, user, int(t), args.strip()) for p, pp, st, user, t, args in rows
    ]
    if not found and capture.stdout.strip() != "none":
        raise UnreadableOutput("ps printed no process")
    init = next((process.command for process in found if process.pid == 1), "")
    return Processes(init, tuple(p for p in found if p.pid != 1 and not _OURSELVES.match(p.command)))


PROCESSES = Fact("processes", Run(_PS), _processes, slow=True)


@dataclass(frozen=True, slots=True)
class KernelLine:
    """One line of the kernel log; `age` in seconds, None if the line has no time since boot."""

    age: float | None
    text: str

    @property
    def is_crash(self) -> bool:
        """Whether it says that a program crashed, and so nothing else."""
        return is_crash(self.message)

    @property
    def message(self) -> str:
        """The kernel's own words, without the facility and time that dmesg may put before them."""
        begin = _DECODED.match(self.text)
        return self.text[begin.end() if begin else 0 :]


WORTH_READING = "|".join(
    (
        f"{LACK}|machine check|hardware error|link (is )?(up|down)|(i/o|medium|target) error",
        "ext4-fs error|nf_conntrack: table full|segfault|edac|soft lockup|blocked for more",
        "xfs .*(corruption|shutting)|disk failure|nvme.*(timeout, |will reset|failure)",
        "memory failure",
        *every("kernel_log"),
    )
)


_DECODED = re.compile(r"(?:[a-z]{2,9} {0,5}:[a-z]{3,6} {0,5}: )?\d{4}-\d\d-\d\dT[\d:,.+-]{8,30} ")
"""The beginning of a line of dmesg with options: the facility, the level, and the time."""
MOST_LINES = 200
"""How many lines of a kernel's log are kept, the last ones."""
LONGEST = 1000
"""How many characters of a line are read."""


def _kernel_log(capture: Capture) -> tuple[KernelLine, ...]:
    uptime = re.search(r"^uptime (\d{1,12}(?:\.\d+)?)", capture.stdout, re.MULTILINE)
    now = float(uptime[1]) if uptime else None
    lines = []
    for line in whole_lines(line[:LONGEST] for line in capture.stdout.splitlines()):
        if not re.search(WORTH_READING, line, re.IGNORECASE):
            continue
        stamp = re.match(r"(?:<\d+>)?\[\s*(\d{1,12}\.\d+)\]\s*(.*)", line)
        if stamp:
            age = max(now - float(stamp[1]), 0.0) if now is not None else None
            lines.append(KernelLine(age, own_words(stamp[2])))
        else:
            begin = _DECODED.match(line.strip())
            head = begin.group() if begin else ""
            lines.append(KernelLine(None, head + own_words(line.strip()[len(head) :])))
    return tuple(lines)


KERNEL_LOG = Fact(
    "kernel-log",
    Run(host_program(__file__, "kernel_log.sh", worth=WORTH_READING.lower(), most=MOST_LINES)),
    _kernel_log,
    needs_root=True,
)

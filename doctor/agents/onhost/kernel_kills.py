"""Whom the kernel killed for lack of memory, by its messages without quotes. Python 3.6 and later."""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

LACK = "out of memory|oom-kill"
"""What it writes about a lack of memory, in small letters, for grep and awk."""
BEGINS = r"(?:Memory cgroup out|Out) of memory(?: \([^)]{1,40}\))?: Kill|oom-kill:"
WORDS = ("Out of memory", "out of memory", "oom-kill", "oom_kill", "OOM Killed", "OUT_OF_MEMORY")
"""What the kernel and Slurm write of a process that was killed."""
SAID = "was killed by the kernel for lack of memory (oom-kill)"
"""How that is told."""
HOST, GROUP = "NONE", "MEMCG"
"""What had no memory left, as the kernel calls it: the host, or a control group that reached its limit."""
TOGETHER = 5.0
"""A kill that nothing announces belongs to the one this many seconds before: the kernel announces 10 in 5 s,
and of a group that is killed as a whole only the first."""

_CHOSEN = re.compile(
    r"oom-kill:constraint=CONSTRAINT_(?P<why>\w+)(?:.*?,oom_memcg=(?P<limit>[^,]+))?"
    r"(?:.*?,task_memcg=(?P<group>[^,]*))?(?:.*,pid=(?P<pid>\d{1,9}))?"
)
_OLD_GROUP = re.compile(r"\bTask in (?P<group>\S+) killed as a result of limit(?: of (?P<limit>\S+))?")
"""Kernels before 5.0 name the control group in a line of its own, before the process."""
_REPORT = re.compile(
    r"(?P<own>memory cgroup )?out of memory(?: \([^)]{1,40}\))?: kill(?:ed)? process (?P<pid>\d{1,9})"
    r"(?:,? \((?P<name>[^)]{1,64})\))?",
    re.IGNORECASE,
)
_ANNOUNCED = re.compile(r"invoked oom-killer|oom_reaper: reaped process")
_PID = re.compile(r"(?:Killed process |\bpid=)(\d{1,9})\b")
_NAMED = re.compile(
    r"(?i)(?:pids?|process|job(?:_?id)?|step_?id)[\s:=#_]{0,4}(\d{2,12})\b"
    r"|\b[A-Z_]{2,20}\((\d{2,9})[,:]|\b(\d{2,9})\)? (?:Killed|已杀死)"
)
"""A PID or a job of Slurm, as launchers, MindSpore and shells write it."""


class Kill:
    """`group` is its control group, `limit` the one whose limit it was, `messages` places in the log."""

    def __init__(self, why: str, group: str, limit: str, pid: int = 0) -> None:
        self.why, self.group, self.limit, self.pid = why, group, limit, pid
        self.name = ""
        self.at = None  # type: float | None
        self.messages = []  # type: list[int]
        self.reported = False


class JobMarks(NamedTuple):
    """By what a kill is known to be of a process of the job."""

    pids: "Collection[int]" = ()
    """Those that it printed."""
    ids: "Sequence[str]" = ()
    """Under which a scheduler runs it: control groups have them in their names."""

    def have(self, kill: Kill) -> bool:
        """Whether the kernel says that the process was the job's. The name of a program says nothing."""
        jobs = "|".join(map(re.escape, self.ids)) or "(?!)"
        named = re.search(rf"(?:^|/|(?<!uid)(?<!step)[_.])(?:{jobs})(?:[/_.-]|$)", kill.group)
        return kill.pid in self.pids or named is not None


def kills(messages: "Iterable[tuple[float | None, str]]") -> "list[Kill]":
    """The kills, each from the message that announces it, if there is one, and the one that reports it."""
    found = []  # type: list[Kill]
    for place, (at, message) in enumerate(messages):
        kill = _next(found, at, message)
        if kill is not None:
            kill.at = at
            kill.messages.append(place)
    return found


def _next(found: "list[Kill]", at: "float | None", message: str) -> "Kill | None":
    """The kill that a message is about, which may be a new one; None if it is about none."""
    chosen = _CHOSEN.search(message) or _OLD_GROUP.search(message)
    report = None if chosen else _REPORT.search(message)
    if chosen:
        said = {name: value or "" for name, value in chosen.groupdict().items()}
        found.append(Kill(said.get("why", GROUP), said["group"], said["limit"], int(said.get("pid") or 0)))
    elif report:
        pid, last = int(report["pid"]), found[-1] if found else None
        if last is None or last.reported:
            found.append(_unannounced(GROUP if report["own"] else HOST, last, at))
        found[-1].pid, found[-1].name, found[-1].reported = pid, report["name"] or "", True
    return found[-1] if chosen or report else None


def _unannounced(why: str, last: "Kill | None", at: "float | None") -> Kill:
    near = last is not None and last.at is not None and at is not None and abs(at - last.at) < TOGETHER
    if last is None or not near or last.why != why:
        return Kill(why, "", "")
    return Kill(why, last.group, last.limit)


def announces(message: str) -> bool:
    """Whether a message only says that there is a kill: another one names the process."""
    return _ANNOUNCED.search(message) is not None


def own_limit(message: str) -> bool:
    """Whether only a control group had no memory left."""
    return "Memory cgroup out of memory" in message or "CONSTRAINT_MEMCG" in message


def killed_pid(message: str) -> "int | None":
    """The process that a message about a kill names."""
    found = _PID.search(message)
    return int(found.group(1)) if found else None


def named_numbers(text: str) -> "set[str]":
    """The PIDs and the jobs of Slurm that the words of a job name."""
    return {number for found in _NAMED.findall(text) for number in found if number}

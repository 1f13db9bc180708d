"""The host itself: faults in its kernel log, and processes that an earlier job left behind."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

from doctor.api import (
    EXPECT,
    PLAN,
    VENDORS,
    Damage,
    Evidence,
    Expect,
    JobPlan,
    Problem,
    Severity,
    Sphere,
    check,
)
from doctor.facts.processes import KERNEL_LOG, PROCESSES, DeviceProcess, KernelLine, Processes
from doctor.rules.kernel_log import GROUP, HOST, LACK, KernelLog, Kill, kills_of, read_log, when

SHOWN = 3

APPLICATION_XIDS = {13, 31, 43, 45}
"""Xids that a faulty program causes: they do not count against the host."""

_CRASH = r"segfault at .* in lib(?:nccl|hccl|torch|ascend)"


@dataclass(frozen=True, slots=True)
class Kind:
    """Lines about the same thing within `apart` seconds are one event; `about` finds the thing in a line."""

    summary: str
    pattern: str
    apart: float = 0.0
    about: str = ""

    def thing(self, line: KernelLine) -> str:
        found = re.search(self.about, line.text, re.IGNORECASE) if self.about else None
        return found[1] if found else ""


_KINDS = (
    Kind("an NPU's heartbeat was lost", r"heart.?beat lost", 60, r"device=(\d+)"),
    Kind("the hardware reported errors", r"machine check|hardware error|edac [^:]*: \d+ ce ", 1),
    Kind("a network link went down", r"(?<!sata )link (?:is )?down", 0, "(.*)link"),
    Kind(
        "a disk or file system reported errors",
        r"(?:i/o|medium|target) error(?!.* dev (?:fd|sr)\d)|(?:ext4-fs|disk) (?:error|failure)"
        r"|xfs .*(?:corrupt|shutting)|nvme.* (?:timeout, (?:abort|reset|disabl)|will reset)"
        r"|nvme.* (?:reset|probe) failure",
        1,
        r"\b(?:dev(?:ice)?|failure on|nvme|xfs) \(?(sd[a-z]+|nvme\d+|\w+)",
    ),
    Kind("the connection tracking table was full", r"nf_conntrack: table full", 60),
    Kind("a GPU reported a fault", r"nvrm: xid|fallen off the bus", 1, r"((?:[0-9a-f]{2,8}:){2}[0-9a-f]{2})"),
    Kind("a CPU or task was stuck", r"soft lockup|blocked for more", 150, r"(cpu#\d+|task .* blocked)"),
    Kind("a communication library crashed", _CRASH, inf, r"\[(\d+)\]"),
)
_NODES = "their memory nodes were full"
_REASONS = {
    HOST: "the host had no memory left",
    GROUP: "a cgroup was at its memory limit",
}


@check("kernel-log", KERNEL_LOG, EXPECT, PLAN, damage=Damage.LOAD, severity=Severity.WARN, sphere=Sphere.HOST)
def kernel_log(lines: tuple[KernelLine, ...], expect: Expect, plan: JobPlan) -> Iterator[Problem]:
    """The kernel log of the last 24 hours holds signs of trouble.

    Why it matters: memory that ran out, a device that reset or a link that flapped explains a job that died
    without a message.

    How it is known: events are counted, and not their lines: a process that the kernel ended, a link that
    went down, reports of the hardware within a second. Processes that exceeded the limit of their control
    group do not accuse the host; the finding names the group.

    What to do: read the lines in context with `dmesg -T`; after the repair, `--expect kernel_log_since=TIME`
    counts only what is newer, as the line of *verify* does. Xids that a faulty program causes (13, 31, 43,
    45) are not counted against the host.
    """
    log = read_log(lines, expect)
    log = replace(log, lines=tuple(line for line in log.lines if not _has_own_check(line, plan)))
    yield from _kills(log)
    for kind in _KINDS:
        found = [
            line
            for line in log.lines
            if re.search(kind.pattern, line.text, re.IGNORECASE)
            and (kind.pattern == _CRASH or not line.is_crash)
            and not _harmless(line, lines)
        ]
        if found:
            actual = log.times([(kind.thing(line), line) for line in found], kind.apart)
            yield _problem(log, kind.summary, actual, found, kind.pattern)


def _kills(log: KernelLog) -> Iterator[Problem]:
    """The processes that the kernel ended, by what had no memory left."""
    found: dict[str, list[Kill]] = defaultdict(list)
    logged = [line for line in log.lines if not line.is_crash]
    for kill in kills_of(logged):
        found[_REASONS.get(kill.why, _NODES)].append(kill)
    for reason, several in found.items():
        groups = Counter(kill.limit for kill in several if kill.limit)
        named = ", ".join(f"'{group}' ({number})" for group, number in groups.most_common(SHOWN))
        actual = log.number(len(several), "kill") + (f": {named}" if named else "")
        lines = [logged[place] for kill in several[-SHOWN:] for place in kill.messages[-2:]]
        yield _problem(log, f"the kernel ended processes: {reason}", actual, lines, LACK)


def _problem(log: KernelLog, summary: str, actual: str, lines: Sequence[KernelLine], pattern: str) -> Problem:
    return Problem(
        f"kernel log: {summary}",
        expected=f"nothing of the kind {log.span}",
        actual=actual,
        subject="kernel log",
        evidence=tuple(Evidence("dmesg", when(line) + line.text[:300]) for line in lines[-2 * SHOWN :]),
        commands=(f"dmesg -T | grep -iE {_shell(pattern)}",),
    )


def _has_own_check(line: KernelLine, plan: JobPlan) -> bool:
    """Whether another check judges the line."""
    own = (v.kernel_log for v in VENDORS if v.log_check and v.backend is plan.backend.value)
    return any(re.search(pattern, line.text, re.IGNORECASE) for pattern in own)


def _harmless(line: KernelLine, log: Sequence[KernelLine]) -> bool:
    """Whether the line is an Xid of a program, or a link that was not up before (a port without a cable)."""
    xid = re.search(r"NVRM: Xid \([^)]*\): (\d+)", line.text)
    if xid:
        return int(xid[1]) in APPLICATION_XIDS
    down = _LINK.search(line.text)
    earlier = (_LINK.search(other.text) for other in log[: log.index(line)])
    return down is not None and not any(up and up[1] == down[1] and up[2].lower() == "up" for up in earlier)


_LINK = re.compile(r"(\S+?):? (?:NIC |HINIC_)?link (?:is )?(up|down)", re.IGNORECASE)


def _shell(pattern: str) -> str:
    return (
        "'"
        + pattern.replace("(?<!sata )", "").replace(r"(?!.* dev (?:fd|sr)\d)", "").replace("(?:", "(")
        + "'"
    )


_WORKER = re.compile(r"multiprocessing\.(?:spawn|forkserver|resource_tracker)")
"""Only what a launcher starts: the launcher itself may be a service, or have been started with nohup."""
_INIT = re.compile(r"(?:^|/)(?:systemd|init|tini|dumb-init|docker-init|s6-svscan|runit)\b")


@check("stuck-process", PROCESSES, EXPECT, damage=Damage.LOAD, severity=Severity.WARN)
def stuck_process(processes: Processes, expect: Expect) -> Iterator[Problem]:
    """Processes hang in the kernel, are zombies, or were left behind by an earlier training.

    Why it matters: a process in state D waits for a device or file system that does not answer, and so will
    the next one; ranks whose launcher has ended still hold devices, ports and shared memory.

    What to do: end leftovers; a process in state D ends only when the device or file system answers again, or
    with a restart of the host. Only processes older than some minutes count.
    """
    old = [process for process in processes.shown if process.seconds >= 60 * expect.leftover_minutes]
    stuck = [
        process for process in old if process.state.startswith("D") and not process.command.startswith("[")
    ]
    zombies = [process for process in old if process.state.startswith("Z")]
    left = [
        process
        for process in old
        if process.parent == 1
        and process not in zombies
        and _WORKER.search(process.command)
        and _INIT.search(processes.init.split(" ", 1)[0])
    ]
    yield from _group("processes hang in the kernel (state D)", stuck, "none", ("cat /proc/{pid}/stack",))
    yield from _group(
        "processes of a training were left behind by their launcher", left, "none", ("kill {pid}",)
    )
    if len(zombies) > 20:
        yield from _group("many zombie processes", zombies, "at most 20", ("ps -o ppid= -p {pid}",))


def _group(
    summary: str, found: list[DeviceProcess], expected: str, commands: tuple[str, ...]
) -> Iterator[Problem]:
    if found:
        first = found[0]
        yield Problem(
            summary,
            expected=expected,
            actual=f"{len(found)}: " + ", ".join(f"pid {p.pid} ({p.user})" for p in found[:5]),
            subject=f"pid {first.pid}",
            evidence=tuple(
                Evidence("ps -eo pid,stat,etimes,args", f"{p.pid} {p.state} {p.seconds} s {p.command[:160]}")
                for p in found[:5]
            ),
            commands=tuple(command.format(pid=first.pid) for command in commands),
        )

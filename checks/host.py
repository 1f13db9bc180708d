"""The host itself: faults in its kernel log, and processes that an earlier job left behind."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

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

APPLICATION_XIDS = {13, 31, 43, 45}
"""Xids that a faulty program causes: they do not count against the host."""

_CRASH = r"segfault at .* in lib(?:nccl|hccl|torch|ascend)"
_KINDS = (
    ("the kernel ended processes for lack of memory", r"out of memory|oom-kill"),
    ("an NPU's heartbeat was lost", r"heart.?beat lost"),
    ("the hardware reported errors", r"machine check|hardware error|edac [^:]*: \d+ [cu]e "),
    ("a network link went down", r"(?<!sata )link (?:is )?down"),
    ("a disk or file system reported errors", r"i/o error(?!.* dev (?:fd|sr)\d)|ext4-fs error"),
    ("the connection tracking table was full", r"nf_conntrack: table full"),
    ("a GPU reported a fault", r"nvrm: xid|fallen off the bus"),
    ("a CPU or task was stuck", r"soft lockup|blocked for more"),
    ("a communication library crashed", _CRASH),
)


@check("kernel-log", KERNEL_LOG, EXPECT, PLAN, damage=Damage.LOAD, severity=Severity.WARN, sphere=Sphere.HOST)
def kernel_log(lines: tuple[KernelLine, ...], expect: Expect, plan: JobPlan) -> Iterator[Problem]:
    """The kernel log of the last 24 hours holds signs of trouble.

    Why it matters: memory that ran out, a device that reset or a link that flapped explains a job that died
    without a message.

    What to do: read the lines in context with `dmesg -T`. Xids that a faulty program causes (13, 31, 43,
    45) are not counted against the host.
    """
    recent = [
        line
        for line in lines
        if (line.age is None or line.age <= expect.kernel_log_hours * 3600) and not _has_own_check(line, plan)
    ]
    for summary, pattern in _KINDS:
        found = [
            line
            for line in recent
            if re.search(pattern, line.text, re.IGNORECASE)
            and (pattern == _CRASH or not line.is_crash)
            and not _harmless(line, lines)
        ]
        if found:
            yield Problem(
                f"kernel log: {summary}",
                expected=f"nothing of the kind in {expect.kernel_log_hours} hours",
                actual=f"{len(found)} times" if len(found) > 1 else "once",
                subject="kernel log",
                evidence=tuple(Evidence("dmesg", _when(line) + line.text[:300]) for line in found[-3:]),
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


def _when(line: KernelLine) -> str:
    return "" if line.age is None else f"{line.age / 3600:.1f} h ago: "


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

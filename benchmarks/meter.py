"""Measures one command on the controller: its time, its own work, and the work that it made for the hosts."""

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tests.lab import Host, Lab

TICKS = os.sysconf("SC_CLK_TCK")
LOOK = """
read -r p </run/sshd.pid; read -r a </proc/1/stat; read -r b <"/proc/$p/stat"; read -r c </proc/loadavg
printf '%s\\n' "$a" "$b" "$c"
"""
"""PID 1 and sshd with all their dead children (a session ends as a child of one of them), and the number of
the newest process, since numbers are given in order. The kernel counts the times exactly but shows them in
hundredths of a second, so only a sum over many hosts is useful. The command itself is one process.
"""


@dataclass(frozen=True, slots=True)
class Sample:
    """One run. Times are in seconds; `peak` is in bytes, for the largest process; the hosts' work is the sum
    over all hosts. A program that is left running (a ControlPersist master) is in no sample, because nothing
    waits for it.
    """

    wall: float
    cpu: float
    peak: int
    hosts_cpu: float
    hosts_processes: int
    rc: int
    output: str


@dataclass(frozen=True, slots=True)
class Timed:
    """One run of a program, with all the children that it has waited for."""

    began: float
    """By the clock of the machine."""
    wall: float
    cpu: float
    peak: int
    rc: int
    output: str


def timed(argv: Sequence[str], env: Mapping[str, str] | None = None) -> Timed:
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        at, began = time.time(), time.monotonic()
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=None if env is None else {**env}
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(status)  # reaped here, not by Popen
        output.seek(0)
        cpu, peak = usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024
        return Timed(at, wall, cpu, peak, process.returncode, output.read())


@dataclass(frozen=True, slots=True)
class Work:
    """CPU seconds and processes that hosts have used since they were booted."""

    cpu: float
    processes: int


def work(hosts: Sequence[Host]) -> Work:
    """The sum over the hosts. Reading it costs each host one process, see `LOOK`."""
    ticks = processes = 0
    for host in hosts:
        init, sshd, load = host.ask(LOOK).stdout.splitlines()
        ticks += sum(sum(map(int, stat.rpartition(")")[2].split()[11:15])) for stat in (init, sshd))
        processes += int(load.split()[4])
    return Work(ticks / TICKS, processes)


def measure(
    lab: Lab,
    argv: Sequence[str],
    hosts: Sequence[Host],
    *,
    env: Mapping[str, str] | None = None,
    timeout: float = 120,
    tidy: Callable[[], None] | None = None,
) -> Sample:
    """Run `argv` on the controller and wait for it and its children. `tidy` ends the sessions that it left
    open, untimed: the hosts' work is known only after they end.
    """
    before = work(hosts)
    ran = timed(["timeout", "-k", "1", str(timeout), *lab.enter(argv)], lab.environment(env))
    if tidy is not None:
        tidy()
    _settle()
    after = work(hosts)
    return Sample(
        wall=ran.wall,
        cpu=ran.cpu,
        peak=ran.peak,
        hosts_cpu=after.cpu - before.cpu,
        hosts_processes=after.processes - before.processes - len(hosts),
        rc=ran.rc,
        output=ran.output,
    )


def _settle() -> None:
    """Sessions end a moment after their client, and their work counts only after that."""
    time.sleep(0.3)

"""A process that gets too little of a processor: by a real CPU quota, or by others beside it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

CPU = Path("/sys/fs/cgroup/cpu")
PERIOD = 100_000
"""Microseconds."""
HOG = "import os, sys\nwhile os.getppid() == int(sys.argv[1]): pass"


def can_limit() -> bool:
    """Whether groups of version 1 with a quota can be made here."""
    return (CPU / "cpu.cfs_quota_us").exists() and os.access(CPU, os.W_OK)


@contextmanager
def quota(pid: int, share: float) -> Iterator[None]:
    """The process gets no more than this share of a processor."""
    group = CPU / f"cluster-doctor-slow-{pid}"
    group.mkdir()
    try:
        (group / "cpu.cfs_period_us").write_text(str(PERIOD))
        (group / "cpu.cfs_quota_us").write_text(str(round(share * PERIOD)))
        (group / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        with suppress(OSError):  # it may have ended
            (CPU / "cgroup.procs").write_text(str(pid))
        group.rmdir()


@contextmanager
def hogs(pid: int, number: int = 2) -> Iterator[None]:
    """The process shares a group of little weight with others, which compute all the time."""
    group = CPU / f"cluster-doctor-hogs-{pid}"
    group.mkdir()
    started: list[subprocess.Popen[bytes]] = []
    try:
        (group / "cpu.shares").write_text("128")
        argv = [sys.executable, "-c", HOG, str(os.getpid())]
        started += [subprocess.Popen(argv, stdin=subprocess.DEVNULL) for _ in range(number)]
        for each in (pid, *(hog.pid for hog in started)):
            (group / "cgroup.procs").write_text(str(each))
        yield
    finally:
        for hog in started:
            hog.kill()
            hog.wait(10)
        with suppress(OSError):
            (CPU / "cgroup.procs").write_text(str(pid))
        group.rmdir()

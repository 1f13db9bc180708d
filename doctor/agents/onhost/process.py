"""Processes on a host: how ours end together, and what /proc shows about any. Python 3.6 and later."""

import contextlib
import ctypes
import glob
import os
import re
import signal
import time
from collections.abc import Iterator

_SET_PDEATHSIG = 1
_SET_CHILD_SUBREAPER = 36
BUSY = 4.0
"""How many times as long a process may take to end that only waits for a processor."""
_TICKS = os.sysconf("SC_CLK_TCK")
_PEAK = re.compile(rb"^VmHWM:\s+(\d{1,12}) kB", re.MULTILINE)
_libc = ctypes.CDLL(None)


def link(path: str) -> str:
    """Where a link leads; empty if it may not be read."""
    with contextlib.suppress(OSError):
        return os.readlink(path)
    return ""


def links(folder: str) -> "Iterator[str]":
    with contextlib.suppress(OSError):  # it is another user's
        for name in os.listdir(folder):
            yield link(folder + "/" + name)


def die_with_parent(parent: "int | None" = None, number: int = signal.SIGKILL) -> None:
    """Get a signal when the parent dies; exit at once if the parent is no longer `parent`."""
    _libc.prctl(_SET_PDEATHSIG, int(number), 0, 0, 0)
    if parent is not None and os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent dies, so that they are ended and reaped here."""
    _libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def default_signals() -> None:
    """Reset the handlers and the mask that were inherited from a parent in Python or from its starter."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, set())


def end_children(seconds: float) -> "list[tuple[int, str]]":
    """Kill and reap all children and the processes they leave behind. Returns survivors with their states.

    A survivor has slept in the kernel for so many seconds without a break. Others only need a processor to
    end, which takes a while on a busy host.
    """
    began = time.monotonic()
    asleep = {}  # type: dict[int, float]
    while True:
        left = children()
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if not _reap():
            return []
        now = time.monotonic()
        asleep = {pid: asleep.get(pid, now) for pid in left if _sleeps_in_kernel(pid)}
        if now - began >= BUSY * seconds or any(now - since >= seconds for since in asleep.values()):
            return [(pid, "D" if pid in asleep else state_of(pid)) for pid in children()]
        time.sleep(0.005 if now - began < 0.1 else 0.02)


def _sleeps_in_kernel(pid: int) -> bool:
    """Whether one of its threads does: a process whose first thread has ended is a zombie until all have."""
    with contextlib.suppress(OSError):
        return any(stat_fields(f"{pid}/task/{name}")[:1] == ["D"] for name in os.listdir(f"/proc/{pid}/task"))
    return False


def _reap() -> bool:
    """Reap the dead children; True if any child is left."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        return True
    return False


def children() -> "list[int]":
    """Pids of this process's children; the dead count until they are reaped."""
    me = os.getpid()
    with contextlib.suppress(OSError), open(f"/proc/{me}/task/{me}/children") as names:
        return [int(name) for name in names.read().split()]
    return [
        int(name)
        for name in os.listdir("/proc")
        if name.isdigit() and stat_fields(int(name))[1:2] == [str(me)]
    ]


def state_of(pid: int) -> str:
    """The state letter in /proc; empty if the process is gone."""
    return (stat_fields(pid) or [""])[0]


def _turns(text: bytes) -> "tuple[float, float]":
    ran, waited = text.split()[:2]
    return int(ran) / 1e9, int(waited) / 1e9


def stat_fields(pid: "int | str") -> "list[str]":
    """The fields of /proc/PID/stat from the state on; for a thread, `pid` is "PID/task/TID"."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", "rb") as stat:
        return stat.read().decode("latin-1").rpartition(")")[2].split()
    return []


class HeldProcess:
    """One process, held by an open file: never a later process with the same pid."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._stat = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        self._turns = -1
        with contextlib.suppress(OSError):  # a kernel without CONFIG_SCHED_INFO
            self._turns = os.open(f"/proc/{pid}/schedstat", os.O_RDONLY | os.O_CLOEXEC)

    def look(self) -> "tuple[str, float]":
        """Its state letter and the CPU seconds it has used; the state is empty once it is gone."""
        try:
            # The name of the process, in parentheses, may contain anything.
            fields = os.pread(self._stat, 4096, 0).rpartition(b")")[2].split()
            return fields[0].decode("ascii"), (int(fields[11]) + int(fields[12])) / _TICKS
        except (OSError, IndexError, ValueError):
            return "", 0.0

    def turns(self) -> "tuple[float, float] | None":
        """For how many seconds its main thread ran and waited for a processor; None if unknown."""
        try:
            return _turns(os.pread(self._turns, 256, 0))
        except (OSError, ValueError):
            return None

    def threads(self) -> "dict[int, tuple[tuple[float, float], bool]]":
        """For each other thread, the same, and whether it is runnable: autograd may compute in one."""
        found = {}
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{self.pid}/task"):
                with contextlib.suppress(OSError, ValueError, IndexError):
                    with open(f"/proc/{self.pid}/task/{name}/schedstat", "rb") as turns:
                        taken = _turns(turns.read(256))
                    state = stat_fields(f"{self.pid}/task/{name}")[0]
                    if int(name) != self.pid:
                        found[int(name)] = taken, state == "R"
        return found

    def close(self) -> None:
        for descriptor in (self._stat, self._turns):
            if descriptor >= 0:
                os.close(descriptor)
        self._stat = self._turns = -1


class Idleness:
    """The time in which a process could have run: all time except its waits for a processor.

    The kernel counts a wait only when it is over. Until then, nothing shows how a runnable process that does
    not run spends its time, so this time is counted later.
    """

    def __init__(self) -> None:
        self._turns = None  # type: tuple[float, float] | None
        self._open = 0.0

    def counted(self, seconds: float, turns: "tuple[float, float] | None", runnable: bool) -> float:
        """How many seconds count now, if the last look was `seconds` ago."""
        before = self._turns
        if before is not None and turns is not None and runnable and turns[0] == before[0]:
            self._open += seconds
            return 0.0
        self._turns = turns
        if before is None or turns is None:
            self._open = 0.0
            return seconds
        whole, self._open = self._open + seconds, 0.0
        return max(0.0, whole - max(0.0, turns[1] - before[1]))


def queued_so_far() -> float:
    """For how many seconds threads of this process could have run so far, while others had the processor."""
    whole = 0.0
    for name in glob.glob("/proc/self/task/*/schedstat"):
        with contextlib.suppress(OSError, ValueError, IndexError), open(name, "rb") as turns:
            whole += _turns(turns.read(256))[1]
    return whole


def peak_memory(pid: int) -> int:
    """Its peak memory in bytes; 0 if unknown."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status", "rb") as status:
        found = _PEAK.search(status.read())
        return int(found.group(1)) * 1024 if found else 0
    return 0


def kernel_place(pid: int) -> str:
    """Where in the kernel it waits; empty if this user may not read that."""
    for name in ("stack", "wchan"):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/{name}", "rb") as file:
            text = file.read(2048).decode("ascii", "replace").strip()
            if text not in ("", "0"):
                return text
    return ""


def tracer(pid: int) -> str:
    """Who traces it, as a debugger does: "process 812 (gdb)"; empty if nobody does."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status", "rb") as status:
        found = re.search(rb"TracerPid:\s*([1-9]\d*)", status.read(4096))
        by = found.group(1).decode() if found else ""
        with open(f"/proc/{by}/comm", "rb") as name:
            return f"process {by} ({name.read(64).decode('utf-8', 'replace').strip()})"
    return ""

"""How processes end together: none of ours outlives the one that supervises it. Python 3.6 and later."""

import contextlib
import ctypes
import os
import signal
import time

_SET_PDEATHSIG = 1
_SET_CHILD_SUBREAPER = 36

_libc = ctypes.CDLL(None)


def die_with_parent(parent: "int | None" = None, number: int = signal.SIGKILL) -> None:
    """Get a signal as soon as the parent is dead; at once if it is no longer `parent`."""
    _libc.prctl(_SET_PDEATHSIG, int(number), 0, 0, 0)
    if parent is not None and os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent dies: here they are ended and reaped."""
    _libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def default_signals() -> None:
    """Undo what a parent in Python arranged, and what it was started with."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, set())


def end_children(seconds: float) -> "list[tuple[int, str]]":
    """Kill and reap every child, and those whom they leave behind. Who is still there, with its state."""
    until = time.monotonic() + seconds
    while True:
        for pid in children():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if not _reap():
            return []
        if time.monotonic() >= until:
            return [(pid, state_of(pid)) for pid in children()]
        time.sleep(0.005)


def _reap() -> bool:
    """Whether there are children left."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        return True
    return False


def children() -> "list[int]":
    """Pids of this process's children, the dead among them until they are reaped."""
    me = os.getpid()
    with contextlib.suppress(OSError), open(f"/proc/{me}/task/{me}/children") as names:
        return [int(name) for name in names.read().split()]
    return [
        int(name) for name in os.listdir("/proc") if name.isdigit() and _stat(int(name))[1:2] == [str(me)]
    ]


def state_of(pid: int) -> str:
    """The letter of /proc; empty for a process that is gone."""
    return (_stat(pid) or [""])[0]


def _stat(pid: int) -> "list[str]":
    """The fields of /proc/PID/stat from the state on."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", "rb") as stat:
        return stat.read().decode("latin-1").rpartition(")")[2].split()
    return []

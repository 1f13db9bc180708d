"""Processes of hosts and containers, as the machine sees them; psutil does not know their namespaces."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import psutil


def processes(init: int) -> Iterator[psutil.Process]:
    """All processes in the pid namespace of `init`, including itself; each may end while it is read."""
    own = namespace(init)
    for pid in psutil.pids():
        with contextlib.suppress(OSError, psutil.NoSuchProcess):
            if namespace(pid) == own:
                yield psutil.Process(pid)


def command(process: psutil.Process) -> str:
    """Its command line as text; empty for a zombie."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return " ".join(process.cmdline()).strip()
    return ""


def namespace(pid: int) -> str:
    return os.readlink(f"/proc/{pid}/ns/pid")


def numbers(pid: int) -> list[int]:
    """The ids of a process, from the machine's to the one in its own namespace."""
    status = Path(f"/proc/{pid}/status").read_text()
    return [int(number) for number in status.partition("NSpid:")[2].partition("\n")[0].split()]

"""Which processes a command has had, and when: a kernel names what it kills by PID, and PIDs come again."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from math import inf

from doctor.agents.onhost.process import stat_fields

EVERY = 5.0
"""Seconds between two looks."""
SHARE = 200
"""On a machine with many processes, the time between two looks is so many times that of a look."""
MOST = 10_000
"""The processes that are remembered after their end."""
_OUTSIDE = "pid:[4026531836]"
"""The PIDs of the kernel's log; in a container processes have others."""
START = 19
"""The place of the start in `stat`, after the name; that of the parent is 1."""

Process = tuple[int, str]
"""A PID and the start."""


class CommandLives:
    """The processes of a command on this machine: itself and all below it, whoever is their parent later."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._runs: dict[Process, float] = {}
        """When each was first seen, in seconds since 1970."""
        self._gone: dict[Process, tuple[float, float]] = {}
        """When each was first seen, and when no more."""
        self._next = 0.0 if _is_outside() else inf

    def look(self, now: float) -> None:
        """Remember who runs, if it is time to. `now` is of time.monotonic()."""
        if now >= self._next:
            began = time.monotonic()
            self.see(dict(_running()), time.time())
            self._next = now + max(EVERY, SHARE * (time.monotonic() - began))

    def see(self, running: Mapping[int, tuple[int, str]], at: float) -> None:
        """`running` has the parent and the start of each process."""
        below = [pid for pid, _ in self._runs]
        if not self._runs and not self._gone and self._pid in running:
            below = [self._pid]
        for process in list(self._runs):
            pid, start = process
            if running.get(pid, (0, ""))[1] != start:
                self._gone[process] = self._runs.pop(process), at
                below.remove(pid)
        children: dict[int, list[int]] = {}
        for pid, (parent, _) in running.items():
            children.setdefault(parent, []).append(pid)
        while below:
            pid = below.pop()
            self._runs.setdefault((pid, running[pid][1]), at)
            below += [each for each in children.get(pid, []) if (each, running[each][1]) not in self._runs]
        for process in list(self._gone)[:-MOST]:
            del self._gone[process]

    def spans(self) -> dict[int, list[tuple[float, float]]]:
        """When each PID was one of the command, in seconds since 1970."""
        found: dict[int, list[tuple[float, float]]] = {}
        for process, span in (
            *self._gone.items(),
            *((one, (first, inf)) for one, first in self._runs.items()),
        ):
            found.setdefault(process[0], []).append(span)
        return found


def _is_outside() -> bool:
    try:
        return os.readlink("/proc/self/ns/pid") == _OUTSIDE
    except OSError:
        return False


def _running() -> Iterator[tuple[int, tuple[int, str]]]:
    for name in os.listdir("/proc"):
        if name.isdecimal():
            fields = stat_fields(int(name))
            if len(fields) > START:  # it still runs
                yield int(name), (int(fields[1]), fields[START])

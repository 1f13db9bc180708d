"""Which processes a command has had, and when: a kernel names what it kills by PID, and PIDs come again."""

import os
import time
from collections.abc import Iterator, Mapping
from math import inf

from doctor.agents.onhost.process import stat_fields
from doctor.text.grouped import grouped

EVERY = 5.0
"""Seconds between two looks."""
SHARE = 200
"""On a machine with many processes, the time between two looks is so many times that of a look."""
_OUTSIDE = "pid:[4026531836]"
"""The PIDs of the kernel's log; in a container processes have others."""
MOST = 10_000
"""The processes that are remembered after their end."""
START = 19
"""The place of the start in `stat`, after the name; that of the parent is 1."""


class CommandLives:
    """The processes of a command on this machine: itself and all below it, whoever is their parent later."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._lives: dict[tuple[int, str], tuple[float, float]] = {}
        """When each was first seen, by PID and start, and when no more."""
        self._next = 0.0 if _is_outside() else inf

    def look(self, now: float) -> None:
        """Remember who runs, if it is time to. `now` is of time.monotonic()."""
        if now >= self._next:
            began = time.monotonic()
            self.see(dict(_running()), time.time())
            self._next = now + max(EVERY, SHARE * (time.monotonic() - began))

    def see(self, running: Mapping[int, tuple[int, str]], at: float) -> None:
        """`running` has the parent and the start of each process."""
        below = [] if self._lives else [self._pid]
        for (pid, start), (first, until) in self._lives.items():
            if until == inf and running.get(pid, (0, ""))[1] == start:
                below.append(pid)
            else:
                self._lives[pid, start] = first, min(until, at)
        children = grouped((parent, pid) for pid, (parent, _) in running.items())
        own: dict[int, None] = {}
        while below:
            own[below[-1]] = None
            below += [each for each in children.get(below.pop(), []) if each not in own]
        for pid in own.keys() & running.keys():
            self._lives.setdefault((pid, running[pid][1]), (at, inf))
        for process in [each for each, (_, until) in self._lives.items() if until < inf][:-MOST]:
            del self._lives[process]

    def spans(self) -> list[tuple[int, float, float]]:
        """Each PID, and from when until when it was one of the command, in seconds since 1970."""
        return [(pid, first, until) for (pid, _), (first, until) in self._lives.items()]


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

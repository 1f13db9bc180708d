"""How many hosts can be connected at once: as many as this process may open files for."""

import contextlib
import os
import resource
import threading
from collections.abc import Callable
from dataclasses import dataclass

from doctor.transport import errors

SPARE = 16
"""Files that are open besides connections, and for a moment."""
STARTS = 3
"""Files that a connection needs while it is made: the socket of an agent, a key, a question for a name."""


@dataclass(slots=True)
class _Held:
    count: int
    users: int = 1


class Descriptors:
    """A host keeps its own until another one waits for some; `drop` ends the connection of a host."""

    def __init__(self, hosts: int, each: int, fanout: int, drop: Callable[[str], object]) -> None:
        used = len(os.listdir("/proc/self/fd"))
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = used + SPARE + STARTS * fanout + hosts * each
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        if resource.RLIM_INFINITY != soft < most:
            with contextlib.suppress(OSError, ValueError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
                soft = most
        self.limit = wanted if soft == resource.RLIM_INFINITY else soft
        left = max(1, self.limit - used - SPARE)
        self.starts = max(1, min(fanout, left // (2 * STARTS)))
        """How many connections may be made at once."""
        self._free = left - STARTS * self.starts
        self._drop = drop
        self._held: dict[str, _Held] = {}
        self._news = threading.Condition()

    def take(self, host: str, count: int, *, waits: bool) -> None:
        """Those of a host. If it does not wait, this raises CannotReach if all others are in use."""
        with self._news:
            if host in self._held:
                self._held[host].users += 1
                return
            while self._free < count and self._held:
                idle = next((name for name, held in self._held.items() if not held.users), None)
                if idle is not None:
                    self._drop(idle)
                    self._free += self._held.pop(idle).count
                elif waits:
                    self._news.wait()
                else:
                    raise errors.cannot("few descriptors", limit=self.limit)
            self._held[host] = _Held(count)
            self._free -= count

    def leave(self, host: str) -> None:
        """The host needs them no longer; others may have them."""
        with self._news:
            if host in self._held:
                self._held[host].users -= 1
                self._news.notify_all()

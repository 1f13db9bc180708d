"""The TCP connections of ranks, to see which of them break during the run. Python 3.6 and later."""

import contextlib
from typing import Any

from doctor.agents.onhost.process import links

MOST = 1024
"""A host whose ranks have more is not examined."""
MOST_BYTES = 16 << 20
"""Of each table of the kernel: a busy host has a hundred thousand connections."""
_ESTABLISHED = "01"
_WITHIN_IPV6 = "0000000000000000FFFF0000"
"""How the tables begin an IPv4 address of an IPv6 socket."""


def connections(pids: "list[int]") -> "set[str]":
    """Both ends of each connection of these processes, its own first, as /proc/net/tcp shows them."""
    opened = (target for pid in pids for target in links(f"/proc/{pid}/fd"))
    inodes = {target[8:-1] for target in opened if target.startswith("socket:[")}
    found = set()
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError), open("/proc/net/" + table) as rows:
            for row in rows.readlines(MOST_BYTES)[1:]:
                words = row.split(None, 10)
                if len(words) > 9 and words[3] == _ESTABLISHED and words[9] in inodes:
                    found.add(" ".join(end.replace(_WITHIN_IPV6, "") for end in words[1:3]))
    return found


class Connections:
    """Those that the ranks of this host had when they entered a phase, and whether they still have them."""

    def __init__(self) -> None:
        self._before = set()  # type: set[str]
        self._noted = None  # type: Any

    def note(self, phase: Any, pids: "list[int]") -> None:
        """Remember those of now if this is a new phase: some are only made when they are needed."""
        if phase != self._noted:
            self._noted = phase
            self._before |= connections(pids)

    def compare(self, pids: "list[int]") -> "dict[str, list[str]]":
        """The remembered ones that are `kept`, and those that are `broken`."""
        if len(self._before) > MOST:
            return {}
        now = connections(pids)
        return {"kept": sorted(self._before & now), "broken": sorted(self._before - now)}

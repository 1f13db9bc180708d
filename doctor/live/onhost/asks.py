"""Whom threads wait for on their own host, where ss shows no end of TCP for it."""

import contextlib
import os
import stat
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from doctor.live.onhost import proc
from doctor.live.onhost.descriptors import TERMINALS

MOST = 4
LONGEST = 256
PIPE = "pipe:"
SCAN = 0.5
"""Seconds for the search for the reader of a pipe."""


def may_ask(looks: "Mapping[int, dict[str, Any]]", known: "Mapping[str, Any]") -> bool:
    """Whether a thread polls a socket that is none of these connections over TCP."""
    return any(
        not end.startswith((PIPE, *TERMINALS)) and inode_of(end) not in known
        for look in looks.values()
        for ends in look.get("polled", {}).values()
        for end in ends
    )


def add(
    looks: "Mapping[int, dict[str, Any]]",
    members: "Sequence[Mapping[str, Any]]",
    known: "Mapping[str, Any]",
    local: "Mapping[str, tuple[str, str]]",
) -> None:
    """Add to each thread the ends that it `asks`. `known`: connections over TCP, which are judged by
    themselves, and marked if a main thread waits for one; `local`: the sockets of Unix that are connected.
    """
    heads = {member["pid"]: member.get("helps") or member["pid"] for member in members}
    pipes = {}  # type: dict[int, Counter[str]]
    for pid, look in looks.items():
        pipes.setdefault(heads.get(pid, pid), Counter()).update(look.get("pipes", ()))
    for pid, look in looks.items():
        own = set(look["inodes"])
        for thread in look.get("threads", ()):
            ends = look.get("polled", {}).get(str(thread["tid"]), ())
            if thread["tid"] == pid and len(ends) == 1:
                known.get(inode_of(ends[0]), {})["awaited"] = True
            found = _others(ends, pipes[heads.get(pid, pid)], own, known, local)
            if "pipe_write" in thread.get("waits", ""):
                found = filter(None, map(_read_by, ends))
            named = [each[:LONGEST] for each in dict.fromkeys(found)][:MOST]
            if named:
                thread["asks"] = named


def _others(
    ends: "Sequence[str]",
    pipes: "Mapping[str, int]",
    own: "set[str]",
    known: "Mapping[str, Any]",
    local: "Mapping[str, tuple[str, str]]",
) -> "Iterator[str]":
    """Terminals, and those ends whose other end another process has. A pipe that leads only to a helper is
    none of them: what that helper does tells more.
    """
    for end in ends:
        inode = inode_of(end)
        if end.startswith(TERMINALS):
            yield end
        elif end.startswith(PIPE):
            if pipes[end] < 2:
                yield "a pipe"
        elif inode in local:
            if local[inode][0] not in own:
                yield local.get(local[inode][0], ("", ""))[1] or "a local socket"
        elif inode not in known:  # it listens, or is one of UDP
            yield "a socket"


def _read_by(end: str) -> str:
    """A pipe, with the process that has the end that is read; empty if that is unknown."""
    until = time.monotonic() + SCAN
    for home in (f"{proc.PROC}/{pid}" for pid in proc.pids()):
        with contextlib.suppress(OSError, ValueError):
            for each in os.listdir(home + "/fd") if time.monotonic() < until else ():
                place = f"{home}/fd/{each}"
                if os.readlink(place) == end and os.lstat(place).st_mode & stat.S_IRUSR:
                    name, fields = proc.stat_of(proc.read(home + "/stat"))
                    stopped = ", stopped" if fields[0] in "Tt" else ""
                    return f"a pipe to process {home.rpartition('/')[2]} ({name}{stopped})"
    return ""


def inode_of(end: str) -> str:
    return end.partition("[")[2].rstrip("]")

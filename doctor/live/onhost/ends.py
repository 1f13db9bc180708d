"""What a host knows of connections that ranks of other hosts have to it: which of them it has no socket for,
and what happened to it.
"""

import contextlib
import fcntl
import os
import re
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from doctor.agents.onhost.kernel_kills import BEGINS, kills
from doctor.agents.onhost.kernel_words import own_words, whole_lines
from doctor.live.onhost import proc, sockets
from doctor.live.onhost.careful import Tool, carefully, run_all

SECONDS = 5.0
MOST_OUTPUT = 16 << 20
MOST_SPACES = 128
"""The most other network namespaces, such as those of containers, that are looked into."""
MOST_TRIED = 3
"""The most processes of a namespace by which it is entered: one may end meanwhile."""
MOST_KILLED = 4
ALL = ("ss", "-tan")
_LINE = re.compile(r"(?:<\d{1,3}>)?\[\s*(\d{1,12}\.\d+)\] ((?:" + BEGINS + ").*)")

NETS = "/sys/class/net"
DOWN = ("down", "lowerlayerdown")
GET_ADDRESS = 0x8915
"""SIOCGIFADDR: the IPv4 address of an interface."""


def asked(ends: "Sequence[Sequence[str]]") -> "dict[str, Any]":
    """The answer about these connections: the address and port on this host, and those of the peer."""
    own = set(proc.addresses())
    here = {(str(at), str(peer)) for at, peer in ends if str(at).rpartition(":")[0].strip("[]") in own}
    answer = {"lacks": [], "unsure": ""}  # type: dict[str, Any]
    if not here:
        return answer
    known, why = _all_ends()
    if why:
        return dict(answer, unsure="its connections could not be listed: " + why)
    # Where addresses are translated for a container, only the peer is the same in there.
    inside, unsure = _peers_inside() if here - known else (set(), "")
    return {
        "lacks": [" ".join(end) for end in sorted(end for end in here - known if end[1] not in inside)],
        "unsure": unsure or _hidden(),
        "uptime": proc.uptime(),
        "killed": list(_killed()),
    }


def _all_ends(inside: "Sequence[str]" = ()) -> "tuple[set[tuple[str, str]], str]":
    """Both ends of all TCP connections, whoever has them, and why they are unknown."""
    try:
        ((_, tool, code),) = run_all([partial(Tool, [*inside, *ALL], SECONDS, MOST_OUTPUT)], 1)
        why = "" if code == 0 else "ss: " + (tool.why or f"exit status {code}")
    except OSError as error:
        why = f"ss: {error.strerror}"
    if why:
        with contextlib.suppress(OSError):
            known = sockets.by_kernel(lambda *_: True, sockets.ALL, inside)
            return {(one["local"], one["peer"]) for one in known}, ""
        return set(), why
    rows = (line.split() for line in bytes(tool.out).decode("utf-8", "replace").splitlines())
    return {(sockets.plain(row[3]), sockets.plain(row[4])) for row in rows if len(row) > 4}, ""


def _peers_inside() -> "tuple[set[str], str]":
    """The peers of connections in other network namespaces, and why some of these are unknown."""
    spaces = {}  # type: dict[str, list[int]]
    for pid in proc.pids():
        spaces.setdefault(proc.namespace(pid, "net"), []).append(pid)
    for known in ("", proc.namespace("self", "net")):
        spaces.pop(known, None)
    found = set()  # type: set[str]
    for space, pids in list(spaces.items())[:MOST_SPACES]:
        for pid in pids[:MOST_TRIED]:
            ends, why = _all_ends(["nsenter", "-t", str(pid), "-n", "--"])
            if not why:
                found |= {peer for _, peer in ends}
                break
        else:
            if any(proc.namespace(pid, "net") == space for pid in pids):  # else it ended meanwhile
                return found, "the connections of a container could not be listed"
    return found, "it has too many containers" if len(spaces) > MOST_SPACES else ""


def _hidden() -> str:
    """Why one of its processes may be a rank that was not recognised; empty if none may be."""
    pids = [(pid, True) for pid in proc.pids()]
    rows = [row for _, row in carefully(proc.row, pids, until=time.monotonic() + SECONDS)]
    named = [" ".join([row["name"], *row["command"][:1]]) for row in rows if row and row["hidden"]]
    number = sum("python" in name for name in named)
    return f"{number} Python processes there may not be looked into" if number else ""


def _killed() -> "Iterator[str]":
    """Processes that the kernel killed, the last ones: the seconds since then, PID and name."""
    with contextlib.suppress(OSError):
        ((_, tool, _),) = run_all([lambda: Tool(["dmesg"], SECONDS, MOST_OUTPUT)], 1)
        now = proc.uptime()
        lines = map(_LINE.match, whole_lines(bytes(tool.out).decode("utf-8", "replace").splitlines()))
        said = [(float(line[1]), own_words(line[2])) for line in lines if line]
        for kill in [each for each in kills(said) if each.name][-MOST_KILLED:]:
            yield f"{max(0.0, now - (kill.at or 0.0)):.0f} {kill.pid} {kill.name}"


def unplugged() -> "list[str]":
    """Interfaces without a link that have an address: "eth1 10.0.0.3"."""
    found = []
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asks:
        for name in sorted(os.listdir(NETS)):
            if proc.lenient(f"{NETS}/{name}/operstate", 32).strip() in DOWN:
                with contextlib.suppress(OSError):
                    request = struct.pack("256s", os.fsencode(name)[:15])
                    answer = fcntl.ioctl(asks.fileno(), GET_ADDRESS, request)
                    found.append(f"{name} {socket.inet_ntoa(answer[20:24])}")
    return found[:16]

"""Connections from ss, or without it from the kernel, and for how long each is silent. It needs no rights."""

import contextlib
import math
import re
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from doctor.live.onhost.careful import Tool, run_all
from doctor.live.onhost.netlink import TcpTable, Wanted

SECONDS = 5.0
MOST = 16 << 20
"""The most bytes of output that may wait to be parsed."""
MOST_OF_ONE = 1024
WAYS = (["ss", "-tnieHO"], ["ss", "-tnie"])
"""Older versions of ss know neither -H nor -O."""
_PAIRS = re.compile(r"(\w+):(\d+)")
_CGROUP = re.compile(r"^.*(?:<->|-->|<--|---)(?= |$)")
"""The name of a control group, which its user chooses, up to the arrow after it."""
LOCAL = ("ss", "-xn")
OPEN, ALL = 0xB36, 0xFFE
"""States of TCP, as bits: those that ss shows by itself, and all."""
_LOCAL = re.compile(r"^u_\w+\s+\S+\s+\d+\s+\d+\s+(\S.*?)\s+(\d+)\s+\S.*?\s+(\d+)\s*$", re.MULTILINE)
_TIMER = re.compile(r"timer:\((\w+),")


def connections(
    wanted: "Wanted", inside: "Sequence[str]" = (), until: float = math.inf
) -> "tuple[dict[str, dict[str, Any]], str]":
    """Connections by inode, and why they are missing or incomplete. `inside`: the command that enters another
    network namespace. Anybody can open very many connections, so only the `wanted` ones are kept. ss is ended
    at `until`.
    """
    why = ""
    for argv in ([*inside, *way] for way in WAYS):
        seconds = min(SECONDS, until - time.monotonic())
        if seconds <= 0:
            return {}, why or "ss: there was no time left for it"
        try:
            ((_, tool, code),) = run_all([partial(_Ss, argv, seconds, wanted)], 1)
        except OSError as error:
            why = f"{argv[0]}: {error.strerror}"
            break
        assert isinstance(tool, _Ss)
        tool.take(len(tool.out))
        if code == 0:
            return tool.found, ""
        last = tool.err.decode("utf-8", "replace").strip().splitlines()[-1:]
        why = "ss: " + (tool.why or " ".join(last) or f"exit status {code}")[:200]
        if tool.found:
            return tool.found, why
    with contextlib.suppress(OSError):
        known = by_kernel(lambda inode, uid: inode and wanted(str(inode), uid), OPEN, inside)
        return {str(one["inode"]): one for one in known}, ""
    return {}, why


def by_kernel(wanted: "Wanted", states: int, inside: "Sequence[str]" = ()) -> "list[dict[str, Any]]":
    """Connections without a tool, with further numbers. Raises OSError."""
    with contextlib.closing(TcpTable(f"/proc/{inside[2]}/ns/net" if inside else "")) as table:
        return table.read(wanted, states)


def local_ends(inside: "Sequence[str]" = (), until: float = math.inf) -> "dict[str, tuple[str, str]]":
    """For each socket of Unix that is connected, by its inode: that of its other end, and its own path."""
    seconds = min(SECONDS, until - time.monotonic())
    if seconds <= 0:
        return {}
    try:
        ((_, tool, _),) = run_all([partial(Tool, [*inside, *LOCAL], seconds, MOST)], 1)
    except OSError:
        return {}
    return parse_local(bytes(tool.out).decode("utf-8", "replace"))


def parse_local(text: str) -> "dict[str, tuple[str, str]]":
    return {own: (other, path.lstrip("*")) for path, own, other in _LOCAL.findall(text) if other != "0"}


class _Ss(Tool):
    """Parses the output of ss while ss runs."""

    def __init__(self, argv: "Sequence[str]", seconds: float, wanted: "Wanted") -> None:
        super().__init__(argv, seconds, MOST)
        self.wanted = wanted
        self.found = {}  # type: dict[str, dict[str, Any]]

    def read(self, descriptor: int) -> None:
        super().read(descriptor)
        end = self.out.rfind(b"\n", 0, -1)
        while end > 0 and self.out[end + 1 : end + 2].isspace():  # a connection may continue on the next line
            end = self.out.rfind(b"\n", 0, end)
        self.take(end + 1)

    def take(self, end: int) -> None:
        self.found.update(parse(self.out[:end].decode("utf-8", "replace"), self.wanted))
        del self.out[:end]


def parse(text: str, wanted: "Wanted" = lambda *_: True) -> "dict[str, dict[str, Any]]":
    found = {}
    # Not by splitlines: the names of control groups may contain other characters that end a line.
    for line in re.sub(r"\n[ \t]+", " ", text).split("\n"):
        own, _, rest = line.partition(" cgroup:")
        named = dict(_PAIRS.findall(own))
        inode, uid = named.get("ino", "0"), int(named.get("uid", 0))
        if inode == "0" or not wanted(inode, uid):
            continue
        words = own.split()
        if len(words) < 5 or not (words[1].isdigit() and words[2].isdigit()):
            continue
        rest = " ".join(words[5:]) + (" " + _CGROUP.sub("", rest) if rest else "")
        said = {name: int(value) for name, value in _PAIRS.findall(rest)}
        timer = _TIMER.search(rest)
        found[inode] = {
            "state": words[0][:32],
            "local": plain(words[3]),
            "peer": plain(words[4]),
            "received": said.get("bytes_received", 0),
            "acknowledged": said.get("bytes_acked", 0),
            "last_sent": said.get("lastsnd", 0),
            "last_received": said.get("lastrcv", 0),
            "last_acknowledged": said.get("lastack", 0),
            "unacknowledged": said.get("unacked", 0),
            "backoff": said.get("backoff", 0),
            "persist": bool(timer and timer.group(1) == "persist"),
            "uid": uid,
        }
    return found


def plain(place: str) -> str:
    """ADDRESS:PORT without the interface. A mapped IPv4 address is written as IPv4."""
    return re.sub(r"%[^\]:]*", "", re.sub(r"\[::ffff:([\d.]+)\]", r"\1", place))[:256]

"""The owner of a socket of this host, by what the kernel shows in /proc/net/tcp and /proc/net/tcp6.

Only sockets of our own network namespace are listed: not the other end of a connection to another host, or to
a container with a network of its own. User numbers are those of our own user namespace.
"""

import math
import os
import re
import socket
import struct
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from doctor.exam.in_job.handshake import Endpoint, Stranger, endpoint

_TABLES = (Path("/proc/net/tcp6"), Path("/proc/net/tcp"))
"""Rank 0 listens with an IPv6 socket, so it is mostly found in the first."""
_LISTENING = re.compile(r"^ *\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:0000 0A (.*)$", re.MULTILINE)
_READINGS = 3
"""A table that changes while it is read may lack a row."""
_NOBODY = 65534
"""The number shown for users without one in our user namespace; we may be such a user."""
_ALL_USERS = ["0", "0", "4294967295"]


class SocketTables:
    """The tables of the kernel. Reading them takes milliseconds, and many of these on a busy host."""

    def __init__(self) -> None:
        self._read: dict[Path, tuple[float, str]] = {}

    def after(self, moment: float) -> Iterator[str]:
        """Each table, as it was at some time after that moment, of time.monotonic."""
        for table in _TABLES:
            if moment >= self._read.get(table, (-math.inf, ""))[0]:
                now = time.monotonic()
                with suppress(OSError):  # no IPv6, or /proc without it
                    self._read[table] = now, table.read_text()
            if table in self._read:
                yield self._read[table][1]


def peer_is_ours(
    connection: socket.socket, tables: SocketTables | None = None, came: float = math.inf
) -> bool | None:
    """None if the other end cannot be seen here. Tables read after it `came` are reused. Raises Stranger."""
    tables = tables or SocketTables()
    here, there = endpoint(connection.getsockname()), endpoint(connection.getpeername())
    near = here.address == there.address
    if not near and not _is_local(there.address):
        return None
    theirs = None
    for moment in (came, *[math.inf] * (_READINGS - 1)):
        theirs = theirs or _owner_of(there, here, tables.after(moment))
        if theirs == (os.geteuid(), True):
            return True if theirs[0] != _NOBODY or _sees_all_users() else None
    ours = (_owner_of(here, there, tables.after(math.inf)) for _ in range(_READINGS))
    if (os.geteuid(), True) not in ours or not (theirs or near):
        return None  # the tables do not even show our own end
    uid, held = theirs or (0, False)
    raise Stranger(f"it belongs to the user with uid {uid}" if held else "its owner cannot be seen")


def _owner_of(local: Endpoint, remote: Endpoint, texts: Iterable[str]) -> tuple[int, bool] | None:
    """The owner of a socket: see `_owner`."""
    ends = [f" {_table_format(local, wide)} {_table_format(remote, wide)} " for wide in (False, True)]
    found = next((text[at:] for text in texts for end in ends if (at := text.find(end)) >= 0), "")
    return _owner(found.split(None, 3)[3].partition("\n")[0]) if found else None


def other_holder(port: int) -> int | None:
    """The uid of another user that listens on the port."""
    rows = (
        row
        for text in SocketTables().after(math.inf)
        for row in _LISTENING.finditer(text)
        if int(row[1], 16) == port
    )
    return next((uid for row in rows if (uid := _owner(row[2])[0]) != os.geteuid()), None)


def _owner(rest: str) -> tuple[int, bool]:
    """The uid, and whether a process holds the socket: one that nobody has accepted shows no owner."""
    words = rest.split()
    return int(words[3]), words[5] != "0"


def _is_local(address: str) -> bool:
    """Whether the address belongs to this network namespace."""
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
        return True


def _sees_all_users() -> bool:
    try:
        return Path("/proc/self/uid_map").read_text().split() == _ALL_USERS
    except OSError:
        return False


def _table_format(place: Endpoint, wide: bool) -> str:
    """Words in the machine's byte order; `wide`: IPv4 as an IPv6 socket shows it."""
    if ":" in place.address:
        packed = socket.inet_pton(socket.AF_INET6, place.address)
    else:
        packed = (bytes(10) + b"\xff\xff" if wide else b"") + socket.inet_pton(socket.AF_INET, place.address)
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return "".join(f"{word:08X}" for word in words) + f":{place.port:04X}"

"""Whose a socket of this host is, by what the kernel shows in /proc/net/tcp and /proc/net/tcp6.

Only sockets of our own network namespace are in there: the other end of a connection to another host, or to a
container with a network of its own, is not. User numbers are those of our own user namespace.
"""

from __future__ import annotations

import os
import re
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from doctor.run.in_job.handshake import Endpoint, Stranger, endpoint

_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LISTENING = re.compile(r"^ *\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:0000 0A (.*)$", re.MULTILINE)
_READINGS = 5
"""A table that changes while it is read may lack a row."""
_NOBODY = 65534
"""What users are shown as who have no number in our user namespace; we may be one of them."""
_ALL_USERS = ["0", "0", "4294967295"]


def peer_is_ours(connection: socket.socket) -> bool | None:
    """Whether the other end belongs to our own user; None where it is not on this host, or cannot be seen.

    Raises Stranger where it belongs to somebody else.
    """
    here, there = endpoint(connection.getsockname()), endpoint(connection.getpeername())
    if here.address != there.address and not _is_local(there.address):
        return None
    mine = None
    for _ in range(_READINGS):
        tables = list(_tables())
        mine = _owner_of(here, there, tables)
        theirs = _owner_of(there, here, tables)
        if mine and theirs:
            break
    if mine != (os.geteuid(), True):  # they do not even show what we know
        return None
    if theirs:
        return _is_ours(*theirs)
    if here.address != there.address:
        return None
    raise Stranger("it cannot be seen to whom it belongs")


def _owner_of(local: Endpoint, remote: Endpoint, tables: list[str]) -> tuple[int, bool] | None:
    """Of a socket: see `_owner`."""
    ends = [f" {_shown(local, wide)} {_shown(remote, wide)} " for wide in (False, True)]
    found = next((text[at:] for text in tables for end in ends if (at := text.find(end)) >= 0), "")
    return _owner(found.split(None, 3)[3].partition("\n")[0]) if found else None


def _is_ours(uid: int, held: bool) -> bool | None:
    if not held:
        raise Stranger
    if uid != os.geteuid():
        raise Stranger(f"it belongs to the user with uid {uid}")
    return True if uid != _NOBODY or _sees_all_users() else None


def other_holder(port: int) -> int | None:
    """The uid of another user that listens on the port."""
    rows = (row for text in _tables() for row in _LISTENING.finditer(text) if int(row[1], 16) == port)
    return next((uid for row in rows if (uid := _owner(row[2])[0]) != os.geteuid()), None)


def _owner(rest: str) -> tuple[int, bool]:
    """Of what a row says behind the state: the uid, and whether a process holds the socket.

    One that nobody has accepted yet, or that its process has left, shows no owner.
    """
    words = rest.split()
    return int(words[3]), words[5] != "0"


def _is_local(address: str) -> bool:
    """Whether it is one of this network namespace."""
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
        return True


def _tables() -> Iterator[str]:
    for table in _TABLES:
        with suppress(OSError):  # no IPv6, or /proc without it
            yield table.read_text()


def _sees_all_users() -> bool:
    try:
        return Path("/proc/self/uid_map").read_text().split() == _ALL_USERS
    except OSError:
        return False


def _shown(place: Endpoint, wide: bool) -> str:
    """As the tables have it: words of the machine's byte order, without a colon for IPv6.

    `wide`: IPv4 as a socket of IPv6 has it.
    """
    if ":" in place.address:
        packed = socket.inet_pton(socket.AF_INET6, place.address)
    else:
        packed = (bytes(10) + b"\xff\xff" if wide else b"") + socket.inet_pton(socket.AF_INET, place.address)
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return "".join(f"{word:08X}" for word in words) + f":{place.port:04X}"

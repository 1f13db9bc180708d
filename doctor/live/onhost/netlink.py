"""TCP connections by netlink, as `ss` reads them, without starting a program. Anybody may ask."""

import ctypes
import os
import socket
import struct
from collections.abc import Iterator
from typing import Any

_BY_FAMILY, _DUMP, _DONE, _ERROR = 20, 0x301, 3, 2
_TCP, _INFO, _ESTABLISHED, _PERSIST = 6, 2, 1, 4
_DIAG = 4
"""NETLINK_SOCK_DIAG."""
_NUMBERS = {"unacknowledged": 24, "last_sent": 44, "last_received": 52, "last_acknowledged": 56, "again": 100}
_LONG = {"acknowledged": 120, "received": 128, "rate": 160, "busy": 168, "sent": 200}
_BACKOFF, _WHOLE = 4, 208
"""Offsets in struct tcp_info of 32 and 64 bits, and of one byte; older kernels tell less than all."""
Wanted = Any
"""A function of an inode and a UID: whether this socket is wanted."""
SECONDS = 1.0
MOST = 1 << 20
STATES = "? ESTAB SYN-SENT SYN-RECV FIN-WAIT-1 FIN-WAIT-2 TIME-WAIT UNCONN CLOSE-WAIT LAST-ACK LISTEN CLOSING"


class TcpTable:
    """One netlink socket in a network namespace. `place`: the file of the namespace; empty for our own."""

    def __init__(self, place: str = "") -> None:
        """Raises OSError."""
        own = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            if place:
                _enter(os.open(place, os.O_RDONLY | os.O_CLOEXEC))
            self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _DIAG)
        finally:
            if place:
                _enter(os.dup(own))
            os.close(own)
        self.socket.settimeout(SECONDS)

    def read(self, wanted: "Wanted", states: int = 1 << _ESTABLISHED) -> "list[dict[str, Any]]":
        """The connections in these states whose inode and UID are wanted. Raises OSError."""
        found = []  # type: list[dict[str, Any]]
        for family in (socket.AF_INET, socket.AF_INET6):
            body = struct.pack("=BBBBI", family, _TCP, 1 << (_INFO - 1), 0, states) + bytes(48)
            self.socket.send(struct.pack("=IHHII", 16 + len(body), _BY_FAMILY, _DUMP, 1, 0) + body)
            found += [one for data in self._answers() for one in [_connection(data, family, wanted)] if one]
        return found

    def _answers(self) -> "Iterator[bytes]":
        while True:
            data, at = self.socket.recv(MOST), 0
            while at + 16 <= len(data):
                size, kind = struct.unpack_from("=IH", data, at)
                if kind == _ERROR:
                    raise OSError(-struct.unpack_from("=i", data, at + 16)[0], "the kernel refused")
                if kind == _DONE or size < 16:
                    return
                yield data[at + 16 : at + size]
                at += (size + 3) & ~3

    def close(self) -> None:
        self.socket.close()


def _enter(descriptor: int) -> None:
    try:
        if ctypes.CDLL(None, use_errno=True).setns(descriptor, 0):
            raise OSError(ctypes.get_errno(), "only root may look into its network namespace")
    finally:
        os.close(descriptor)


def _connection(data: bytes, family: int, wanted: "Wanted") -> "dict[str, Any] | None":
    """A message inet_diag_msg with its attributes."""
    if len(data) < 72:
        return None
    uid, inode = struct.unpack_from("=II", data, 64)
    if not wanted(inode, uid):
        return None
    ports = struct.unpack_from("!HH", data, 4)
    size = 4 if family == socket.AF_INET else 16
    ends = [f"{_address(data[at : at + size])}:{port}" for at, port in ((8, ports[0]), (24, ports[1]))]
    about = {"local": ends[0], "peer": ends[1], "uid": uid, "inode": inode}  # type: dict[str, Any]
    about.update(state=STATES.split()[data[1] if data[1] < 12 else 3], persist=data[2] == _PERSIST)
    about.update(_numbers(_info(data)))
    return about


def _address(packed: bytes) -> str:
    """As in the looks of `doctor hang`: an IPv4 address has no prefix."""
    if len(packed) == 16 and packed[:12] == bytes(10) + b"\xff\xff":
        packed = packed[12:]
    text = socket.inet_ntop(socket.AF_INET if len(packed) == 4 else socket.AF_INET6, packed)
    return text if len(packed) == 4 else f"[{text}]"


def _info(data: bytes) -> bytes:
    """The attribute that holds struct tcp_info."""
    at = 72
    while at + 4 <= len(data):
        size, kind = struct.unpack_from("=HH", data, at)
        if kind == _INFO:
            return data[at + 4 : at + size]
        at += max(4, (size + 3) & ~3)
    return b""


def _numbers(info: bytes) -> "dict[str, int]":
    """Ages in milliseconds, repeats, the rate in bytes a second, microseconds busy, bytes. 0 if unknown."""
    whole = info.ljust(_WHOLE, b"\0")
    told = {name: struct.unpack_from("=I", whole, at)[0] for name, at in _NUMBERS.items()}
    told.update((name, struct.unpack_from("=Q", whole, at)[0]) for name, at in _LONG.items())
    told["backoff"] = whole[_BACKOFF]
    if len(info) < _WHOLE:
        told["sent"] = told["acknowledged"]
    return told

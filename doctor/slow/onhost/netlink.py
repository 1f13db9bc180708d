"""TCP connections by netlink, as `ss` reads them, without starting a program. Anybody may ask."""

import contextlib
import ctypes
import os
import socket
import struct
from collections.abc import Collection, Iterator
from typing import Any

_BY_FAMILY, _DUMP, _DONE, _ERROR = 20, 0x301, 3, 2
_TCP, _INFO, _ESTABLISHED = 6, 2, 1
_DIAG = 4
"""NETLINK_SOCK_DIAG."""
_AGAIN, _RATE, _SENT = 100, 160, 200
"""Offsets in struct tcp_info: total_retrans, delivery_rate with busy_time, bytes_sent."""
_ACKED = 120
SECONDS = 1.0
MOST = 1 << 20


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

    def read(self, inodes: "Collection[int]") -> "list[dict[str, Any]]":
        """The established connections with these inodes. Raises OSError."""
        found = []  # type: list[dict[str, Any]]
        for family in (socket.AF_INET, socket.AF_INET6):
            body = struct.pack("=BBBBI", family, _TCP, 1 << (_INFO - 1), 0, 1 << _ESTABLISHED) + bytes(48)
            self.socket.send(struct.pack("=IHHII", 16 + len(body), _BY_FAMILY, _DUMP, 1, 0) + body)
            found += [one for data in self._answers() for one in [_connection(data, family, inodes)] if one]
        return found

    def _answers(self) -> "Iterator[bytes]":
        while True:
            data, at = self.socket.recv(MOST), 0
            while at + 16 <= len(data):
                size, kind = struct.unpack_from("=IH", data, at)
                if kind in (_DONE, _ERROR) or size < 16:
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


def _connection(data: bytes, family: int, inodes: "Collection[int]") -> "dict[str, Any] | None":
    """A message inet_diag_msg with its attributes."""
    if len(data) < 72:
        return None
    (inode,) = struct.unpack_from("=I", data, 68)
    if inode not in inodes:
        return None
    ports = struct.unpack_from("!HH", data, 4)
    size = 4 if family == socket.AF_INET else 16
    ends = [f"{_address(data[at : at + size])}:{port}" for at, port in zip((8, 24), ports, strict=False)]
    about = {"local": ends[0], "peer": ends[1], "inode": inode}  # type: dict[str, Any]
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
    """Repeats, the rate in bytes a second, microseconds busy, bytes. 0 if unknown."""
    told = {"again": 0, "rate": 0, "busy": 0, "sent": 0, "received": 0}
    with contextlib.suppress(struct.error):  # an older kernel tells less
        (told["again"],) = struct.unpack_from("=I", info, _AGAIN)
        told["sent"], told["received"] = struct.unpack_from("=QQ", info, _ACKED)
        told["rate"], told["busy"] = struct.unpack_from("=QQ", info, _RATE)
        (told["sent"],) = struct.unpack_from("=Q", info, _SENT)
    return told

"""How often TCP had to send something again: the kernel keeps count for each connection of a program."""

import os
import socket
import struct
from contextlib import suppress

_AGAIN, _ACKED, _SENT = 100, 120, 156  # total_retrans, bytes_acked and data_segs_out in struct tcp_info


def segments_of(sock: socket.socket) -> "tuple[int, int]":
    """Segments with data that this end sent, and how many of them were repeats; zeros if it is unknown."""
    try:
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    except OSError:
        return 0, 0
    if len(info) < _SENT + 4:  # a kernel before 4.6
        return 0, 0
    return struct.unpack_from("=I", info, _SENT)[0], struct.unpack_from("=I", info, _AGAIN)[0]


def acknowledged(sock: socket.socket) -> int:
    """Bytes that the other end has received of what this one sent; 0 if it is unknown."""
    try:
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    except OSError:
        return 0
    return struct.unpack_from("=Q", info, _ACKED)[0] if len(info) >= _ACKED + 8 else 0


def segments_by_peer() -> "dict[str, list[int]]":
    """The same for all TCP connections of this process together, by the address of their other end."""
    found = {}  # type: dict[str, list[int]]
    for fd in os.listdir("/proc/self/fd"):
        with suppress(OSError), socket.socket(fileno=os.dup(int(fd))) as sock:
            peer = sock.getpeername()
            if sock.type == socket.SOCK_STREAM and sock.family in (socket.AF_INET, socket.AF_INET6):
                sent, again = segments_of(sock)
                total = found.setdefault(peer[0].removeprefix("::ffff:"), [0, 0])
                total[0] += sent
                total[1] += again
    return found

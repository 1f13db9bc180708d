"""How often TCP had to send something again. The kernel counts this for each connection."""

import os
import socket
import stat
import struct
from contextlib import suppress

_AGAIN, _ACKED, _SENT = 100, 120, 156  # total_retrans, bytes_acked and data_segs_out in struct tcp_info


def segments_of(sock: socket.socket) -> "tuple[int, int]":
    """The number of segments with data that this end sent, and how many were repeats; zeros if unknown."""
    try:
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    except OSError:
        return 0, 0
    if len(info) < _SENT + 4:  # a kernel before 4.6
        return 0, 0
    return struct.unpack_from("=I", info, _SENT)[0], struct.unpack_from("=I", info, _AGAIN)[0]


def acknowledged(sock: socket.socket) -> int:
    """How many bytes the other end has acknowledged; 0 if unknown."""
    try:
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    except OSError:
        return 0
    return struct.unpack_from("=Q", info, _ACKED)[0] if len(info) >= _ACKED + 8 else 0


def segments_by_peer() -> "dict[str, list[int]]":
    """Segments sent and repeated on all TCP connections of this process, by the address of the other end."""
    found = {}  # type: dict[str, list[int]]
    for fd in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            if not stat.S_ISSOCK(os.fstat(int(fd)).st_mode):
                continue  # no copy of it, which nobody would close
        with suppress(OSError), socket.socket(fileno=os.dup(int(fd))) as sock:
            peer = sock.getpeername()
            if sock.type == socket.SOCK_STREAM and sock.family in (socket.AF_INET, socket.AF_INET6):
                sent, again = segments_of(sock)
                address = peer[0][7:] if peer[0].startswith("::ffff:") else peer[0]  # Python 3.8
                total = found.setdefault(address, [0, 0])
                total[0] += sent
                total[1] += again
    return found

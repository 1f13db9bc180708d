"""How often TCP had to send something again: the kernel keeps count for each connection of a program."""

import os
import socket
import stat
import struct
from contextlib import suppress

_AGAIN, _SENT = 100, 156  # tcpi_total_retrans and tcpi_data_segs_out in struct tcp_info


def segments_of(sock: socket.socket) -> "tuple[int, int]":
    """Segments with data that this end sent, and how many of them were repeats; zeros if it is unknown."""
    try:
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    except OSError:
        return 0, 0
    if len(info) < _SENT + 4:  # a kernel before 4.6
        return 0, 0
    return struct.unpack_from("=I", info, _SENT)[0], struct.unpack_from("=I", info, _AGAIN)[0]


def segments_by_peer() -> "dict[str, list[int]]":
    """The same for all TCP connections of this process together, by the address of their other end."""
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

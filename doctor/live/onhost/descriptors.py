"""What a process has open: its sockets and files, how far it has come in each file, and what its threads
poll. No file is opened.
"""

import contextlib
import os
import re
import struct
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

from doctor.live.onhost.syscalls import EPOLLS, READS, TALKS

MOST = 65536
LONGEST = 4096
MOST_FILES = 64
MOST_POSITIONS = 256
FIRST = 3
"""Smaller descriptors are the standard streams, which processes share and which take log lines."""
TERMINALS = ("/dev/pts/", "/dev/tty")
MOST_POLLED = 1024
OF_COLLECTIVES = (
    *("gloo", "pt_gloo", "pt_nccl", "pt_hccl", "pt_tcpstore", "pt_dist", "pt_autog", "pt_workerserver"),
)
"""How threads are named that wait for other ranks. "pt_main_thread" and "pt_data_worker" are others."""
_POLLED = struct.Struct("ihh")
"""A descriptor, as poll takes it, and what it is polled for."""
_WATCHED = re.compile(rb"tfd:\s+(\d+)")
_ABOUT = re.compile(rb"pos:\s+(\d+)\s+flags:\s+([0-7]+)")


def opened(home: str, threads: "Sequence[dict[str, Any]]") -> "dict[str, Any] | None":
    """`inodes` of its sockets, its `pipes`, open `files` and their `positions`, and what its threads have
    `polled`; None if they may not be seen.
    """
    try:
        descriptors = sorted(map(int, os.listdir(home + "/fd")))
    except OSError:
        return None
    used = _in_use(threads)
    descriptors.sort(key=lambda number: number not in used)
    inodes, pipes, files, positions = [], [], [], []  # type: list[str], list[str], list[str], list[str]
    ends = {}  # type: dict[int, str]
    for number in descriptors[:MOST]:
        with contextlib.suppress(OSError):
            target = os.readlink(f"{home}/fd/{number}")
            if target.startswith(("socket:[", "pipe:[", *TERMINALS)):
                ends[number] = target
            if target.startswith("socket:["):
                inodes.append(target[8:-1])
            elif target.startswith("pipe:["):
                pipes.append(target)
            elif target.startswith("/") and not target.startswith(("/dev/", "/proc/", "/memfd:", "/sys/")):
                if number >= FIRST or number in used:
                    files.append(os.fsencode(target).decode("utf-8", "replace")[:LONGEST])
                if number >= FIRST and len(positions) < MOST_POSITIONS:
                    positions += _position(home, number, target)
    return {
        "inodes": inodes,
        "pipes": pipes,
        "files": list(dict.fromkeys(files))[:MOST_FILES],
        "positions": positions,
        "polled": {str(one["tid"]): _polled(home, one, ends) for one in threads if polls(one)},
    }


def polls(thread: "dict[str, Any]") -> bool:
    """Whether it waits for sockets, pipes or terminals, other than for those of collectives."""
    named = " ".join([thread["waits"], *thread.get("syscall", [])[:1]])
    waits = any(part in named for part in ("poll", "select", "pipe", "woken", "sk_wait", "tty", "unix_"))
    return waits and not thread["name"].startswith(OF_COLLECTIVES)


def _polled(home: str, thread: "dict[str, Any]", ends: "dict[int, str]") -> "list[str]":
    """The sockets, pipes and terminals that it waits for; if it may not be seen which, all its sockets."""
    call = thread.get("syscall", [])
    with contextlib.suppress(OSError, OverflowError, struct.error):
        if len(call) > 1 and call[0] in TALKS:
            return _among(ends, [int(call[1], 16)])
        if len(call) > 1 and call[0] in EPOLLS:
            with open(f"{home}/fdinfo/{int(call[1], 16)}", "rb") as file:
                return _among(ends, map(int, _WATCHED.findall(file.read(MOST))))
        if len(call) > 2 and call[0] in ("poll", "ppoll"):
            size = _POLLED.size * min(int(call[2], 16), MOST_POLLED)
            return _among(ends, (row[0] for row in _POLLED.iter_unpack(memory(home, call[1], size))))
        if len(call) > 2 and call[0] in ("select", "pselect6"):
            bits = int.from_bytes(
                memory(home, call[2], min(int(call[1], 16), MOST_POLLED) // 8 + 1), "little"
            )
            return _among(ends, (number for number in ends if bits >> number & 1))
    return [end for end in ends.values() if end.startswith("socket:")]


def memory(home: str, place: str, size: int) -> bytes:
    if not int(place, 16):  # it polls for nothing
        return b""
    with open(home + "/mem", "rb", buffering=0) as file:
        file.seek(int(place, 16))
        return file.read(size)


def _among(ends: "dict[int, str]", numbers: "Iterable[int]") -> "list[str]":
    return [ends[number] for number in numbers if number in ends]


def _position(home: str, number: int, target: str) -> "list[str]":
    """The descriptor, a checksum of its file's name, and the offset; empty for files that only grow: logs."""
    with open(f"{home}/fdinfo/{number}", "rb") as file:
        found = _ABOUT.match(file.read(LONGEST))
    if not found or int(found.group(2), 8) & os.O_APPEND:
        return []
    name = zlib.crc32(os.fsencode(target.replace(" (deleted)", "")))
    return [f"{number} {name} {int(found.group(1))}"]


def _in_use(threads: "Sequence[dict[str, Any]]") -> "set[int]":
    """Descriptors that threads are reading or writing now."""
    calls = [one.get("syscall", []) for one in threads]
    return {int(call[1], 16) for call in calls if len(call) > 1 and call[0] in READS}

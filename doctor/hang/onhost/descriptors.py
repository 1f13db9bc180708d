"""What a process has open: its sockets and files, and how far it has come in each file. No file is opened."""

import contextlib
import os
import re
import zlib
from collections.abc import Sequence
from typing import Any

from doctor.hang.onhost.syscalls import READS

MOST = 65536
LONGEST = 4096
MOST_FILES = 64
MOST_POSITIONS = 256
FIRST = 3
"""Smaller descriptors are the standard streams, which processes share and which take log lines."""
_ABOUT = re.compile(rb"pos:\s+(\d+)\s+flags:\s+([0-7]+)")


def opened(home: str, threads: "Sequence[dict[str, Any]]") -> "dict[str, list[str]] | None":
    """`inodes` of its sockets, open `files` and their `positions`; None if they may not be seen."""
    try:
        descriptors = sorted(map(int, os.listdir(home + "/fd")))
    except OSError:
        return None
    used = _in_use(threads)
    descriptors.sort(key=lambda number: number not in used)
    inodes, files, positions = [], [], []  # type: list[str], list[str], list[str]
    for number in descriptors[:MOST]:
        with contextlib.suppress(OSError):
            target = os.readlink(f"{home}/fd/{number}")
            if target.startswith("socket:["):
                inodes.append(target[8:-1])
            elif target.startswith("/") and not target.startswith(("/dev/", "/proc/", "/memfd:", "/sys/")):
                files.append(os.fsencode(target).decode("utf-8", "replace")[:LONGEST])
                if number >= FIRST and len(positions) < MOST_POSITIONS:
                    positions += _position(home, number, target)
    return {"inodes": inodes, "files": list(dict.fromkeys(files))[:MOST_FILES], "positions": positions}


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

"""What /proc of this host says of a rank: whether it runs, is stopped, or is there at all."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

PROC = Path("/proc")
MOST_BYTES = 256 * 1024
GONE = "gone"
WORDS = {
    "T": "stopped",
    "t": "held by a debugger",
    "D": "in uninterruptible sleep (state D)",
    "Z": "dead and not yet collected (state Z)",
    "X": "dead",
    GONE: "no longer there",
}


def identity() -> str:
    """Tells two machines, or two containers with networks of their own, apart."""
    return "/".join((_text("sys/kernel/random/boot_id").strip(), *map(_space, ("net", "pid"))))


def started(pid: int) -> int:
    """When the process began, in clock ticks: a number may be given again. 0 where it is not there."""
    fields = _fields(pid)
    return int(fields[19]) if len(fields) > 19 else 0


def state(pid: int, began: int) -> str:
    """The letter of its state, or `gone`."""
    fields = _fields(pid)
    return fields[0] if len(fields) > 19 and int(fields[19]) == began else GONE


def find_rank(variable: str, number: int, same: Sequence[tuple[str, str]]) -> tuple[int, str] | None:
    """The process of a rank of this job that has not come: its pid and state. Own user's processes only."""
    wanted = {f"{variable}={number}".encode(), *(f"{name}={value}".encode() for name, value in same)}
    found: list[tuple[int, str]] = []
    for entry in PROC.iterdir():
        if entry.name.isdecimal() and wanted <= _environment(entry):
            fields = _fields(int(entry.name))
            found.append((int(entry.name), fields[0] if fields else GONE))
    return min(found, key=lambda each: (each[1] not in "Tt", each[0]), default=None)


def _environment(entry: Path) -> set[bytes]:
    try:
        with (entry / "environ").open("rb") as file:
            return set(file.read(MOST_BYTES).split(b"\0"))
    except OSError:
        return set()


def _fields(pid: int) -> list[str]:
    """From the state on: the name before it may hold anything."""
    fields = _text(f"{pid}/stat").rpartition(")")[2].split()
    return fields if len(fields) > 19 and re.fullmatch(r"\d{1,20}", fields[19], re.ASCII) else []


def _space(kind: str) -> str:
    try:
        return os.readlink(PROC / "self" / "ns" / kind)
    except OSError:
        return ""


def _text(path: str) -> str:
    try:
        return (PROC / path).read_text(errors="replace")
    except OSError:
        return ""

"""Limits of the control groups that a login lives in, on every level up to the root."""

import re
from dataclasses import dataclass

from doctor.text.hostprogram import host_program

LOOK = host_program(__file__, "groups.awk")
"""Statements of awk. A group that cannot be seen from here, as from a container, is stepped over."""
_SAID = re.compile(r"^group ([\w.]+) (\d{1,18}) (\d{1,18}) (/.*)?$", re.MULTILINE)
_ENDLESS = 1 << 50
_LIMITS = {
    "memory.max": ("memory", "memory.current"),
    "memory.limit_in_bytes": ("memory", "memory.usage_in_bytes"),
    "memory.high": ("memory", "memory.current"),
    "pids.max": ("pids", "pids.current"),
    "cpu.max": ("cpus", ""),
    "cpu.cfs_quota_us": ("cpus", ""),
}


@dataclass(frozen=True, slots=True)
class GroupLimit:
    """`room`: bytes, processes and threads, or processors that are left. `file` holds the limit."""

    kind: str
    file: str
    path: str
    room: float


def group_limits(text: str) -> tuple[GroupLimit, ...]:
    said = {(file, path): (int(a), int(b)) for file, a, b, path in _SAID.findall(text)}
    found = []
    for (file, path), (limit, period) in said.items():
        kind, used = _LIMITS.get(file, ("", ""))
        if kind == "cpus":
            period = period or said.get(("cpu.cfs_period_us", path), (100_000, 0))[0]
            found.append(GroupLimit(kind, file, path or "/", limit / max(period, 1)))
        elif kind and limit < _ENDLESS:
            found.append(GroupLimit(kind, file, path or "/", limit - said.get((used, path), (0, 0))[0]))
    return tuple(found)

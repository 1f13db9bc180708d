"""Limits of the control groups that a login lives in, on every level up to the root."""

from __future__ import annotations

import re
from dataclasses import dataclass

LOOK = r"""
while IFS=: read -r n names at; do
  case ,$names, in
    ,,) g=/sys/fs/cgroup; [ -e $g/cgroup.controllers ] || g=$g/unified
      kinds='memory.max memory.current memory.high pids.max pids.current cpu.max';;
    *,memory,*) g=/sys/fs/cgroup/memory kinds='memory.limit_in_bytes memory.usage_in_bytes';;
    *,pids,*) g=/sys/fs/cgroup/pids kinds='pids.max pids.current';;
    *,cpu,*) g=/sys/fs/cgroup/cpu kinds='cpu.cfs_quota_us cpu.cfs_period_us';;
    *) continue;;
  esac
  while :; do
    for k in $kinds; do
      a=; [ ! -r "$g$at/$k" ] || read -r a b <"$g$at/$k"
      [ -z "$a" ] || echo "group $k $a ${b:-0} $at"; b=
    done
    case $at in ''|/) break;; esac
    at=${at%/*}
  done
done </proc/self/cgroup
"""
"""It starts no process. A group that cannot be seen from here, as from a container, is stepped over."""
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

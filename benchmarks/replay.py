"""`python -m benchmarks.replay`: what it costs to judge and report recordings of thousands of hosts.

The recordings are forged (`benchmarks/forge.py`). Each run is the whole command, from the file to the report,
start included. CPU time counts, because it hardly depends on other work on the machine.
"""

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.forge import forge
from benchmarks.table import MEGA, columns, machine

HOSTS = (300, 1000, 4096)
KINDS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "GPUs, with a mesh": ("gpus", {"mesh": True}),
    "GPUs, a firewall each": ("gpus", {"mesh": False, "walled": True}),
    "GPUs, half barred each": ("gpus", {"mesh": True, "barred": True}),
    "NPUs, without a mesh": ("npus", {"mesh": False}),
    "NPUs, exam node": ("npus", {"mesh": False}),
    "NPUs, all addresses doubled": ("npus", {"mesh": True, "doubled": True}),
}
EXAMS: Mapping[str, str] = {"NPUs, exam node": "node"}
"""The exams of the kinds that are judged by another one than was recorded."""
TARGET_MS, TARGET_KB = 10, 200
"""A host."""


@dataclass(frozen=True, slots=True)
class Cost:
    cpu: float
    peak: int
    """Bytes."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replay", description=__doc__)
    parser.add_argument("--hosts", type=int, nargs="+", default=HOSTS)
    args = parser.parse_args()
    print(machine(), end="\n\n")
    lines = []
    for title, (demo, more) in KINDS.items():
        for hosts in args.hosts:
            size, cost = measured(demo, hosts, more, EXAMS.get(title))
            lines.append(
                [
                    f"{title}, {hosts:,} hosts",
                    f"{size / MEGA:.0f} MB",
                    f"{cost.cpu:.1f} s",
                    f"{1000 * cost.cpu / hosts:.1f} ms",
                    f"{cost.peak / MEGA:.0f} MB",
                    f"{cost.peak / 1000 / hosts:.0f} kB",
                ]
            )
    print(columns(["replay", "recording", "CPU", "a host", "peak memory", "a host"], lines))
    print(f"\nTarget, for thousands: under {TARGET_MS} ms of CPU and {TARGET_KB} kB a host.")
    return 0


def measured(demo: str, hosts: int, more: Mapping[str, Any], exam: str | None = None) -> tuple[int, Cost]:
    """The size of the recording in bytes, and what its replay costs."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "forged.run.json"
        # A process of its own: the next measurement would start with the peak memory of its parent.
        forging = multiprocessing.get_context("spawn").Process(target=_forge, args=(file, demo, hosts, more))
        forging.start()
        forging.join()
        return file.stat().st_size, _replayed(str(file), exam)


def _forge(file: Path, demo: str, hosts: int, more: Mapping[str, Any]) -> None:
    with file.open("w") as out:
        json.dump(forge(demo, hosts, **more), out)


def _replayed(path: str, exam: str | None) -> Cost:
    command = [sys.executable, "-m", "doctor", "check", "--replay", path, *(["--exam", exam] if exam else [])]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 1, 3):
        raise SystemExit(f"{' '.join(command)} failed")
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)


if __name__ == "__main__":
    sys.exit(main())

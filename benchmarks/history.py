"""`python -m benchmarks.history`: what `doctor history` costs for a year of runs, and what 1,000 waivers add.

Each run is the whole report of a forged recording (`benchmarks/forge.py`), with its own time and some faults.
Each measurement is the whole command, start included. CPU time counts, because it hardly depends on other
work on the machine.
"""

import argparse
import gc
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.forge import forge
from benchmarks.replay import Cost
from benchmarks.table import MEGA, columns, machine
from doctor.exam.policy import with_waivers
from doctor.exam.request import ExamFlags
from doctor.job.wishes import JobWishes
from doctor.text import redact

RUNS = (1000, 5000)
HOSTS = 64
WAIVERS = 1000
ROUNDS = 20
ONE_IN = 200
"""A host is faulty in one of so many runs, the first one ten times as often."""
CHECKS = ("gpu-xid", "gpu-ecc", "disk-full", "tmp-not-writable")
BEGIN = datetime(2020, 1, 1)
TARGET_S, TARGET_MB, TARGET_MS = 20, 150, 20


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.history", description=__doc__)
    parser.add_argument("--runs", type=int, nargs="+", default=RUNS)
    args = parser.parse_args()
    print(machine(), end="\n\n")
    with tempfile.TemporaryDirectory(prefix="doctor-history-") as folder:
        recording, report = Path(folder, "forged.run.json"), Path(folder, "report.json")
        recording.write_text(json.dumps(forge("gpus", HOSTS, mesh=False)))
        replay = ["check", "--replay", str(recording), "--exam", "node"]
        spent(*replay, "--json", str(report))
        lines = []
        for runs in args.runs:
            write(Path(folder, str(runs)), json.loads(report.read_bytes()), runs)
            cost = spent("history", str(Path(folder, str(runs))))
            lines.append(
                [f"{runs:,} runs of {HOSTS} hosts", f"{cost.cpu:.1f} s", f"{cost.peak / MEGA:.0f} MB"]
            )
        print(columns(["history", "CPU", "peak memory"], lines))
        print(f"\nTarget, for 5,000 runs: {TARGET_S} s and {TARGET_MB} MB, whatever the number of runs.\n")
        one, all_of = (Path(folder, f"{number}.yaml") for number in (1, WAIVERS))
        one.write_text(waived(1))
        all_of.write_text(waived(WAIVERS))
        reading(one)  # with what it imports
        gc.set_threshold(100_000, 50, 50)  # as doctor does
        least = 1000 * min(reading(all_of) - reading(one) for _ in range(ROUNDS))
        print(f"{WAIVERS:,} waivers cost {least:.0f} ms of CPU more than one; target: {TARGET_MS} ms.")
    return 0


def write(folder: Path, report: dict[str, Any], runs: int) -> None:
    folder.mkdir()
    draw = random.Random(runs)
    names = [host["name"] for host in report["hosts"]]
    for number in range(runs):
        found = {
            name: draw.choice(CHECKS)
            for place, name in enumerate(names)
            if draw.random() < (1 if place else 10) / ONE_IN
        }
        for host in report["hosts"]:
            host["status"] = "faulty" if host["name"] in found else "healthy"
        report["run"]["started"] = f"{BEGIN + timedelta(days=365 * number / runs):%Y-%m-%dT%H:%M:%SZ}"
        report["findings"] = [
            {"id": f"f{n}", "check": check, "status": "fail", "hosts": [name]}
            for n, (name, check) in enumerate(found.items(), 1)
        ]
        (folder / f"{number}.json").write_text(json.dumps(report))


def waived(waivers: int) -> str:
    """Of hosts that a run has, and of hosts that it does not have."""
    entries = (
        f"  - check: {CHECKS[n % len(CHECKS)]}\n    hosts: node{n // len(CHECKS) + 1}\n"
        f"    reason: waits for a part, ticket {n}\n    owner: ops@example.org\n    until: 2099-12-31\n"
        for n in range(waivers)
    )
    return f"waivers:\n{''.join(entries)}"


def reading(waivers: Path) -> float:
    """A whole run varies by more than this costs. What an earlier reading remembered is forgotten."""
    redact._remembered.cache_clear()
    began = time.process_time()
    with_waivers(ExamFlags(waivers=waivers), JobWishes())
    return time.process_time() - began


def spent(*words: str) -> Cost:
    command = [sys.executable, "-m", "doctor", *words]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 1, 3):
        raise SystemExit(f"{' '.join(command)} failed")
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)


if __name__ == "__main__":
    sys.exit(main())

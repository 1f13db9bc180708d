"""`python -m benchmarks.accept`: the collectives of `doctor accept` beside a bare torch script, in turns.

Both time all_reduce on as many ranks of this machine, over gloo on loopback; the slowest rank of each call
counts. Loopback is limited by the processor, so that rounds differ: the quickest call of each size is
compared, of each round and of all.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from benchmarks.smoke import _environment
from benchmarks.table import machine, rows

SIZES = (65536, 1 << 20, 4 << 20, 16 << 20)
CALLS = 20
BARE = """
import json, sys, time
import torch
import torch.distributed as dist
torch.set_num_threads(1)
dist.init_process_group("gloo")
for size in json.loads(sys.argv[1]):
    x, calls = torch.zeros(size // 4), []
    for _ in range(int(sys.argv[2]) + 2):
        began = time.perf_counter()
        dist.all_reduce(x)
        calls.append(time.perf_counter() - began)
    worst = torch.tensor(calls[2:])
    dist.all_reduce(worst, dist.ReduceOp.MAX)
    if dist.get_rank() == 0:
        print("timed", size, worst.min().item(), worst.median().item(), flush=True)
dist.destroy_process_group()
"""
TARGET = "within 10 %"
Times = Mapping[int, tuple[float, float]]
"""Size -> seconds of the quickest and of the median call."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accept", description=__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    print(machine(), end="\n\n", flush=True)
    taken: list[tuple[Times, Times]] = []
    with tempfile.TemporaryDirectory(prefix="bench-accept-") as folder:
        for _ in range(args.rounds):
            taken.append((bare(Path(folder), args.ranks), ours(Path(folder), args.ranks)))
            print(".", end="", flush=True)
    print("\n")
    print(rows("all_reduce, doctor accept beside bare torch", list(table(taken))))
    return 0


def bare(folder: Path, ranks: int) -> Times:
    script = folder / "bare.py"
    script.write_text(BARE)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    told = said([*launcher, str(script), json.dumps(SIZES), str(CALLS)], {0})
    lines = (line.split() for line in told.splitlines() if line.startswith("timed "))
    return {int(size): (float(least), float(middle)) for _, size, least, middle in lines}


def ours(folder: Path, ranks: int) -> Times:
    report = folder / "report.json"
    shape = ["--local", "--python", sys.executable, "--ranks-per-host", str(ranks), "--on-busy", "run"]
    said([sys.executable, "-m", "doctor", "accept", *shape, "--json", str(report)], {0, 3})
    timed = json.loads(report.read_bytes())["smoke"]["collectives"]
    return {
        each["bytes"]: (each["least_ms"] / 1e3, each["median_ms"] / 1e3)
        for each in timed
        if each["op"] == "all_reduce" and each["bytes"] in SIZES
    }


def said(argv: Sequence[str], codes: set[int]) -> str:
    done = subprocess.run(
        argv, env=_environment(sys.executable), capture_output=True, text=True, timeout=300, check=False
    )
    if done.returncode not in codes:
        raise SystemExit(f"{' '.join(argv)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout


def table(taken: Sequence[tuple[Times, Times]]) -> list[tuple[str, str, str]]:
    found = []
    for size in SIZES:
        pairs = [(one[size], other[size]) for one, other in taken if size in one and size in other]
        if pairs:
            quickest = min(own[0] for _, own in pairs) / min(theirs[0] for theirs, _ in pairs)
            ratios = [own[0] / theirs[0] for theirs, own in pairs]
            span = f"{min(ratios):.2f}-{max(ratios):.2f} in {len(pairs)} rounds"
            what = f"{size >> 10} KB: {1e3 * min(own[0] for _, own in pairs):.2f} ms ({span})"
            found += [
                (f"{what}, median of rounds", f"{median(ratios):.2f} ×", TARGET),
                (f"{size >> 10} KB: the quickest call of all rounds", f"{quickest:.2f} ×", TARGET),
            ]
    return found


if __name__ == "__main__":
    raise SystemExit(main())

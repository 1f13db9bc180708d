"""`python -m benchmarks.hang`: what `doctor hang` costs the job that it looks at, and how long it takes.

The peer is what people do by hand: `py-spy dump` of each rank, here and over `clush`. The job is a real
training over gloo; the ranks of the larger rows only sleep, as the ranks of a job that hangs do.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from statistics import median

from benchmarks.meter import Sample, measure
from benchmarks.table import columns, conditions
from tests.lab import Host, Lab, missing
from tests.support.injob import environment
from tests.trials.hang.training import TIMES

TRAINING = Path(__file__).parents[1] / "tests" / "trials" / "hang" / "training.py"
FOLDER = "/tmp/hang-benchmark"
PORT = 29711
PHASE = 10.0
"""Seconds of each phase, so that it holds hundreds of steps."""
SIZES = ((1, 4), (8, 64), (32, 32))
"""Hosts, ranks."""
SLEEPER = "import time; time.sleep(10_000)"
PYSPY = str(Path(sys.executable).with_name("py-spy"))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hang", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--hosts", type=int, default=max(hosts for hosts, _ in SIZES))
    args = parser.parse_args()
    if reason := missing() or (not Path(PYSPY).is_file() and "there is no py-spy"):
        print(f"No benchmark: {reason}.", file=sys.stderr)
        return 2
    with Lab(args.hosts) as lab:
        print(conditions(args.hosts), end="\n\n", flush=True)
        print(_disturbance(lab), end="\n\n", flush=True)
        rows = [_row(lab, hosts, ranks, args.rounds) for hosts, ranks in SIZES if hosts <= args.hosts]
    print(columns(["hosts", "ranks", "doctor hang", "without the 2 s", "clush py-spy dump", "ratio"], rows))
    return 0


def _disturbance(lab: Lab) -> str:
    """Steps of a job of four ranks on one host: alone, looked at by us, dumped by py-spy, and afterwards."""
    host = lab.hosts[0]
    ranks = _ranks(host, 4, [sys.executable, str(TRAINING)], MODE="ddp")
    try:
        times = Path(f"/proc/{host.pid}/root{FOLDER}/{TIMES}.0")
        _await(lambda: times.is_file() and times.read_text().count("\n") > 50)
        pids = [process.pid for process in ranks]
        phases: list[tuple[str, Callable[[], object]]] = [
            ("alone", lambda: time.sleep(0.5)),
            ("doctor hang --for 0.5, again and again", lambda: lab.doctor("hang", host.name, "--for", "0.5")),
            ("alone again", lambda: time.sleep(0.5)),
            ("py-spy dump of all ranks, as often", lambda: (_dump(pids), time.sleep(2.0))),
            ("afterwards", lambda: time.sleep(0.5)),
        ]
        spans = [_steps(times, do) for _, do in phases]
    finally:
        _end(ranks)
    base = median(spans[0])
    lines = [
        [
            name,
            str(len(steps)),
            f"{1000 * median(steps):.1f} ms",
            f"{median(steps) / base:.2f}",
            f"{1000 * sorted(steps)[int(0.99 * len(steps))]:.0f} ms",
        ]
        for (name, _), steps in zip(phases, spans, strict=True)
    ]
    return columns(["a job of 4 ranks", "steps", "median step", "of alone", "99 %"], lines)


def _steps(times: Path, do: Callable[[], object]) -> list[float]:
    before, end = times.read_text().count("\n"), time.monotonic() + PHASE
    while time.monotonic() < end:
        do()
    at = [float(line) for line in times.read_text().splitlines()[before:]]
    return [later - earlier for earlier, later in pairwise(at)]


def _dump(pids: Sequence[int]) -> None:
    dumps = [
        subprocess.Popen([PYSPY, "dump", "--json", "--pid", str(pid)], stdout=subprocess.DEVNULL)
        for pid in pids
    ]
    for dump in dumps:
        dump.wait(20)


def _row(lab: Lab, hosts: int, ranks: int, rounds: int) -> list[str]:
    each = ranks // hosts
    started = [
        rank
        for number, host in enumerate(lab.hosts[:hosts])
        for rank in _ranks(host, each, [sys.executable, "-c", SLEEPER], first=number * each, world=ranks)
    ]
    nodeset = f"node[1-{hosts}]" if hosts > 1 else "node1"
    by_hand = f"for p in $(pgrep -f 'time.sleep.10_000'); do {shlex.quote(PYSPY)} dump --pid $p; done"
    clush = ["clush", "-f", "64", "-o", f"-F {lab.ssh_config}", "-w", nodeset, by_hand]
    try:
        ours, theirs = [], []
        for _ in range(rounds):
            argv = lab.doctor_argv("hang", nodeset)
            ours.append(_timed(lab, argv, lab.hosts[:hosts]))
            if shutil.which("clush"):
                theirs.append(_timed(lab, clush, lab.hosts[:hosts]))
    finally:
        _end(started)
    own, hand = median(ours), median(theirs) if theirs else None
    bare = own - 2.0
    return [
        str(hosts),
        str(ranks),
        f"{own:.2f} s",
        f"{bare:.2f} s",
        f"{hand:.2f} s" if hand else "not installed",
        f"{own / hand:.2f}" if hand else "",
    ]


def _timed(lab: Lab, argv: Sequence[str], hosts: Sequence[Host]) -> float:
    sample: Sample = measure(lab, argv, hosts)
    if sample.rc not in (0, 1, 3):
        raise SystemExit(f"{' '.join(argv)} ended with {sample.rc}:\n{sample.output[-2000:]}")
    return sample.wall


def _ranks(
    host: Host, number: int, argv: Sequence[str], first: int = 0, world: int | None = None, **env: str
) -> list[subprocess.Popen[bytes]]:
    host.do(f"mkdir -p {FOLDER}; rm -f {FOLDER}/*")
    return [
        subprocess.Popen(
            host.enter(argv),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={
                **os.environ,
                **environment(FOLDER=FOLDER, **env),
                "RANK": str(first + rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": str(world or number),
                "MASTER_ADDR": host.address if world is None else "node1",
                "MASTER_PORT": str(PORT),
            },
        )
        for rank in range(number)
    ]


def _end(ranks: Sequence[subprocess.Popen[bytes]]) -> None:
    for rank in ranks:
        rank.kill()
    for rank in ranks:
        with suppress(subprocess.TimeoutExpired):
            rank.wait(10)


def _await(true: Callable[[], bool], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise SystemExit("the job did not begin to train")
        time.sleep(0.2)


if __name__ == "__main__":
    sys.exit(main())

"""`python -m benchmarks.hang`: what `doctor hang` costs the job that it looks at, and how long it takes.

The peer is what people do by hand: `py-spy dump` of each rank, here and over `clush`. The job is a real
training over gloo; the ranks of the larger rows only sleep, like the ranks of a hanging job. A command
that fails, misses a rank or leaves something on a host ends the benchmark.
"""

import argparse
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median

from benchmarks.meter import Sample, measure
from benchmarks.table import columns, conditions
from tests.lab import Host, Lab, missing
from tests.lab.machine import Process
from tests.lab.snapshot import Snapshot
from tests.support.injob import environment
from tests.trials.hang.training import TIMES

TRAINING = Path(__file__).parents[1] / "tests" / "trials" / "hang" / "training.py"
FOLDER = "/tmp/hang-benchmark"
PORT = 29711
PHASE = 10.0
"""Seconds of each phase, long enough for hundreds of steps."""
APART = 2.0
"""Seconds between the two looks."""
SIZES = ((1, 4), (8, 64), (32, 32))
"""Hosts, ranks."""
HEAD = (
    "doctor hang",
    f"without the {APART:g} s",
    "clush py-spy dump",
    "ratio",
    "CPU of the hosts",
    "by clush",
    "left",
)
SLEEPER = "import time; time.sleep(10_000)"
PYSPY = str(Path(sys.executable).with_name("py-spy"))
BY_HAND = (
    "rc=0; for p in $(pgrep -f '[t]ime.sleep.10_000'); do "
    f"{shlex.quote(PYSPY)} dump --pid $p || rc=1; done; exit $rc"
)
"""The brackets keep pgrep from finding the shell that runs this."""


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
    print(columns(["hosts, ranks", *HEAD], rows))
    return 0


def _disturbance(lab: Lab) -> str:
    """The steps of a job of four ranks on one host: undisturbed, during our looks, during py-spy dumps, and
    afterwards.
    """
    host = lab.hosts[0]
    times = Path(f"/proc/{host.pid}/root{FOLDER}/{TIMES}.0")
    host.do(f"mkdir -p {FOLDER}; rm -f {FOLDER}/*")
    with _ranks([host], 4, [sys.executable, str(TRAINING)], MODE="ddp") as ranks:
        _await(lambda: times.is_file() and times.read_text().count("\n") > 50)
        phases: list[tuple[str, Callable[[], object]]] = [
            ("alone", lambda: time.sleep(0.5)),
            ("doctor hang --for 0.5, again and again", lambda: _look(lab, host, "--for", "0.5")),
            ("alone again", lambda: time.sleep(0.5)),
            ("py-spy dump of all ranks, as often", lambda: _dump(ranks)),
            ("afterwards", lambda: time.sleep(0.5)),
        ]
        spans = [_steps(times, do) for _, do in phases]
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


def _look(lab: Lab, host: Host, *words: str) -> None:
    done = lab.doctor("hang", host.name, *words)
    if done.returncode != 0:
        raise SystemExit(
            f"doctor hang of a job that moves gave {done.returncode}:\n{done.stdout}{done.stderr}"
        )


def _dump(ranks: Sequence[Process]) -> None:
    """All ranks at once, from inside their host, because the process ids are valid there; then a pause, like
    that of `doctor hang`.
    """
    dumps = [
        subprocess.Popen(
            rank.host.enter([PYSPY, "dump", "--json", "--pid", str(rank.pid)]),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        for rank in ranks
    ]
    for dump in dumps:
        _, said = dump.communicate(timeout=20)
        if dump.returncode:
            raise SystemExit(f"py-spy dump gave {dump.returncode}: {said.decode(errors='replace').strip()}")
    time.sleep(2.0)


def _row(lab: Lab, number: int, ranks: int, rounds: int) -> list[str]:
    hosts = lab.hosts[:number]
    nodeset = f"node[1-{number}]" if number > 1 else "node1"
    ours = lab.doctor_argv("hang", nodeset, "--for", f"{APART:g}")
    clush = ["clush", "-S", "-f", "64", "-o", f"-F {lab.ssh_config}", "-w", nodeset, BY_HAND]
    bare = [host.snapshot() for host in hosts]
    own: list[Sample] = []
    hand: list[Sample] = []
    with _ranks(hosts, ranks // number, [sys.executable, "-c", SLEEPER]):
        _await(lambda: all(_asleep(host) == ranks // number for host in hosts))
        for _ in range(rounds):
            own.append(_timed(lab, ours, hosts, f"{ranks} ranks on {nodeset}", 1))
            if shutil.which("clush"):
                hand.append(_timed(lab, clush, hosts, ": Process ", ranks))
    _left(hosts, bare, "the ranks")
    mine = median(each.wall for each in own)
    theirs = median(each.wall for each in hand) if hand else None
    return [
        f"{number}, {ranks}",
        f"{mine:.2f} s",
        f"{mine - APART:.2f} s",
        f"{theirs:.2f} s" if theirs else "not installed",
        f"{mine / theirs:.1f}" if theirs else "",
        f"{median(each.hosts_cpu for each in own):.2f} s",
        f"{median(each.hosts_cpu for each in hand):.2f} s" if hand else "",
        "nothing",
    ]


def _timed(lab: Lab, argv: Sequence[str], hosts: Sequence[Host], says: str, often: int) -> Sample:
    """The output must contain `says` this many times: a command that did not see all ranks is not timed."""
    before = [host.snapshot() for host in hosts]
    sample: Sample = measure(lab, argv, hosts)
    good = (0,) if argv[0] == "clush" else (0, 1, 3)
    if sample.rc not in good or sample.output.count(says) != often:
        raise SystemExit(f"{' '.join(argv)} ended with {sample.rc}:\n{sample.output[-2000:]}")
    _left(hosts, before, argv[0])
    return sample


def _left(hosts: Sequence[Host], before: Sequence[Snapshot], who: str) -> None:
    """End with a message if there are processes, files or listeners that were not there before."""
    until = time.monotonic() + 5.0
    for host, was in zip(hosts, before, strict=True):
        while (left := host.leftovers(was)) and time.monotonic() < until:
            time.sleep(0.1)
        if left:
            raise SystemExit(f"{who} left on {host.name}: {left}")


def _asleep(host: Host) -> int:
    return sum(SLEEPER in process.command for process in host.snapshot().processes)


@contextmanager
def _ranks(hosts: Sequence[Host], each: int, argv: Sequence[str], **env: str) -> Iterator[list[Process]]:
    """`each` ranks on every host; they end when this does."""
    said = {
        **environment(FOLDER=FOLDER, **env),
        "WORLD_SIZE": str(each * len(hosts)),
        "MASTER_ADDR": hosts[0].address,
        "MASTER_PORT": str(PORT),
    }
    ranks: list[Process] = []
    try:
        for rank in range(each * len(hosts)):
            own = {**said, "RANK": str(rank), "LOCAL_RANK": str(rank % each)}
            words = [f"{name}={text}" for name, text in own.items()]
            ranks.append(hosts[rank // each].spawn(["env", *words, *argv]))
        yield ranks
    finally:
        for one in ranks:
            one.stop()


def _await(true: Callable[[], bool], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise SystemExit("the ranks did not begin to run")
        time.sleep(0.2)


if __name__ == "__main__":
    sys.exit(main())

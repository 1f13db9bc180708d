"""A command alone, and under `doctor run`: its start, its output through a pipe, its steps.

python -m benchmarks.run
"""

import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from statistics import median

from benchmarks.table import machine

ROUNDS = 5
MEGABYTES = 2000
LIMIT = 120
"""Seconds for one measurement."""
UNDER = (sys.executable, "-m", "doctor", "run", "-q", "--no-preflight", "--")
PRINT = ("dd", "if=/dev/zero", "bs=1M", f"count={MEGABYTES}", "status=none")
LINES = (sys.executable, "-c", "for n in range(1_000_000): print('step', n, 'loss', 1 / (n + 1))")
STEPS = (
    sys.executable,
    "-c",
    "import time\nbegan = time.perf_counter()\n"
    "for n in range(2000): sum(range(20000)); print('step', n, flush=True)\n"
    "import sys; print(time.perf_counter() - began, file=sys.stderr)",
)


def seconds(words: Sequence[str]) -> float:
    """From the start of a command to the end of its output, which goes through a pipe to a reader."""
    began = time.monotonic()
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        reader = subprocess.Popen(["dd", "of=/dev/null", "bs=1M", "status=none"], stdin=process.stdout)
        process.stdout.close()
        reader.wait(LIMIT)
        process.wait(LIMIT)
    return time.monotonic() - began


def own_seconds(words: Sequence[str]) -> float:
    """What the command itself measures."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT, check=True)
    return float(done.stderr.split()[-1])


def main() -> None:
    print(f"{machine()}\nMedians of {ROUNDS}.\n")
    print("| | alone | under `doctor run` | ratio |\n|---|---|---|---|")
    start = [(seconds(["true"]), seconds([*UNDER, "true"])) for _ in range(ROUNDS)]
    alone, under = _medians(start)
    print(f"| start and end of `true` | {alone:.2f} s | {under:.2f} s | +{under - alone:.2f} s |")
    for name, words in ((f"{MEGABYTES} MB through a pipe", PRINT), ("a million lines", LINES)):
        pairs = [(seconds(words), seconds([*UNDER, *words])) for _ in range(ROUNDS)]
        bare, whole = _medians(pairs)
        rest = whole - under
        print(f"| {name}, without the start | {bare:.2f} s | {rest:.2f} s | {bare / rest:.2f} |")
    steps = [(own_seconds(STEPS), own_seconds([*UNDER, *STEPS])) for _ in range(ROUNDS)]
    bare, whole = _medians(steps)
    print(f"| 2000 steps that print a line each | {bare:.2f} s | {whole:.2f} s | {bare / whole:.2f} |")
    print(f"\nMemory of doctor and its relay: at most {_memory():.0f} MB.")


def _medians(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return median(one for one, _ in pairs), median(other for _, other in pairs)


def _memory() -> float:
    """The largest of our children, in MB."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


if __name__ == "__main__":
    main()

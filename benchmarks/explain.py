"""`python -m benchmarks.explain`: how fast logs are searched for symptoms, beside `grep -F -f`.

Both search the same logs for the same literals: the healthy lines of a training over many ranks with a few
symptoms among them, a log of Megatron-LM, and one of a data loader. `grep` only counts lines; "which
symptoms" also shows which symptoms each line holds. `doctor explain` is the whole command with its start,
which also reads forms, times, ranks and losses, and judges them.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count, islice
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from doctor.logs.reading.sentences import SYMPTOM, Sentences
from doctor.logs.sentence import sentence
from doctor.logs.symptoms.load import load_symptoms
from doctor.logs.symptoms.match import Matcher

if TYPE_CHECKING:
    from benchmarks.meter import Timed

MEGABYTES = 60
PIECE = 1 << 20
BETWEEN = 1200
"""Healthy lines between two lines with a symptom."""
MIXED = "64 ranks, mixed"
SMALL = "step 1 loss 2.5\nRuntimeError: CUDA error: out of memory\n"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.explain", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--megabytes", type=int, default=MEGABYTES)
    parser.add_argument("--scan", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.scan:
        print(scan(args.scan))
        return 0
    from benchmarks.table import columns  # the lab behind it costs more to import than the scan itself

    if not shutil.which("grep"):
        print("No benchmark: there is no grep.", file=sys.stderr)
        return 2
    print(
        f"{args.megabytes} MB of each, {len(load_symptoms().symptoms)} symptoms, {len(literals())} literals\n"
    )
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory(prefix="doctor-explain-") as folder:
        words = Path(folder, "literals")
        words.write_text("".join(f"{literal}\n" for literal in literals()))
        for kind, lines in KINDS.items():
            log = Path(folder, "job.log")
            write(log, lines(random.Random(17)), args.megabytes)
            rows += measured(kind, log, words, args)
        log.write_text(SMALL)
        rows.append(_row("two lines: doctor explain", [run(_explain(log)) for _ in range(args.rounds)], 0, 0))
    head = ["", "time", "CPU", "rate by CPU", "CPU of grep", "peak memory", "lines found"]
    print(columns(head, rows))
    return 0


def measured(kind: str, log: Path, words: Path, args: argparse.Namespace) -> Iterator[list[str]]:
    """Each reads the same log, in turns, so that other work on the machine affects all of them."""
    contenders = {"grep -F -f": ["grep", "-c", "-F", "-f", str(words), str(log)]}
    if kind == MIXED:
        contenders["which symptoms"] = [sys.executable, "-m", "benchmarks.explain", "--scan", str(log)]
    contenders["doctor explain"] = _explain(log)
    taken: dict[str, list[Timed]] = {name: [] for name in contenders}
    for _ in range(args.rounds):
        for name, argv in contenders.items():
            taken[name].append(run(argv))
    base = median(each.cpu for each in taken["grep -F -f"])
    for name, runs in taken.items():
        yield _row(f"{kind}: {name}", runs, args.megabytes, base)


def _explain(log: Path) -> list[str]:
    return [sys.executable, "-m", "doctor", "explain", str(log)]


def _row(name: str, runs: Sequence[Timed], megabytes: int, base: float) -> list[str]:
    from benchmarks.table import MEGA

    wall, cpu = median(each.wall for each in runs), median(each.cpu for each in runs)
    return [
        name,
        f"{wall:.2f} s",
        f"{cpu:.2f} s",
        f"{megabytes / cpu:.0f} MB/s" if megabytes else "",
        f"{cpu / base:.1f}" if base else "",
        f"{max(each.peak for each in runs) / MEGA:.0f} MB",
        lines if (lines := runs[0].output.strip()).isdigit() else "",
    ]


def literals() -> list[str]:
    """The longest literal of each pattern: what a person would give to grep."""
    return sorted({max(each, key=len) for symptom in load_symptoms().symptoms for each in symptom.patterns})


def scan(log: Path) -> int:
    """How many lines hold a symptom."""
    matcher = Matcher(load_symptoms().symptoms)
    table = Sentences(matcher)
    found = 0
    rest = b""
    with log.open("rb") as file:
        while piece := file.read(PIECE):
            whole, _, rest = (rest + piece).rpartition(b"\n")
            found += _found(whole, matcher, table)
    return found + _found(rest, matcher, table)


def _found(text: bytes, matcher: Matcher, table: Sentences) -> int:
    sentences = sentence(text).split(b"\n")
    wanted = {words for words, mark in table.marks(set(sentences), text).items() if mark & SYMPTOM}
    if not wanted:
        return 0
    marked = [line for line, words in zip(text.split(b"\n"), sentences, strict=True) if words in wanted]
    return sum(bool(matcher.decide(line.decode("utf-8", "replace"), None)) for line in marked)


def run(argv: Sequence[str]) -> Timed:
    from benchmarks.meter import timed

    ran = timed(argv)
    if ran.rc not in (0, 1, 3):
        raise SystemExit(f"{' '.join(argv)} ended with {ran.rc}:\n{ran.output[-2000:]}")
    return ran


def write(log: Path, lines: Iterator[str], megabytes: int) -> None:
    """The same log on every machine."""
    size = 0
    with log.open("w", encoding="utf-8") as file:
        while size < megabytes * 1_000_000:
            block = "".join(islice(lines, 2000))
            size += len(block)
            file.write(block)


def mixed(chance: random.Random) -> Iterator[str]:
    """Healthy lines, with a symptom now and then."""
    examples = [text for each in load_symptoms().symptoms for text in each.examples if each.patterns]
    for number, line in enumerate(_healthy(chance), 1):
        yield line
        if not number % BETWEEN:
            yield f"{chance.choice(examples)}\n"


def megatron(chance: random.Random, ranks: int = 1) -> Iterator[str]:
    for step in count(1):
        clock = f"[2026-11-20 21:{step // 60 % 60:02}:{step % 60:02}]"
        for rank in range(ranks):
            front = f"[rank{rank}]: " if ranks > 1 else ""
            yield (
                f"{front} {clock} iteration {step:8d}/ 1000000 | consumed samples: {step * 512:12d} |"
                f" elapsed time per iteration (ms): {chance.uniform(400, 450):.1f} |"
                f" learning rate: 1.500000E-04 | global batch size:   512 |"
                f" lm loss: {2 + chance.random():.6E} | loss scale: 1.0 | grad norm: {chance.random():.3f} |"
                f" number of skipped iterations:   0 | number of nan iterations:   0 |\n"
            )


def loader(chance: random.Random) -> Iterator[str]:
    """Lines that hold nothing to look for."""
    for number in count():
        clock = f"2026-11-20 21:{number // 60 % 60:02}:{number % 60:02}"
        told = (
            f"worker {number % 16} prefetched shard {number * 7:08d} of dataset in {chance.randint(3, 99)} ms"
        )
        yield f"{clock} INFO data.loader: {told}, queue depth {chance.randint(0, 64)}\n"


def _healthy(chance: random.Random) -> Iterator[str]:
    """Four kinds of lines; the text of one in two hundred occurs only once."""
    step = 0
    while True:
        step += 1
        clock = f"2026-11-20 21:{step // 60 % 60:02}:{step % 60:02}"
        for rank in range(64):
            loss, ms = 2 + chance.random(), chance.randint(400, 600)
            yield f"[rank{rank}]: step {step} of 100000 loss {loss:.4f} tokens/s {ms * 37} mem 61.2 GiB\n"
            if not chance.randrange(4):
                place = f"node{rank // 8 + 1}:{38000 + rank}:{39000 + rank} [{rank % 8}]"
                peer = f"{rank}[{rank % 8}] -> {(rank + 1) % 64}[{(rank + 1) % 8}]"
                yield f"{place} NCCL INFO Channel {step % 32:02}/0 : {peer} via NET/IB/{rank % 4}/GDRDMA\n"
            if not chance.randrange(4):
                told = f"Epoch:[  1/  2], step:[{step:5}/10000], loss: {loss:.3f}, per_step_time: {ms}ms"
                yield f"{clock},{ms} - mindformers[core/callback.py:316] - INFO - {{ {told} }}\n"
            if not chance.randrange(130):
                shard = f"{chance.getrandbits(64):016x}"
                yield f"INFO: read shard data/{shard}.bin in {ms} ms, cache {chance.getrandbits(32):08x}\n"


KINDS: Mapping[str, Callable[[random.Random], Iterator[str]]] = {
    MIXED: mixed,
    "Megatron-LM, one rank": megatron,
    "Megatron-LM, 64 ranks": partial(megatron, ranks=64),
    "nothing matches": loader,
}

if __name__ == "__main__":
    sys.exit(main())

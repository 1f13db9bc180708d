"""`python -m benchmarks.explain`: how fast logs are searched for symptoms, beside `grep -F -f`.

Both search one log of some 200 MB for the same literals: healthy lines of a training over many ranks with a
few symptoms among them. `grep` only prints lines; ours also says which symptom each holds. The last row is
the whole command, which reads every line for its form, its time, its rank and its loss.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.table import MEGA, columns
from doctor.logs.reading.sentences import SYMPTOM, Sentences
from doctor.logs.sentence import sentence
from doctor.logs.symptoms.load import load_symptoms
from doctor.logs.symptoms.match import Matcher

MEGABYTES = 200
PIECE = 1 << 20
SYMPTOMS = 2000
"""Lines with a symptom in the whole log."""


@dataclass(frozen=True, slots=True)
class Run:
    wall: float
    cpu: float
    peak: int
    """Bytes of the process, with its interpreter."""
    lines: str


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.explain", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--megabytes", type=int, default=MEGABYTES)
    parser.add_argument("--bare", action="store_true", help="without the whole command")
    parser.add_argument("--scan", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.scan:
        print(scan(args.scan))
        return 0
    if not shutil.which("grep"):
        print("No benchmark: there is no grep.", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="doctor-explain-") as folder:
        log, words = Path(folder, "job.log"), Path(folder, "literals")
        write(log, args.megabytes)
        words.write_text("".join(f"{literal}\n" for literal in literals()))
        print(f"{args.megabytes} MB, {len(load_symptoms().symptoms)} symptoms, {len(literals())} literals\n")
        contenders = {
            "grep -F -f": ["grep", "-c", "-F", "-f", str(words), str(log)],
            "which lines, and which symptoms": [
                sys.executable,
                "-m",
                "benchmarks.explain",
                "--scan",
                str(log),
            ],
            "doctor explain": [sys.executable, "-m", "doctor", "explain", str(log)],
        }
        if args.bare:
            del contenders["doctor explain"]
        taken = {name: [run(argv) for _ in range(args.rounds)] for name, argv in contenders.items()}
    base = median(each.cpu for each in taken["grep -F -f"])
    rows = []
    for name, runs in taken.items():
        wall, cpu = median(each.wall for each in runs), median(each.cpu for each in runs)
        peak = max(each.peak for each in runs) / MEGA
        rate = f"{args.megabytes / cpu:.0f} MB/s"
        rows.append(
            [
                name,
                f"{wall:.2f} s",
                f"{cpu:.2f} s",
                rate,
                f"{cpu / base:.1f}",
                f"{peak:.0f} MB",
                runs[0].lines,
            ]
        )
    print(columns(["", "time", "CPU", "rate by CPU", "CPU of grep", "peak memory", "lines found"], rows))
    return 0


def literals() -> list[str]:
    """The longest one of every pattern: what a person would give to grep."""
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


def run(argv: Sequence[str]) -> Run:
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        began = time.monotonic()
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(status)  # reaped here, not by Popen
        output.seek(0)
        text = output.read()
    if process.returncode not in (0, 1, 3):
        raise SystemExit(f"{' '.join(argv)} ended with {process.returncode}:\n{text[-2000:]}")
    return Run(
        wall,
        usage.ru_utime + usage.ru_stime,
        usage.ru_maxrss * 1024,
        text.strip() if text.strip().isdigit() else "",
    )


def write(log: Path, megabytes: int) -> None:
    """The same log on every machine."""
    chance = random.Random(17)
    examples = [text for each in load_symptoms().symptoms for text in each.examples if each.patterns]
    healthy = _healthy(chance)
    size = 0
    between = megabytes * 1_000_000 // SYMPTOMS
    due = between
    with log.open("w", encoding="utf-8") as file:
        while size < megabytes * 1_000_000:
            block = "".join(next(healthy) for _ in range(200))
            while size + len(block) > due:
                block += f"{chance.choice(examples)}\n"
                due += between
            size += len(block)
            file.write(block)


def _healthy(chance: random.Random) -> Iterator[str]:
    """Four kinds of lines; of one in two hundred the text is never seen again."""
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


if __name__ == "__main__":
    sys.exit(main())

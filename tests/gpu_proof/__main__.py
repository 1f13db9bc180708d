"""`python -m tests.gpu_proof`: exit code 0 if every attempt ended as expected, 1 if not, 3 if something is
missing.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from doctor.recording import load
from doctor.smoke.inject import KINDS
from tests.gpu_proof.attempts import (
    Attempt,
    examined,
    fits,
    healthy,
    heard,
    injected,
    left_out,
    place_of,
    shape_of,
    shared,
    too_few,
)
from tests.gpu_proof.machine import Missing, look
from tests.gpu_proof.page import page
from tests.trials.outcome import Ran

LIMIT = 900.0
"""The time limit in seconds for one run; over nccl, a run ends by itself after 600."""
HOST_OF_ITS_OWN = """
import os

os.register_at_fork(after_in_child=lambda: os.environ.update(NCCL_HOSTID=f"process-{os.getpid()}"))
"""
"""sitecustomize.py of the ranks: NCCL takes each for one of another host, and lets several use one GPU."""


def main() -> int:
    args = _arguments()
    try:
        machine = look(args.python, args.backend)
    except Missing as missing:
        print(f"No proof: {missing}.", file=sys.stderr)
        return 3
    date = time.strftime("%Y-%m-%d", time.gmtime())
    attempts: list[Attempt] = []
    with tempfile.TemporaryDirectory(prefix="gpu-proof-") as folder:
        doctor = Doctor(machine.python, args.backend, Path(folder), tuple(shlex.split(args.options)))
        if args.ranks_per_gpu > 1:
            (Path(folder) / "sitecustomize.py").write_text(HOST_OF_ITS_OWN)
            ranks = args.ranks_per_gpu * max(1, len(machine.gpus))
            sharing = ("--ranks-per-host", str(ranks), "--skip", "gpu-missing,launch-devices")
            doctor = replace(doctor, options=(*sharing, *doctor.options))
        for attempt in prove(doctor, args.out.with_suffix(".json"), args.faults):
            attempts.append(attempt)
            args.out.write_text(
                page(machine, args.backend, attempts, date)
            )  # output that is cut short is shown up to this length
            print(f"{attempt.tried}: {attempt.found}", file=sys.stderr, flush=True)
    return 0 if all(attempt.right is not False for attempt in attempts) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.gpu_proof", description=__doc__)
    parser.add_argument("--python", default="python3", help="the interpreter of the ranks")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("gpu-proof.md"),
        help="the page; beside it .json, the recording",
    )
    parser.add_argument("--backend", choices=("nccl", "gloo"), default="nccl")
    parser.add_argument("--ranks-per-gpu", type=int, default=1, help="share each GPU: NCCL_HOSTID by rank")
    parser.add_argument("--options", default="", help="more of doctor's options: '--plan dp=2,tp=2'")
    words = [*KINDS, *(f"{name}/{of}" for name, kind in KINDS.items() for of in kind.groups.split(",") if of)]
    parser.add_argument(
        *("--faults",),
        nargs="*",
        choices=words,
        default=tuple(KINDS),
        metavar="KIND[/GROUP]",
        help="the faults, each of the usual group or of another one",
    )
    return parser.parse_args()


@dataclass(frozen=True, slots=True)
class Doctor:
    """`doctor` on this machine."""

    python: str
    backend: str
    folder: Path
    options: tuple[str, ...] = ()

    def run(self, command: str, *args: str) -> Ran:
        report = self.folder / "report.json"
        report.unlink(missing_ok=True)
        where = ("--local", "--backend", self.backend, "--python", self.python, "--json", str(report))
        # Where HOST_OF_ITS_OWN was written, its ranks find it.
        paths = os.pathsep.join(filter(None, (str(self.folder), os.environ.get("PYTHONPATH"))))
        began = time.monotonic()
        try:
            done = subprocess.run(
                [sys.executable, "-m", "doctor", command, *where, *self.options, *args],
                env={**os.environ, "PYTHONPATH": paths},
                capture_output=True,
                text=True,
                check=False,
                timeout=LIMIT,
            )
            code, errors = done.returncode, done.stderr
        except subprocess.TimeoutExpired:
            code, errors = 124, f"it did not end within {LIMIT:.0f} s"
        seconds = time.monotonic() - began
        return Ran(code, json.loads(report.read_bytes()) if report.exists() else None, errors, seconds)


def prove(doctor: Doctor, recording: Path, faults: Sequence[str]) -> Iterator[Attempt]:
    """The recording holds the examination and, if no check failed, the smoke run after it."""
    on_gpus = doctor.backend != "gloo"
    yield examined(doctor.run("preflight", "--save", str(recording)), on_gpus=on_gpus)
    ran = doctor.run("smoke")
    first = healthy(ran)
    yield first
    if not first.right:
        yield from (left_out(kind, "the run without a fault did not pass") for kind in faults)
        return
    shape = shape_of(ran)
    if on_gpus and shape.world > 1 and recording.exists():
        yield heard(load(recording).smoke)
    if on_gpus and not doctor.options:
        yield shared(doctor.run("smoke", "--ranks-per-host", str(2 * shape.world)))
    for kind in faults:
        if fits(kind, shape):
            yield injected(kind, shape, doctor.run("smoke", "--inject", place_of(kind, shape)))
        else:
            yield left_out(kind, too_few(kind))


if __name__ == "__main__":
    sys.exit(main())

"""One trial: a training of two ranks under `doctor run`, with a fault at a drawn rank and step."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.around import await_true, relays, started
from tests.support.commands import DOCTOR
from tests.support.paths import ROOT
from tests.trials.outcome import Outcome, sentence, trouble

JOB = ROOT / "tests/support/around_job.py"
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(JOB))
STEPS, PATIENCE = 12, 300.0


@dataclass(frozen=True, slots=True)
class AroundKind:
    """`code` is that of the whole. `names`: the victim is to be named, and nobody else."""

    fault: str = ""
    options: tuple[str, ...] = ()
    code: int = 0
    names: bool = False
    steps: int = STEPS


KINDS: Mapping[str, AroundKind] = {
    "healthy": AroundKind(),
    "killed": AroundKind("kill", code=1, names=True),
    "exception": AroundKind("raise", code=1, names=True),
    "hangs": AroundKind("sleep", ("--stall", "3", "--on-hang", "end"), code=75, names=True),
    "NaN": AroundKind("nan", ("--on-loss", "end"), code=75, steps=100_000),
    "interrupted": AroundKind(code=1, steps=100_000),
    "doctor killed": AroundKind(code=-signal.SIGKILL, steps=40),
}


def trial(name: str, number: int) -> Outcome:
    kind, draw = KINDS[name], random.Random(f"{name} {number}")
    victim, at, moment = draw.randrange(2), draw.randrange(2, 10), draw.uniform(0.3, 8.0)
    with tempfile.TemporaryDirectory(prefix="around-trial-") as folder:
        return _tried(Path(folder), name, number, kind, victim, at, moment)


def _tried(
    folder: Path, name: str, number: int, kind: AroundKind, victim: int, at: int, moment: float
) -> Outcome:
    mark, began, runs = f"mark-{uuid.uuid4()}", time.monotonic(), True
    told = {"FAULT": kind.fault, "VICTIM": str(victim), "AT": str(at), "STEPS": str(kind.steps)}
    env = {**os.environ, **told, "MARK": mark, "OMP_NUM_THREADS": "1", "TMPDIR": str(folder)}
    words = [*DOCTOR, "run", "--no-preflight", *kind.options, "--json", "run.json", "--", *TORCHRUN]
    out, err = folder / "out", folder / "err"
    with (
        open(out, "wb") as stdout,
        open(err, "wb") as stderr,
        started(words, cwd=folder, env=env, stdout=stdout, stderr=stderr) as doctor,
    ):
        if name == "interrupted":
            await_true(lambda: b"step 3 " in out.read_bytes(), "a step")
            doctor.send_signal(signal.SIGINT)
        if name == "doctor killed":
            time.sleep(moment)
            runs = any(each != doctor.pid and _is_job(each) for each in relays(mark))
            doctor.kill()
        code = doctor.wait(PATIENCE)
        left = _left(mark)
    report = _report(folder / "run.json")
    found = trouble(report) if report else []
    accused = {each["rank"] for each in found if each["because"] is None and each["status"] == "fail"}
    same = _equal(out.read_text(), kind, at) or not (runs or out.stat().st_size)  # it had not begun
    right = same and not left and not list(folder.glob("doctor-hosts-*"))
    right = right and (report is not None) is (name != "doctor killed")
    expected = {kind.code, -signal.SIGINT} if name == "interrupted" else {kind.code}
    says_nan = name != "NaN" or (
        report is not None and "NaN" in str(report["around"]["attempts"][0]["losses"])
    )
    return Outcome(
        fault=name,
        number=number,
        place=f"rank {victim} step {at}" if kind.fault else f"{moment:.1f} s",
        detected=right and code in expected and says_nan,
        named=not kind.names or victim in accused,
        alone=accused <= ({victim} if kind.names else {None, 0} if name == "NaN" else set()),
        latency=None,
        seconds=time.monotonic() - began,
        code=code,
        said=tuple(map(sentence, found)),
    )


def _is_job(pid: int) -> bool:
    """Whether it is the command, and not doctor with its words."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"torch.distributed.run" in words[:3]


def _left(mark: str) -> list[int]:
    """The processes that are left when they should have ended."""
    until = time.monotonic() + PATIENCE
    while (left := relays(mark)) and time.monotonic() < until:
        time.sleep(0.1)
    return left


def _report(path: Path) -> Mapping[str, Any] | None:
    return json.loads(path.read_text()) if path.exists() else None


def _equal(text: str, kind: AroundKind, at: int) -> bool:
    """Whether the output is what the program prints, byte for byte: all of it, or until its fault."""
    lost = kind.fault == "nan"
    last = at if kind.fault in ("kill", "raise", "sleep") else kind.steps
    open_end = kind.steps > 1000
    lines = (
        f"step {n} loss {float('nan') if lost and n >= at else 4 / (n + 1):.4f}\n"
        for n in range(min(last, 5000))
    )
    whole = "".join(lines)
    return whole.startswith(text) and bool(text) if open_end else text == whole

"""One trial on this machine: two ranks under `doctor run`, with a fault at a drawn rank and step."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.support.around import relays, started
from tests.support.commands import DOCTOR
from tests.support.injob import await_true
from tests.support.paths import ROOT
from tests.trials.around.kinds import Draw
from tests.trials.around.seen import PATIENCE, Seen, left, parsed

JOB = (sys.executable, str(ROOT / "tests/support/around_job.py"))
LOOP = """
export WORLD_SIZE=2
pids=
trap 'kill $pids; exit 130' INT TERM
for RANK in 0 1; do export RANK; "$@" & pids="$pids $!"; done
code=0
for pid in $pids; do wait $pid || code=1; done
exit $code
"""
MPIRUN = ("mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2")

LAUNCHERS: Mapping[str, Callable[[], tuple[str, ...]]] = {
    "torchrun": lambda: (
        *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", JOB[1]),
    ),
    "mpirun": lambda: (*MPIRUN, *JOB),
    "loop": lambda: ("sh", "-c", LOOP, "loop", *JOB),
}


def seen_here(draw: Draw) -> Seen:
    with tempfile.TemporaryDirectory(prefix="around-trial-") as folder:
        return _seen(Path(folder), draw)


def _seen(folder: Path, draw: Draw) -> Seen:
    mark, runs, kind = f"mark-{uuid.uuid4()}", True, draw.kind
    own = {"MARK": mark, "TMPDIR": str(folder), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(draw.port)}
    env = {**os.environ, **draw.environment, **own}
    words = [*DOCTOR, "run", "--no-preflight", *kind.options, "--json", "run.json", "--"]
    out, err = folder / "out", folder / "err"
    with (
        open(out, "wb") as stdout,
        open(err, "wb") as stderr,
        started(
            [*words, *LAUNCHERS[draw.launcher]()], cwd=folder, env=env, stdout=stdout, stderr=stderr
        ) as doctor,
    ):
        if kind.ends == "interrupted":
            await_true(lambda: b"step 3 " in out.read_bytes(), err.read_text)
            doctor.send_signal(signal.SIGINT)
        if kind.ends == "kill":
            time.sleep(draw.moment)
            runs = any(each != doctor.pid and _is_job(each) for each in relays(mark))
            doctor.kill()
        code = doctor.wait(PATIENCE)
        still = left(mark) + len(list(folder.glob("doctor-hosts-*")))
    report = folder / "run.json"
    return Seen(out.read_text(), code, parsed(report.read_text()) if report.exists() else None, still, runs)


def _is_job(pid: int) -> bool:
    """Whether it is the command, and not doctor with its words."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"doctor" not in words[:4] and b"doctor.around.relay" not in b" ".join(words[:6])

"""One trial on this machine: two ranks under `doctor run`, with a fault at a drawn rank and step."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from tests.support.cases import from_cases
from tests.support.command import relays, started
from tests.support.commands import DOCTOR
from tests.support.injob import await_true
from tests.support.paths import ROOT
from tests.trials.command.kinds import Draw
from tests.trials.command.seen import PATIENCE, Seen, left, parsed

JOB = (sys.executable, str(ROOT / "tests/support/command_job.py"))
LOOP = from_cases(__file__, "LOOP", str)
SMALL_SHM = ("unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=32m shm /dev/shm; exec "$@"', "sh")
MEMORY = Path("/sys/fs/cgroup/memory")
FRAMEWORKS = str(ROOT / ".venv-frameworks/bin")
"""What `scripts/hang-frameworks` makes."""
LAUNCHERS = from_cases(__file__, "LAUNCHERS", dict[str, str])
"""The words of each."""


def words_of(launcher: str, port: int) -> list[str]:
    if launcher == "loop":
        return ["sh", "-c", LOOP, "loop", *JOB]
    words = LAUNCHERS[launcher].format(python=JOB[0], job=JOB[1], frameworks=FRAMEWORKS, port=port)
    return words.split()


def seen_here(draw: Draw) -> Seen:
    with tempfile.TemporaryDirectory(prefix="command-trial-") as folder:
        return _seen(Path(folder), draw)


def _seen(folder: Path, draw: Draw) -> Seen:
    mark, runs, kind = f"mark-{uuid.uuid4()}", True, draw.kind
    own = {"MARK": mark, "TMPDIR": str(folder), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(draw.port)}
    env = {**os.environ, **draw.environment, **own}
    words = [*DOCTOR, "run", "--no-preflight", *kind.options, "--json", "run.json", "--"]
    words = [*(SMALL_SHM if kind.fault == "shm" else ()), *words, *words_of(draw.launcher, draw.port)]
    out, err = folder / "out", folder / "err"
    with (
        _written(out, draw.by_pipe) as stdout,
        open(err, "wb") as stderr,
        started(words, cwd=folder, env=env, stdout=stdout, stderr=stderr) as doctor,
    ):
        os.close(stdout)
        if kind.ends == "interrupted":
            await_true(lambda: b"step 3 " in out.read_bytes(), err.read_text)
            if draw.typed:
                os.killpg(doctor.pid, signal.SIGINT)
            else:
                doctor.send_signal(signal.SIGINT)
        if kind.ends == "kill":
            time.sleep(draw.moment)
            runs = any(each != doctor.pid and _is_job(each) for each in relays(mark))
            doctor.kill()
        code = doctor.wait(PATIENCE)
        still = left(mark) + len(list(folder.glob("doctor-hosts-*")))
    for group in MEMORY.glob("around-*"):
        with contextlib.suppress(OSError):  # of another trial
            group.rmdir()
    report = folder / "run.json"
    said = parsed(report.read_text()) if report.exists() else None
    return Seen(out.read_text(), code, said, still, runs, err.read_text())


@contextlib.contextmanager
def _written(path: Path, by_pipe: bool) -> Iterator[int]:
    """A stdout that ends up in the file. Whoever gets it closes it."""
    with open(path, "wb") as file:
        if not by_pipe:
            yield os.dup(file.fileno())
            return
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=file) as cat:
            assert cat.stdin is not None
            yield os.dup(cat.stdin.fileno())


def _is_job(pid: int) -> bool:
    """Whether it is the command, and not doctor with its words."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"doctor" not in words[:4] and b"doctor.run.relay" not in b" ".join(words[:6])

"""`doctor smoke` on this machine, with an interpreter of the test's."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.support.paths import ROOT
from tests.trials.outcome import Ran


def smoke(
    folder: Path, *words: str, python: str, ranks: int = 4, limit: float = 240, command: str = "smoke"
) -> Ran:
    """`doctor COMMAND` on this machine. It and all that it started are killed in the end."""
    file, began = folder / "report.json", time.monotonic()
    asked = [*words, "--local", "--ranks-per-host", str(ranks), "--python", python, "--json", str(file)]
    with subprocess.Popen(
        [sys.executable, "-m", "doctor", command, *asked],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as run:
        try:
            said, errors = run.communicate(timeout=limit)
        finally:
            end(run)
    report = json.loads(file.read_bytes()) if file.exists() else None
    assert "Traceback" not in said + errors
    return Ran(run.returncode, report, said + errors, time.monotonic() - began)


def end(run: subprocess.Popen[Any]) -> None:
    """Kill all that it started: msrun puts each of its processes into a session of its own."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    tree = [run.pid]
    for pid in tree:
        tree += [child for child, parent in parents.items() if parent == pid]
    for pid in tree:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    with suppress(ProcessLookupError):
        os.killpg(run.pid, signal.SIGKILL)

"""The kernel kills processes for lack of memory: those of other programs are not told as the command's."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import ran
from tests.support.command_job import MEMORY
from tests.support.commands import DOCTOR

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.access(MEMORY, os.W_OK), reason="needs root and control groups of version 1"),
]
CROWDED = f"""
import os, pathlib, time
time.sleep(2)
group = pathlib.Path("{MEMORY}", f"around-{{time.time_ns()}}")
group.mkdir()
(group / "memory.limit_in_bytes").write_text(str(16 << 20))
(group / "cgroup.procs").write_text(str(os.getpid()))
kept = []
while True:
    kept.append(bytearray(b"x" * (1 << 20)))
"""


def said(folder: Path, *words: str) -> str:
    run = ran([*DOCTOR, "run", "--no-preflight", "--", *words], cwd=folder)
    for group in MEMORY.glob("around-*"):
        group.rmdir()
    assert run.code == 1
    return run.err.decode()


def test_another_program_that_is_killed_meanwhile_is_not_told(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", CROWDED]) as other:
        told = said(tmp_path, "sh", "-c", "sleep 4; exit 1")
    assert other.returncode == -signal.SIGKILL
    assert "oom-kill" not in told

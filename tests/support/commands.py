"""The command line, called as a person calls it."""

import os
import pty
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tests.lab.warm import WARM, suits

DOCTOR = (sys.executable, "-m", "doctor")
ALONE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--")
"""Runs a program that sees no process of this machine but those that it starts. Needs root."""


def doctor(
    *arguments: str, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    if suits(env):
        return WARM.run(arguments, env=environment(env), cwd=cwd or Path.cwd(), timeout=60)
    return subprocess.run(
        [*DOCTOR, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=cwd,
        env=environment(env),
        check=False,
    )


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    return {**os.environ, "COLUMNS": "100", **(more or {})}


def on_terminal(arguments: Sequence[str], env: Mapping[str, str]) -> str:
    """What doctor prints on a terminal of its own."""
    ours, theirs = pty.openpty()
    shown = bytearray()
    with subprocess.Popen([*DOCTOR, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=env):
        os.close(theirs)
        with suppress(OSError):  # the last process has closed it
            while piece := os.read(ours, 65536):
                shown += piece
    os.close(ours)
    return shown.decode()

"""`doctor run`, and the same command without it."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.commands import DOCTOR

SECONDS = 120
"""The longest that a test waits for anything."""
AT_ONCE = (*DOCTOR, "run", "--no-preflight", "-q", "--")
PYTHON = sys.executable


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    out: bytes
    err: bytes


@contextlib.contextmanager
def started(words: Sequence[str], **more: object) -> Iterator[subprocess.Popen[bytes]]:
    """The process, in a session of its own that is ended with the test."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL, **more}
    process = subprocess.Popen(words, start_new_session=True, **options)  # type: ignore[call-overload]
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(SECONDS)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def ran(words: Sequence[str], given: bytes | None = None, seconds: float = SECONDS, **more: object) -> Ended:
    stdin = subprocess.DEVNULL if given is None else subprocess.PIPE
    with started(words, **{"stdin": stdin, **more}) as process:
        out, err = process.communicate(given, seconds)
        return Ended(process.returncode, out or b"", err or b"")


def both(words: Sequence[str], given: bytes | None = None, **more: Any) -> tuple[Ended, Ended]:
    """The command alone, and under `doctor run`."""
    return ran(words, given, **more), ran([*AT_ONCE, *words], given, **more)


def ready(process: subprocess.Popen[bytes]) -> None:
    """Wait until it has printed that it is ready."""
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"


def await_true(holds: Callable[[], object], what: str) -> None:
    until = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < until, f"{what} did not come"
        time.sleep(0.02)


def await_text(path: Path, text: str) -> None:
    await_true(lambda: path.exists() and text in path.read_text(errors="replace"), f"{text!r} in {path.name}")


def relays(word: str) -> list[int]:
    """The PIDs of all processes whose environment has the word."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if word.encode() in (folder / "environ").read_bytes() and (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return found

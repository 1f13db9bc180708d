"""Copies of the tree, in which sources are changed and tests run; nothing of them is left."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

import psutil

from tests.mutate import calls

MEMORY_KIB = 8 << 20
"""What a changed loop may fill."""
TEST_SECONDS = 60
OPTIONS = ("-q", f"--timeout={TEST_SECONDS}", "--hypothesis-seed=0", "--hypothesis-profile=quick")
LIMITED = ("sh", "-c", f'ulimit -v {MEMORY_KIB}; exec "$0" "$@"')
QUICK = ("-m", "not slow")
MAP_SECONDS = 3600
PASSED = (0, 5)
"""Exit codes of pytest; 5: there was no test."""


class Stopped(Exception):
    """The user ended the run."""


@dataclass(frozen=True, slots=True)
class Result:
    passed: bool
    failed: tuple[str, ...]
    """Tests; none if pytest itself ended, or did not end."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A copy, and a folder for what its tests leave."""

    root: Path
    scratch: Path
    stopped: Event = field(default_factory=Event)

    def run(self, args: Sequence[str], limit: float) -> Result:
        """The first test that fails ends it."""
        if self._ended(["-x", *args], limit) in PASSED:
            return Result(True, ())
        failed = self.scratch / "cache/v/cache/lastfailed"
        return Result(False, tuple(json.loads(failed.read_text())) if failed.exists() else ())

    def calls(self, tests: Sequence[str]) -> calls.Calls:
        """What these tests call."""
        into = self.root.with_name(f"{self.root.name}.json")
        self._ended(["-p", calls.__name__, *QUICK, *tests], MAP_SECONDS, {calls.INTO: str(into)})
        found: calls.Calls = json.loads(into.read_text())
        return found

    def _ended(self, args: Sequence[str], limit: float, more: Mapping[str, str] | None = None) -> int | None:
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir()
        cache = ("-o", f"cache_dir={self.scratch / 'cache'}")
        command = (*LIMITED, sys.executable, "-m", "pytest", *OPTIONS, *cache, *args)
        env = {**os.environ, "PYTHONPATH": str(self.root), "TMPDIR": str(self.scratch), **(more or {})}
        quiet = subprocess.DEVNULL
        with subprocess.Popen(
            command, cwd=self.root, env=env, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True
        ) as ran:  # a change may end the group of its process
            try:
                return self._wait(ran, time.monotonic() + limit)
            finally:
                if ran.poll() is None:
                    _kill(ran.pid)

    def _wait(self, ran: subprocess.Popen[bytes], end: float) -> int | None:
        while ran.poll() is None and time.monotonic() < end:
            if self.stopped.wait(0.1):
                raise Stopped
        return ran.returncode


def copied(source: Path, into: Path, stopped: Event) -> Tree:
    """The files that git knows, or would take."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=source, stdout=subprocess.PIPE, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        if (source / name).exists():
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source / name, into / name, follow_symlinks=False)
    return Tree(into, into.with_name(f"{into.name}t"), stopped)


def _kill(pid: int) -> None:
    family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    for process in family:
        with suppress(psutil.NoSuchProcess):
            process.kill()

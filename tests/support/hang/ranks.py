"""Ranks of job.py on this machine, started and ended as a launcher does."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from tests.support.injob import free_port

JOB = Path(__file__).with_name("job.py")
PATIENCE = 90.0


@dataclass(slots=True)
class RunningJob:
    folder: Path
    world: int
    port: int = field(default_factory=free_port)
    ranks: list[subprocess.Popen[bytes]] = field(default_factory=list)
    become: tuple[str, ...] = ()
    """The command that runs them as another user."""
    script: Path = JOB

    @property
    def pids(self) -> list[int]:
        return [rank.pid for rank in self.ranks]

    def start(self, **more: str) -> None:
        os.mkfifo(self.folder / "fifo")
        for rank in range(self.world):
            env = {
                "PATH": os.defpath,
                "RANK": str(rank),
                "WORLD_SIZE": str(self.world),
                "LOCAL_RANK": str(rank),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(self.port),
                "FOLDER": str(self.folder),
                "OMP_NUM_THREADS": "1",
                "GLOO_SOCKET_IFNAME": "lo",
                **more,
            }
            with (self.folder / f"said.{rank}").open("wb") as said:
                argv = [*self.become, sys.executable, str(self.script), "--api-key", "swordfish-swordfish"]
                self.ranks.append(subprocess.Popen(argv, stdout=said, stderr=said, env=env))

    def step(self, rank: int, of: str = "step") -> int:
        with suppress(OSError, ValueError):
            return int((self.folder / f"{of}.{rank}").read_text())
        return -1

    def until(self, true: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not true():
            said = [(self.folder / f"said.{rank}").read_text() for rank in range(self.world)]
            assert time.monotonic() < end, said
            assert all(rank.poll() is None for rank in self.ranks), said
            time.sleep(0.05)

    def runs(self) -> None:
        """Wait until every rank has made some steps."""
        self.until(lambda: all(self.step(rank) >= 3 for rank in range(self.world)))

    def hangs(self, victim: int = 1) -> None:
        """Wait until the fault has begun and no rank moves any more."""
        self.until((self.folder / f"hit.{victim}").exists)
        before: list[int] = []
        while before != (before := [self.step(rank) for rank in range(self.world)]):
            time.sleep(0.5)

    def close(self) -> None:
        below = []
        for rank in self.ranks:
            with suppress(psutil.NoSuchProcess):
                below += psutil.Process(rank.pid).children(recursive=True)
        for process in below:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        for rank in self.ranks:
            rank.kill()
            rank.wait()


@pytest.fixture
def make_job(tmp_path: Path) -> Iterator[Callable[..., RunningJob]]:
    """Start ranks, with the same variables for all of them."""
    made: list[RunningJob] = []

    def make(world: int = 3, script: Path = JOB, **more: str) -> RunningJob:
        made.append(RunningJob(tmp_path, world, script=script))
        made[-1].start(**more)
        return made[-1]

    yield make
    for job in made:
        job.close()

"""A training of torchrun over hosts of the lab, whose fault is changed while it runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.lab import Host
from tests.support.injob import Job, environment, torchrun_argv
from tests.support.slow.ranks import FEED, JOB, Step, truth

PATIENCE = 120.0
FOLDER = "/tmp/slow-job"


class LabJob:
    def __init__(self, hosts: Sequence[Host], job: Job, world: int) -> None:
        self.hosts, self.job, self.world = hosts, job, world

    def fault(self, name: str, rank: int | str = -1, ms: float = 50) -> None:
        for host in self.hosts:
            folder = place(host)
            (folder / "fault.new").write_text(f"{name} {rank} {ms}")
            (folder / "fault.new").rename(folder / "fault")

    def truth(self, rank: int) -> list[Step]:
        return max((truth(place(host) / f"truth.{rank}") for host in self.hosts), key=len)

    def steps(self, rank: int) -> int:
        return len(self.truth(rank))

    def runs(self) -> None:
        """Wait until every rank has made some more steps."""
        before = [self.steps(rank) for rank in range(self.world)]
        self.until(lambda: all(self.steps(rank) >= before[rank] + 5 for rank in range(self.world)))

    def until(self, true: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not true():
            assert time.monotonic() < end, self.job.text
            assert all(start.poll() is None for start in self.job.starts), self.job.text
            time.sleep(0.1)


def place(host: Host) -> Path:
    return Path(f"/proc/{host.pid}/root{FOLDER}")


@contextmanager
def training(hosts: Sequence[Host], ranks: int, **env: str) -> Iterator[LabJob]:
    job = Job()
    try:
        for number, host in enumerate(hosts):
            host.dirty = True
            words = [*torchrun_argv(hosts, ranks, number), str(JOB)]
            script = (
                f'mkdir -p {FOLDER}; echo none -1 0 > {FOLDER}/fault; mkfifo {FOLDER}/shard; cd /; exec "$@"'
            )
            job.start(host.enter(["sh", "-c", script, "job", *words]), environment(FOLDER=FOLDER, **env))
        made = LabJob(hosts, job, ranks * len(hosts))
        made.runs()
        feeders = [host.spawn([sys.executable, "-c", FEED, f"{FOLDER}/shard", "0"]) for host in hosts]
        try:
            yield made
        finally:
            for each in feeders:
                each.stop()
    finally:
        job.close()

"""A training over hosts of the lab, whose fault is changed while it runs."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.lab import Host
from tests.lab.processes import command, numbers, processes
from tests.support.injob import PORT, Job, environment
from tests.support.slow.ranks import FEED, JOB, Step, truth

PATIENCE = 300.0
FOLDER = "/tmp/slow-job"
RANK_NAMES = ("RANK", "OMPI_COMM_WORLD_RANK")


class LabJob:
    def __init__(self, hosts: Sequence[Host], job: Job, world: int) -> None:
        self.hosts, self.job, self.world = hosts, job, world

    def fault(self, name: str, rank: int | str = -1, ms: float = 50) -> None:
        self.faults(f"{name} {rank} {ms}")

    def faults(self, *rows: str) -> None:
        for host in self.hosts:
            folder = place(host)
            (folder / "fault.new").write_text("\n".join(rows))
            (folder / "fault.new").rename(folder / "fault")

    def truth(self, rank: int) -> list[Step]:
        return max((truth(place(host) / f"truth.{rank}") for host in self.hosts), key=len)

    def pid(self, host: Host) -> int:
        """The first rank on a host, as the host numbers it."""
        found = [each for each in processes(host.pid) if str(JOB) in command(each)]
        return numbers(min(each.pid for each in found))[-1]

    def process(self, rank: int) -> int:
        """The process of a rank, as this machine numbers it."""
        host = self.hosts[rank // (self.world // len(self.hosts))]
        for each in processes(host.pid):
            if str(JOB) in command(each) and str(rank) in map(each.environ().get, RANK_NAMES):
                return each.pid
        raise AssertionError(f"rank {rank} does not run")

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


PREPARE = f"mkdir -p {FOLDER}; echo none -1 0 > {FOLDER}/fault; mkfifo {FOLDER}/shard"


@contextmanager
def training(hosts: Sequence[Host], ranks: int, **env: str) -> Iterator[LabJob]:
    """The ranks are started without a launcher: torchrun would import torch once more on each host. Those of
    mpi are started by mpirun, on one host.
    """
    job = Job()
    by_mpi = env.get("KIND") == "mpi"
    assert len(hosts) == 1 or not by_mpi
    mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", str(ranks)]
    try:
        for number, host in enumerate(hosts):
            host.dirty = True
            host.do(PREPARE)
            if by_mpi:
                words = host.enter([*mpirun, sys.executable, str(JOB)])
                job.start(words, environment(FOLDER=FOLDER, **env))
            for local in range(0 if by_mpi else ranks):
                own = {
                    "RANK": str(number * ranks + local),
                    "LOCAL_RANK": str(local),
                    "WORLD_SIZE": str(ranks * len(hosts)),
                    "MASTER_ADDR": hosts[0].address,
                    "MASTER_PORT": str(PORT),
                    "FOLDER": FOLDER,
                }
                job.start(host.enter([sys.executable, str(JOB)]), environment(**own, **env))
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

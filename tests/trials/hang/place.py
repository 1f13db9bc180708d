"""Where a trial of `doctor hang` takes place: the hosts of the lab, its job, and what of it is drawn."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.lab import Host, Lab
from tests.support.injob import Job, environment
from tests.trials.runner import NoTrial

FOLDER = "/tmp/hang-trial"
TRAINING = str(Path(__file__).with_name("training.py"))
JOBS = str(Path(__file__).with_name("jobs.py"))
PATIENCE = 240.0
RUNS_MEMORY = 'd=$(mktemp -d); mount -t proc proc "$d"; echo "$1" >"$d/sys/vm/memfd_noexec"; umount "$d"'
"""A kernel of Linux 6.3 or later may forbid programs in memory, and py-spy is sent as one."""


@dataclass(slots=True)
class Place:
    lab: Lab
    user: str
    """The owner of the job."""
    port: int
    step: int
    """The step of the fault."""
    job: Job = field(default_factory=Job)
    patience: float = PATIENCE

    def __post_init__(self) -> None:
        for host in self.hosts:
            host.do(f"mkdir -p {FOLDER}; chmod 777 {FOLDER}")

    @property
    def hosts(self) -> Sequence[Host]:
        return self.lab.hosts

    def run(self, host: Host, words: Sequence[str], more: Mapping[str, str], folder: str = FOLDER) -> None:
        """Start a program of the job on this host."""
        host.dirty = True
        told = environment(**{"FOLDER": FOLDER, "HOME": FOLDER, "LONG": "900", **more})
        env = ["env", "-C", folder, *(f"{name}={text}" for name, text in told.items())]
        self.job.start(host.enter([*env, *words], self.user), environment())

    def number(self, host: Host, name: str) -> int:
        """The number in a file of the job; -1 if there is none."""
        with suppress(OSError, ValueError):
            return int(Path(f"/proc/{host.pid}/root{FOLDER}/{name}").read_text())
        return -1

    def steps(self) -> int:
        """Of all ranks."""
        return sum(
            max(0, self.number(host, each.name))
            for host in self.hosts
            for each in Path(f"/proc/{host.pid}/root{FOLDER}").glob("step.*")
        )

    def until(self, true: Callable[[], bool], *, ends: bool = False) -> None:
        """`ends`: the launcher on one host may end."""
        end = time.monotonic() + self.patience
        while not true():
            over = not ends and any(start.poll() is not None for start in self.job.starts)
            if time.monotonic() > end or over:
                raise NoTrial(f"the job did not get there:\n{self.job.text[-3000:]}")
            time.sleep(0.1)

    def until_hit(self, host: Host, rank: int) -> int:
        """Wait for the fault; returns the PID of the rank on its host."""
        self.until(lambda: self.number(host, f"hit.{rank}") > 0)
        return self.number(host, f"hit.{rank}")

    def until_trained(self, hosts: Sequence[Host], ranks: Sequence[int], steps: int = 3) -> None:
        def trained(rank: int) -> bool:
            return max(self.number(host, f"step.{rank}") for host in hosts) >= steps

        self.until(lambda: all(map(trained, ranks)))


def allow_memory(hosts: Sequence[Host], runs: bool) -> None:
    """Whether programs in memory, such as py-spy, can run."""
    for host in hosts:
        host.do(RUNS_MEMORY, "0" if runs else "2")

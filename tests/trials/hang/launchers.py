"""The launchers of a trial: torchrun on each host, mpirun over SSH, or srun of a real Slurm."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.lab import Lab
from tests.lab.needs import without
from tests.lab.slurm import Slurm
from tests.lab.slurm import missing as no_slurm
from tests.support.injob import Job, environment, start_mpirun, torchrun_argv

TRAINING = str(Path(__file__).with_name("training.py"))
FOLDER = "/tmp/hang-trial"


@dataclass(frozen=True, slots=True)
class Start:
    """The start of one job."""

    lab: Lab
    slurm: Slurm | None
    ranks: int
    """The number of ranks on each host."""
    port: int
    user: str
    env: Mapping[str, str]

    def variables(self) -> dict[str, str]:
        return environment(FOLDER=FOLDER, **self.env)

    def meeting(self) -> dict[str, str]:
        """The variables that people export themselves if torchrun does not set them."""
        return {"MASTER_ADDR": self.lab.hosts[0].address, "MASTER_PORT": str(self.port)}


def torchrun(job: Job, start: Start) -> None:
    hosts = start.lab.hosts
    told = ["env", "-C", "/", *(f"{name}={text}" for name, text in start.variables().items())]
    for number, host in enumerate(hosts):
        words = [*told, *torchrun_argv(hosts, start.ranks, number, start.port), TRAINING]
        job.start(host.enter(words, start.user), environment())


def mpirun(job: Job, start: Start) -> None:
    told = {**start.variables(), **start.meeting()}
    hosts = start.lab.hosts
    start_mpirun(job, start.lab, hosts, start.ranks, [sys.executable, TRAINING], told, start.user)


def srun(job: Job, start: Start) -> None:
    """On the first host, where its user is logged in."""
    told = {**start.variables(), **start.meeting()}
    number = len(start.lab.hosts)
    words = ["env", *(f"{name}={text}" for name, text in told.items())]
    words += ["srun", f"--nodes={number}", f"--ntasks={number * start.ranks}", "--chdir=/"]
    words += [f"--ntasks-per-node={start.ranks}", sys.executable, TRAINING]
    job.start(start.lab.hosts[0].enter(words, start.user), environment())


LAUNCHERS: Mapping[str, Callable[[Job, Start], None]] = {"torchrun": torchrun, "mpirun": mpirun, "srun": srun}


def lacking(launcher: str) -> str | None:
    """Why it cannot start a job here."""
    if launcher == "srun":
        return no_slurm()
    return "it needs the program 'mpirun'" if launcher == "mpirun" and without("mpirun") else None

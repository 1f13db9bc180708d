"""The same training as a job of Slurm: the output that sbatch leaves."""

import shlex
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.lab import Host, Lab
from tests.lab.slurm import Slurm
from tests.lab.slurmjob import Job, submit
from tests.support.injob import environment
from tests.trials.logs.cases import PORT, Case, do

SILENT = 5
"""Seconds until Slurm considers a silent host lost."""
LONGEST = 240.0
RANK = "export RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID"


def run(lab: Lab, hosts: Sequence[Host], case: Case, raw: Path, training: Path, timeout: int) -> None:
    """The lab must have at least as many hosts as the job."""
    slurm = Slurm(lab, patience=SILENT)
    try:
        slurm.start()
        given = environment(
            **{"TIMEOUT": str(timeout), **case.env},
            MASTER_ADDR=hosts[0].address,
            MASTER_PORT=str(PORT),
        )
        words = [f"export {name}={shlex.quote(value)}" for name, value in given.items() if name != "PATH"]
        program = f"{RANK}; exec {sys.executable} {training}"
        words += [f"srun {' '.join(case.srun)} sh -c {shlex.quote(program)}"]
        names = ",".join(host.name for host in hosts)
        job = submit(
            slurm,
            "\n".join(words),
            *(f"--ntasks-per-node={case.ranks}", "--time=1", f"--nodelist={names}"),
            nodes=len(hosts),
        )
        _to_its_end(job, lab, case)
        (raw / f"slurm-{job.number}.out").write_text(job.output)
        job.cancel()
    finally:
        slurm.close()
        shutil.rmtree(lab.directory / "slurm", ignore_errors=True)


def _to_its_end(job: Job, lab: Lab, case: Case) -> None:
    end = time.monotonic() + LONGEST
    happened = not case.during
    while not job.over and time.monotonic() < end:
        if not happened and "step 20/" in job.output:
            do(lab, case.during)
            happened = True
        time.sleep(0.2)

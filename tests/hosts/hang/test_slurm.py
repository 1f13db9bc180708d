"""Inside a Slurm allocation `doctor hang` needs no arguments: it looks at the job's own nodes, by srun."""

from __future__ import annotations

import json
import sys

import pytest

from tests.lab.slurm import Slurm
from tests.lab.slurmjob import submit
from tests.support.hang.ranks import JOB

pytestmark = pytest.mark.slow

SCRIPT = f"""
export FAULT=stop VICTIM=1 FOLDER=$JOB MASTER_ADDR=$(hostname) MASTER_PORT=29655 OMP_NUM_THREADS=1
srun --overlap --ntasks-per-node=1 sh -c \
  'export RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS; {sys.executable} {JOB}; echo ended' &
while [ ! -e $JOB/hit.1 ]; do sleep 0.2; done
sleep 1
doctor hang --json $JOB/hang.json
echo "code $?"
kill %1 2>/dev/null
scancel $SLURM_JOB_ID
"""


def test_the_stopped_rank_of_a_job_of_slurm(slurm: Slurm) -> None:
    job = submit(slurm, SCRIPT, "--ntasks-per-node=1", nodes=2)
    job.await_word("code ", 150)
    assert "code 1\n" in job.output, job.output
    said = json.loads(job.file("hang.json"))
    assert [(each["rank"], each["cause"]) for each in said["culprits"]] == [(1, "stopped")]
    assert (said["job"]["ranks"], said["job"]["found"]) == (2, 2)
    assert said["rights"]["stacks"] is True
    job.cancel()

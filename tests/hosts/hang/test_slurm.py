"""Inside a Slurm allocation, `doctor hang` needs no arguments: it looks at the job's own nodes by srun."""

import json
import shlex
import sys
import time

import pytest

from tests.lab.machine import PATH
from tests.lab.slurm import Slurm
from tests.lab.slurmjob import environment, submit
from tests.support.hang.named import culprits
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
    assert [(each["rank"], each["cause"]) for each in culprits(said)] == [(1, "stopped")]
    assert (said["hang"]["job"]["ranks"], said["hang"]["job"]["found"]) == (2, 2)
    assert said["hang"]["rights"]["stacks"] is True
    job.cancel()


OUTSIDE = f"""
export FAULT=stop VICTIM=1 FOLDER=$JOB MASTER_ADDR=$(hostname) MASTER_PORT=29656 OMP_NUM_THREADS=1
srun --ntasks-per-node=1 sh -c \
  'export RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS; {sys.executable} {JOB}; echo ended'
"""


def test_a_job_is_looked_at_from_outside_its_allocation(slurm: Slurm) -> None:
    """By its number, from the machine where it was submitted; the suggested commands work there."""
    job = submit(slurm, OUTSIDE, "--ntasks-per-node=1", nodes=2)
    try:
        end = time.monotonic() + 150
        while not job.file("hit.1"):
            assert time.monotonic() < end, job.output
            assert not job.over, job.output
            time.sleep(0.2)
        time.sleep(1.0)
        argv = [sys.executable, "-m", "doctor", "hang", "--job", job.number, "--json", "-"]
        done = slurm.run(argv, env=environment())
        assert done.returncode == 1, done.stdout + done.stderr
        said = json.loads(done.stdout)
        assert [(each["rank"], each["cause"]) for each in culprits(said)] == [(1, "stopped")]
        assert (said["hang"]["job"]["ranks"], said["hang"]["job"]["found"]) == (2, 2)
        (command,) = said["hang"]["commands"]
        assert command.startswith(f"srun --jobid={job.number} --overlap ")
        assert f" kill -CONT {culprits(said)[0]['pid']}" in command
        resumed = slurm.run(shlex.split(command), env=environment())
        assert resumed.returncode == 0, resumed.stderr
        end = time.monotonic() + 60
        while int(job.file("step.0") or 0) < 20:
            assert time.monotonic() < end, job.output
            time.sleep(0.2)
        check = f"SLURM_JOB_ID={job.number} doctor check 'node[1-2]' --only shm-small --transport srun"
        examined = slurm.run(["sh", "-c", check], env=environment({"PATH": f"{_bin(slurm)}:{PATH}"}))
        assert examined.returncode == 0, examined.stdout + examined.stderr
        assert "node[1-2]" in examined.stdout
    finally:
        job.cancel()


def _bin(slurm: Slurm) -> str:
    """The folder of `doctor` as the controller sees it."""
    return f"{slurm.lab.directory}/shared/bin"

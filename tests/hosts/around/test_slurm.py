"""`doctor run` inside of a Slurm job: it reaches hosts by srun, and starts the job on the healthy ones."""

from __future__ import annotations

from tests.lab.slurm import Slurm
from tests.lab.slurmjob import submit

RUN = "doctor run --need-hosts 3 --exam host --no-smoke"
SRUN = "srun --nodes={nnodes} --nodelist={hosts} --ntasks-per-node=1"


def test_srun_starts_on_the_healthy_nodes(slurm: Slurm) -> None:
    slurm.lab["node2"].shm("64m")
    job = submit(slurm, f"{RUN} -- {SRUN} sh -c 'hostname > $JOB/on-$SLURM_NODEID; exit 5' 2> $JOB/errors\n")
    assert job.ended() == 5, job.output + job.file("errors")
    assert [job.file(f"on-{n}").strip() for n in range(4)] == ["node1", "node3", "node4", ""]
    assert job.file("errors").splitlines()[-1].startswith("doctor: the exit code 5 is the job's")
    assert "FAIL  node" not in job.file("errors")

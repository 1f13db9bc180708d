"""`doctor run` inside of a Slurm job: it reaches hosts by srun, and starts the job on the healthy ones."""

import json
import sys

from tests.lab.slurm import Slurm
from tests.lab.slurmjob import submit
from tests.support.cases import cases, from_cases
from tests.support.command import await_true
from tests.support.paths import ROOT

RUN = "doctor run --need-hosts 3 --exam host --no-smoke"
SRUN = "srun --nodes={nnodes} --nodelist={hosts} --ntasks-per-node=1"


def test_srun_starts_on_the_healthy_nodes(slurm: Slurm) -> None:
    slurm.lab["node2"].shm("64m")
    job = submit(slurm, f"{RUN} -- {SRUN} sh -c 'hostname > $JOB/on-$SLURM_NODEID; exit 5' 2> $JOB/errors\n")
    assert job.ended() == 5, job.output + job.file("errors")
    assert [job.file(f"on-{n}").strip() for n in range(4)] == ["node1", "node3", "node4", ""]
    assert job.file("errors").splitlines()[-1].startswith("doctor: the exit code 5 is the job's")
    assert "FAIL  node" not in job.file("errors")


WAITS = "srun --ntasks-per-node=1 sh -c 'echo ready; exec sleep 600'"
CANCEL, LIMIT = ("scancel",), ("scontrol", "update", "EndTime=now")


@cases
def test_an_end_by_slurm_accuses_nobody(slurm: Slurm, order: tuple[str, ...], why: str) -> None:
    options = "--no-preflight --on-loss end --restarts 3 --json run.json"
    job = submit(slurm, f"cd $JOB; exec doctor run {options} -- {WAITS} 2> errors\n", nodes=2)
    job.await_word("ready")
    words = [*order, job.number] if order == CANCEL else [*order, f"JobId={job.number}"]
    assert slurm.run(words).returncode == 0
    await_true(lambda: "doctor: the exit code" in job.file("errors"), "end")
    assert why in job.file("errors"), job.file("errors")
    report = json.loads(job.file("run.json"))
    assert (report["verdict"], report["findings"]) == ("inconclusive", [])
    (attempt,) = report["around"]["attempts"]
    assert why in attempt["by_others"]
    assert attempt["folder"] is None


HUNG = f"env FAULT=sleep AT=2 {sys.executable} {ROOT}/tests/support/command_job.py"
TWO_STEPS = from_cases(__file__, "TWO_STEPS", str).replace("HUNG", HUNG)


def test_only_the_step_of_the_command_is_judged(slurm: Slurm) -> None:
    job = submit(slurm, TWO_STEPS, nodes=2)
    job.ended()
    said = job.output + job.file("first") + job.file("second")
    assert "first 0" in job.output, said
    assert "rank 1" not in job.file("first")
    assert "second 75" in job.output, said
    assert "The job waits for rank 1 on node2" in job.file("second"), said
    assert "the other goes on" in job.output, said

"""The facts parsed from an answer about the user's own training processes."""

import pytest

from doctor.api import Capture
from doctor.errors import UnreadableOutput
from doctor.facts.job import PROCESSES_OF_JOBS
from doctor.job.launch.processes import JobProcess
from tests.support.captures import printed
from tests.support.cases import cases


@cases
def test_tools_in_a_pod_are_not_ranks(words: list[str]) -> None:
    """A pod passes RANK to every process that is started in it."""
    said = "\t".join(["python3", *words])
    assert printed(PROCESSES_OF_JOBS, f"jobs\np 7 1 0\ne RANK=0\na\t{said}\n") == ()
    assert printed(PROCESSES_OF_JOBS, "jobs\np 7 1 0\ne RANK=0\na\tpython3\traytrace.py\n") != ()


def test_what_a_step_of_slurm_calls_is_no_rank() -> None:
    """srun gives its variables to every program of a step, including an examination beside the job."""
    given = "e SLURM_PROCID=0\ne SLURM_STEP_NUM_TASKS=4\ne SLURM_NTASKS=4\ne MASTER_ADDR=node1\n"
    step = f"jobs\np 7 1 0\n{given}a\t"
    for words in ("sed", "/usr/bin/cat", "hccn_tool"):
        assert printed(PROCESSES_OF_JOBS, f"{step}{words}\n") == ()
    assert printed(PROCESSES_OF_JOBS, f"{step}./solver\n") != ()


@cases
def test_what_is_printed(text: str, expected: tuple[JobProcess, ...]) -> None:
    assert printed(PROCESSES_OF_JOBS, text) == expected


@cases
def test_what_is_not_understood(text: str) -> None:
    with pytest.raises(UnreadableOutput):
        PROCESSES_OF_JOBS.parse(Capture(PROCESSES_OF_JOBS.name, 0, text))


def test_two_tasks_of_a_step_are_a_job() -> None:
    """One task may be a shell; srun gives its variables to whatever runs in it."""
    for size, told in ((1, False), (2, True)):
        given = f"e SLURM_PROCID=0\ne SLURM_STEP_NUM_TASKS={size}\n"
        assert bool(printed(PROCESSES_OF_JOBS, f"jobs\np 7 1 0\n{given}a\t./solver\n")) is told

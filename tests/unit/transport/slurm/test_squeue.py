"""The nodes of a Slurm job, from squeue's output."""

import os

import pytest

from doctor.errors import UsageError
from doctor.transport.slurm.squeue import SlurmJob, read_squeue
from tests.support.cases import cases

ONE = "4711|4711|N/A|RUNNING|1000|node[1-2]\n"
ARRAY = "4713|4712|2|RUNNING|1000|node2\n4712|4712|1|RUNNING|1000|node1\n4714|4712|3-9|PENDING|1000|\n"


def test_a_job_that_runs() -> None:
    assert read_squeue("4711", ONE) == SlurmJob(("4711",), 1000, ("node1", "node2"))


def test_a_task_of_an_array_has_a_number_of_its_own() -> None:
    assert read_squeue("4712_2", ARRAY.splitlines()[0]) == SlurmJob(("4713",), 1000, ("node2",))


def test_the_parts_of_a_heterogeneous_job_are_one() -> None:
    parts = "20|20|N/A|RUNNING|7|cpu1\n21|21|N/A|RUNNING|7|gpu[1-2]\n"
    assert read_squeue("20", parts) == SlurmJob(("20", "21"), 7, ("cpu1", "gpu1", "gpu2"))
    assert read_squeue("20", parts).environ({}) is None


def test_only_the_owner_starts_steps() -> None:
    own = SlurmJob(("4711",), os.getuid(), ("node1", "node2"))
    assert own.environ({"A": "b"}) == {
        "A": "b",
        "SLURM_JOB_ID": "4711",
        "SLURM_JOBID": "4711",
        "SLURM_JOB_NODELIST": "node[1-2]",
    }
    assert SlurmJob(("4711",), os.getuid() + 1, ("node1",)).environ({}) is None


@cases
def test_what_is_no_job_to_look_at(text: str, said: str, hint: str) -> None:
    with pytest.raises(UsageError) as error:
        read_squeue("4711", text)
    assert said in error.value.message
    assert hint in error.value.hint

"""Which of several jobs is chosen: by its number in Slurm, or by its user."""

import pytest
from msgspec.structs import replace

from doctor.hang.judge import judge
from doctor.hang.judge.judgement import HangState
from doctor.live.evidence import JobChoice, LiveEvidence
from tests.support.hang.known import KNOWN
from tests.support.hang.written import both, changed, evidence


def owned(seen: LiveEvidence, pids: int, **more: str) -> LiveEvidence:
    return changed(seen, lambda m: replace(m, pid=m.pid + pids, **more))


@pytest.fixture
def two() -> LiveEvidence:
    mine = owned(evidence(["waits", "sleeps"]), 0, slurm_job="4711", user="mara")
    other = evidence(["waits", "waits"], job="node1:29600", silent=0.1)
    return both(mine, owned(other, 9_000, slurm_job="4713 4712_2", user="lin"))


@pytest.mark.parametrize(("number", "code"), [("4711", 1), ("4713", 0), ("4712_2", 0)])
def test_a_job_of_slurm(number: str, code: int, two: LiveEvidence) -> None:
    assert judge(two, choice=JobChoice(slurm_job=number)).exit_code == code


def test_the_job_of_a_user(two: LiveEvidence) -> None:
    assert judge(two).verdict is HangState.SEVERAL
    assert (
        judge(two, choice=JobChoice(user="mara")).exit_code,
        judge(two, choice=JobChoice(user="lin")).exit_code,
    ) == (1, 0)


def test_no_job_is_chosen_by_a_part_of_its_number(two: LiveEvidence) -> None:
    found = judge(two, choice=JobChoice(slurm_job="471"))
    assert (found.verdict, found.sentence) == (HangState.NO_JOB, "No job has SLURM_JOB_ID 471.")
    found = judge(two, choice=JobChoice(slurm_job="4711", user="lin"))
    assert found.sentence == "No job has SLURM_JOB_ID 4711 and ranks of lin."


def test_what_the_ranks_say_of_slurm() -> None:
    assert KNOWN.job_number_of({}) == ""
    assert KNOWN.job_number_of({"SLURM_JOB_ID": "7"}) == "7"
    task = {"SLURM_JOB_ID": "9", "SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "2"}
    assert KNOWN.job_number_of(task) == "9 7_2"

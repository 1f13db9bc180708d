"""Weighing asks the judge of hang with what was recorded of strangers' jobs."""

from multiprocessing import get_context

from tests.exam.jobs import job_answerer, job_cases, read_jobs
from tests.exam.weigh import Weighing, conditions

SOURCE = "doctor/hang/judge/case.py"
STOPPED = "ddp-stop-2"


def test_a_condition_is_for_the_jobs_that_it_changes() -> None:
    with get_context("spawn").Pool(1) as fresh:  # what was kept of earlier answers hides what a change does
        worths, told = fresh.apply(_weighed)
    assert {STOPPED: "right to silent"} in worths
    assert "nothing" in told


def _weighed() -> tuple[list[dict[str, str]], list[str]]:
    asked = [case for case in job_cases() if case.name == STOPPED]
    weighing = Weighing(asked, read_jobs(asked), job_answerer, [SOURCE])
    made = [each for each in conditions([SOURCE]) if each.scope == "_lost"]
    weights = [weighing.weigh(each) for each in made]
    return [dict(each.worth) for each in weights], [str(each.told()["for"]) for each in weights]

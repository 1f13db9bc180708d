"""Weighing asks the judge of hang with what was recorded of strangers' jobs."""

from __future__ import annotations

from tests.exam.jobs import job_answerer, job_cases, read_jobs
from tests.exam.weigh import Weighing, conditions

STOPPED = "ddp-stop-2"


def test_a_condition_is_for_the_jobs_that_it_changes() -> None:
    asked = [case for case in job_cases() if case.name == STOPPED]
    weighing = Weighing(asked, read_jobs(asked), job_answerer)
    made = [each for each in conditions(["doctor/hang/judge/case.py"]) if each.scope == "_lost"]
    weights = {(each.line, each.text): weighing.weigh(each) for each in made}
    assert {STOPPED: "right to silent"} in [each.worth for each in weights.values()], weights
    assert "nothing" in [each.told()["for"] for each in weights.values()]

"""Weighing: a condition is for the cases whose answers change without it."""

from multiprocessing import get_context

from tests.exam.answers import answerer, read_all
from tests.exam.cases import cases
from tests.exam.weigh import Weighing, conditions

ACCUSED = "307"
"""A healthy log, which complains of an adapter before its rank is connected."""


def test_a_condition_is_for_the_cases_that_it_changes() -> None:
    with get_context("spawn").Pool(1) as fresh:  # what was imported before cannot be changed
        inside = fresh.apply(_weighed)
    assert "right answers" in inside["got_over"]
    assert "nothing" in inside["differing"]


def _weighed() -> dict[str, list[str]]:
    asked = [case for case in cases() if case.name == ACCUSED]
    weighing = Weighing(asked, read_all(asked), answerer)
    inside: dict[str, list[str]] = {"got_over": [], "differing": []}
    for change in conditions(["doctor/logs/judge/recovery.py"]):
        if change.scope in inside:
            inside[change.scope].append(str(weighing.weigh(change).told()["for"]))
    return inside

"""Weighing: a condition is for the cases whose answers change without it."""

from multiprocessing import get_context
from typing import NoReturn

from tests.exam.answers import answerer, read_all
from tests.exam.cases import cases
from tests.exam.weigh import Weighing, conditions

SOURCE = "doctor/logs/judge/recovery.py"
ACCUSED = "307"
"""A healthy log, which complains of an adapter before its rank is connected."""


def test_a_condition_is_for_the_cases_that_it_changes() -> None:
    with get_context("spawn").Pool(1) as fresh:  # what was kept of earlier answers hides what a change does
        inside, asked = fresh.apply(_weighed)
    assert "right answers" in inside["got_over"]
    assert "nothing" in inside["differing"]
    assert asked, "no condition of the source is out of reach"
    assert not any(asked.values()), "who does not reach a condition is not asked"


def _weighed() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    asked = [case for case in cases() if case.name == ACCUSED]
    weighing = Weighing(asked, read_all(asked), answerer, [SOURCE])
    inside: dict[str, list[str]] = {"got_over": [], "differing": []}
    for change in conditions([SOURCE]):
        if change.scope in inside:
            inside[change.scope].append(str(weighing.weigh(change).told()["for"]))
    far = [each for each in conditions([SOURCE]) if not weighing.reaching(each)]
    weighing.answer = no_answer
    return inside, {each.key: [*weighing.weigh(each).headlines] for each in far}


def no_answer(_: object) -> NoReturn:
    raise AssertionError

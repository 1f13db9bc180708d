"""The exam of foreign logs: no change of a rule may answer fewer of them right, or more of them wrongly."""

from collections import Counter

import pytest

from tests.exam.answers import answerer, read_all
from tests.exam.cases import cases
from tests.support.printed import ON_PAGES_OF_LOGS, assert_typable

BAR = {"seen": {"right": 360, "false": 2}, "unseen": {"right": 264, "false": 2}}
"""Raise it with each rule that answers more of them."""


@pytest.mark.slow
def test_the_answers_are_not_worse() -> None:
    asked, answer = cases(), answerer()
    logs, sums = read_all(asked), Counter[tuple[str, str]]()
    for case in asked:
        given = answer(logs[case.name])
        assert_typable(given.text, ON_PAGES_OF_LOGS)
        sums[case.half, case.worth(given.code, given.text)] += 1
    for half, bar in BAR.items():
        assert sums[half, "right"] >= bar["right"], sums
        assert sums[half, "false"] <= bar["false"], sums


def test_no_healthy_log_is_accused() -> None:
    asked, answer = [case for case in cases() if case.kind == "healthy"], answerer()
    logs = read_all(asked)
    assert asked
    assert [case.name for case in asked if answer(logs[case.name]).code == 1] == []

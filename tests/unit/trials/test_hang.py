"""What a trial of `doctor hang` counts as right."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.trials.hang.kinds import KINDS
from tests.trials.hang.run import held
from tests.trials.outcome import Outcome

GUILTY: dict[str, Any] = {
    "rank": 2,
    "host": "node3",
    "cause": "sleeps",
    "place": "training.py:71",
    "stack": [{"function": "doze"}],
}


def of(fault: str, code: int, *culprits: dict[str, Any]) -> Outcome:
    said = json.dumps({"verdict": "", "summary": "", "culprits": culprits})
    return held(KINDS[fault], fault, 0, "", code, said, "node3", 2, 1.0)


def test_right_is_the_rank_its_host_what_it_does_and_where() -> None:
    assert of("sleep", 1, GUILTY).right


@pytest.mark.parametrize(
    "wrong",
    [{"rank": 1}, {"host": "node2"}, {"cause": "computes"}, {"stack": [{"function": "spin"}]}],
    ids=lambda wrong: next(iter(wrong)),
)
def test_anything_else_is_wrong(wrong: dict[str, Any]) -> None:
    assert not of("sleep", 1, {**GUILTY, **wrong}).right


def test_nobody_else_may_be_accused() -> None:
    outcome = of("sleep", 1, GUILTY, {**GUILTY, "rank": 0, "host": "node1"})
    assert (outcome.named, outcome.alone) == (True, False)


def test_a_fault_that_was_not_found_is_wrong() -> None:
    assert not of("sleep", 0).detected


def test_in_a_healthy_job_nobody_may_be_accused() -> None:
    assert of("healthy", 0).right
    assert not of("healthy", 1, GUILTY).right
    assert not of("healthy", 3).right


def test_no_answer_at_all_is_wrong() -> None:
    assert not held(KINDS["healthy"], "healthy", 0, "", 70, "Traceback", "node1", 0, 1.0).right

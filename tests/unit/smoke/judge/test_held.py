"""What members of a group hold after their calls, what arrives over an edge, and how large calls were."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from doctor.model import Confidence
from doctor.smoke.events import TrainStep
from doctor.smoke.judge import judge
from doctor.smoke.result import SmokePlan, SmokeResult
from tests.support.smoke.results import changed, healthy, plan_of, with_steps

CUT = replace(plan_of(2, 4, tp=2, steps=10), layout={"pp": 2, "cp": 1, "ep": 1, "micro": 4})
SHARED = replace(plan_of(4, 2, tp=2, steps=10), layout={"zero": 3})
SERVED = replace(plan_of(4, 2, tp=1, steps=10), layout={"ps": 1})
STEP = 4


def held(
    plan: SmokePlan, rank: int, name: str, bits: int, more: float = 0.0, first: int = STEP
) -> SmokeResult:
    """From a step on a rank holds other bits, whose sum is larger."""

    def change(step: TrainStep) -> Any:
        old, given, sums, most = step.held[name]
        return changed(step, held={**step.held, name: (old + bits, given, sums + more, most)})

    return with_steps(healthy(plan), rank, change, first)


def without_sums(step: TrainStep) -> Any:
    return changed(step, held={name: (each[0], 0.0, 0.0, 0.0) for name, each in step.held.items()})


@pytest.mark.parametrize("plan", [CUT, SHARED, SERVED, plan_of(2, 2, tp=2), plan_of(1, 1)])
def test_equal_results_are_silent(plan: SmokePlan) -> None:
    assert judge(healthy(plan)) == ()


@pytest.mark.parametrize(
    ("plan", "rank", "group"),
    [
        (CUT, 5, "tp"),
        (CUT, 2, "pp"),
        (CUT, 7, "embedding"),
        (CUT, 0, "dp"),
        (SHARED, 3, "dp"),
        (SERVED, 6, "dp"),
        (plan_of(2, 2, tp=2), 1, "tp"),
    ],
)
def test_the_member_whose_result_is_not_the_sum_is_named_alone(
    plan: SmokePlan, rank: int, group: str
) -> None:
    (charge,) = judge(held(plan, rank, group, 1, 1.0))
    assert (charge.check, charge.kind, charge.ranks) == ("smoke-collective-wrong", "held", (rank,))
    assert (charge.step, charge.undecided) == (STEP, False)


def test_a_bit_that_no_sum_shows_has_two_suspects_of_two_and_one_of_four() -> None:
    (charge,) = judge(held(CUT, 5, "tp", 1))
    assert (charge.ranks, charge.undecided) == ((4, 5), True)
    (charge,) = judge(held(SHARED, 5, "dp", 1))
    assert (charge.ranks, charge.undecided) == ((5,), False)


def test_sums_of_a_later_step_tell_which_of_two_is_wrong() -> None:
    """They are made in some steps only."""
    run = held(CUT, 5, "tp", 1, 1.0)
    for rank in range(8):
        run = with_steps(run, rank, without_sums, 0, 8)
    (charge,) = judge(run)
    assert (charge.ranks, charge.step, charge.undecided) == ((5,), STEP, False)


def test_who_got_something_else_than_was_sent_is_named_alone() -> None:
    (charge,) = judge(held(CUT, 6, "from 2", 1))
    assert (charge.kind, charge.ranks, charge.confidence) == ("held", (6,), Confidence.STRONG)
    assert charge.summary == "what it received from rank 2 is not what was sent, at step 4"


def test_a_rank_whose_calls_were_shorter_is_named_and_what_follows_is_not() -> None:
    run = held(CUT, 7, "from 3", 1)
    run = with_steps(run, 3, lambda s: changed(s, sizes={**s.sizes, "pair": s.sizes["pair"] - 4}), STEP, STEP)
    (charge,) = judge(run)
    assert (charge.check, charge.kind, charge.ranks) == ("smoke-mismatch", "shape", (3,))
    assert charge.summary == "in training step 4 its pair calls had 163836 bytes, and 163840 were due"


def test_recordings_that_lack_them_prove_nothing() -> None:
    run = held(CUT, 5, "tp", 1, 1.0)
    for rank in range(8):
        run = with_steps(run, rank, partial(changed, held={}, sizes={}), 0)
    assert judge(run) == ()

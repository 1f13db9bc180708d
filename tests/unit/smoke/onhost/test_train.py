"""The training of the smoke run: its parts that run in this process."""

from __future__ import annotations

from doctor.smoke.onhost.shape import CellShape
from doctor.smoke.onhost.trainplan import audited, shown, voters
from tests.support.cases import cases

STEPS = 11


def shape_of(dp: int, tp: int, steps: int = STEPS, seed: int = 5) -> CellShape:
    return CellShape(dp=dp, tp=tp, hosts=(dp * tp,), steps=steps, seed=seed)


@cases
def test_these_steps_are_hashed_and_computed_again(
    steps: int, hashed: list[int], computed_again: list[int]
) -> None:
    shape = shape_of(1, 1, steps)
    assert [step for step in range(steps) if shown(shape, step)] == hashed
    assert [step for step in range(steps) if audited(shape, step)] == computed_again


@cases
def test_three_replicas_compute_each_batch_on_different_hosts_if_possible(
    count: int, own: int, apart: int, expected: list[int]
) -> None:
    assert voters(count, own, apart) == expected

"""Replicas that share the optimizer: each sums a shard of the gradients, and is compared with the whole."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import pytest

from doctor.smoke.events import TrainStep
from doctor.smoke.judge import judge
from doctor.smoke.judge.cells import cells
from doctor.smoke.judge.deviation import entries_of
from doctor.smoke.judge.gradient_sum import first_loss
from doctor.smoke.onhost.trainplan import shard
from doctor.smoke.result import SmokePlan, SmokeResult
from tests.support.smoke.frozen import frozen, skipped, stuck
from tests.support.smoke.results import changed, healthy, plan_of, with_steps
from tests.support.smoke.spoilt import audited, drifted, initial, masked, summed_wrong


def plan(zero: int, tp: int = 2) -> SmokePlan:
    return replace(plan_of(4, 2, tp=tp, steps=10), layout={"zero": zero})


def lost(result: SmokeResult, rank: int, first: int) -> SmokeResult:
    """The sum of each shard lacks what one rank had for it."""
    said = {step.step: step.shards for step in result.ranks[rank].steps}
    shape = result.plan.shape(0)
    for each in shape.members("dp", rank):
        result = with_steps(result, each, partial(lacking, said, shape.dp_of(each)), first)
    return result


def lacking(said: Mapping[int, tuple[float, ...]], own: int, step: TrainStep) -> TrainStep:
    found: TrainStep = changed(step, reduced=(step.reduced or 0) - said[step.step][own])
    return found


@pytest.mark.parametrize("zero", [1, 2, 3])
def test_healthy_shards_are_silent(zero: int) -> None:
    assert judge(healthy(plan(zero))) == ()


@pytest.mark.parametrize("zero", [1, 3])
def test_the_schedule_sums_shards_and_gathers_them(zero: int) -> None:
    shape = plan(zero).shape(0)
    for place in range(shape.world):
        made = [
            (each.call.op, each.call.bytes)
            for each in entries_of(shape, place)
            if (each.phase, each.call.group, each.call.step) == ("train", "dp", 3)
        ]
        size = 4 * shard(shape, place)
        gathers = [("all_gather", size)]
        assert made == gathers * (zero > 2) + [("reduce_scatter", size * shape.dp)] + gathers


@pytest.mark.parametrize(
    ("spoil", "check"),
    [
        (initial(5), "smoke-desync"),
        (drifted(5, 4), "smoke-desync"),
        (masked(5), "smoke-mask-divergence"),
        (summed_wrong(5, 4), "smoke-collective-wrong"),
        (lambda result: lost(result, 5, 4), "smoke-collective-wrong"),
        (audited(5, used=True), "smoke-corruption"),
    ],
)
def test_wrong_numbers_of_one_shard_are_those_of_its_rank(spoil: object, check: str) -> None:
    assert callable(spoil)
    (charge,) = judge(spoil(healthy(plan(2))))
    assert (charge.check, charge.ranks) == (check, (5,))


def test_a_part_that_is_missing_in_every_shard_has_one_owner() -> None:
    (cell,) = cells(lost(healthy(plan(2)), 3, 2))
    assert [(loss.step, loss.lost, loss.places) for loss in first_loss(cell)] == [(2, 3, (1, 3, 5, 7))]


@pytest.mark.parametrize("zero", [0, 1])
def test_ranks_of_a_stage_without_parameters_are_silent(zero: int) -> None:
    """Of eight stages, some only pass on what they get: nothing of them is summed."""
    result = healthy(plan(zero))
    nothing = partial(changed, own=(0.0, 0.0), reduced=0.0, shards=())
    for place in result.plan.shape(0).members("dp", 3):
        result = with_steps(result, place, nothing, 0)
    assert [each for cell in cells(result) for each in first_loss(cell)] == []


def test_a_rank_that_does_not_scatter_is_named() -> None:
    seen = plan(1)
    made = [each for each in entries_of(seen.shape(0), 5) if each.phase == "train"]
    entry = next(each for each in made if each.call.op == "reduce_scatter")
    (charge,) = judge(frozen(seen, {5: skipped(entry.position - 1)}, kind="mismatch"))
    assert (charge.check, charge.ranks) == ("smoke-mismatch", (5,))
    (charge,) = judge(frozen(seen, {5: stuck(entry.position - 1)}))
    assert (charge.check, charge.ranks) == ("smoke-hang", (5,))


SERVED = replace(plan_of(4, 2, tp=1, steps=10), layout={"ps": 1})


def test_a_healthy_parameter_server_is_silent() -> None:
    assert judge(healthy(SERVED)) == ()


@pytest.mark.parametrize(
    ("spoil", "check"),
    [
        (initial(5), "smoke-desync"),
        (drifted(5, 4), "smoke-desync"),
        (lambda result: lost(result, 5, 4), "smoke-collective-wrong"),
        (audited(5, used=True), "smoke-corruption"),
    ],
)
def test_a_lost_push_and_a_stale_pull_are_those_of_the_worker(spoil: object, check: str) -> None:
    assert callable(spoil)
    (charge,) = judge(spoil(healthy(SERVED)))
    assert (charge.check, charge.ranks) == (check, (5,))


def test_a_server_that_stops_is_named_and_not_its_workers() -> None:
    made = [each for each in entries_of(SERVED.shape(0), 0) if each.phase == "train"]
    assert [each.call.op for each in made if each.call.step == 3] == ["reduce", "broadcast"]
    entry = next(each for each in made if each.call.op == "broadcast")
    (charge,) = judge(frozen(SERVED, {0: stuck(entry.position - 1)}))
    assert (charge.check, charge.ranks) == ("smoke-hang", (0,))

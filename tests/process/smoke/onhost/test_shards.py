"""Replicas that share the optimizer, on real ranks: each sums and updates a shard."""

from __future__ import annotations

import functools

import pytest

from doctor.smoke.events import InitialParameters, TrainStep
from doctor.smoke.onhost.corpus import reference_init
from doctor.smoke.onhost.schedule import schedule
from doctor.smoke.onhost.shape import CellShape
from tests.support.smoke.ranks import RankOutput, run_ranks

STEPS = 20
ROUNDING = 1e-4
SHARED = [
    (1, 2, 1),
    (3, 3, 1),
    *(pytest.param(*each, marks=pytest.mark.long) for each in ((2, 2, 2), (3, 2, 2), (1, 4, 1))),
]
"""The stage of ZeRO, replicas, and ranks that split a layer."""


def shape_of(zero: int, dp: int, tp: int, ps: int = 0) -> CellShape:
    return CellShape(dp, tp, (dp * tp,), STEPS, 5, waver_tries=2, zero=zero, ps=ps)


@functools.cache
def trained(zero: int, dp: int, tp: int, ps: int = 0) -> list[RankOutput]:
    ranks = run_ranks(shape_of(zero, dp, tp, ps), limit=120, still=30)
    assert [(rank.code, rank.words) for rank in ranks] == [(0, "")] * (dp * tp)
    return ranks


@pytest.mark.parametrize(("zero", "dp", "tp"), SHARED)
def test_shards_add_up_to_the_whole(zero: int, dp: int, tp: int) -> None:
    shape, ranks, whole = shape_of(zero, dp, tp), trained(zero, dp, tp), trained(0, dp, tp)
    for rank, same in zip(ranks, whole, strict=True):
        assert list(rank.entries) == list(schedule(shape, rank.place))
        assert rank.one(InitialParameters).params == reference_init(shape, rank.place)
        losses = [step.loss for step in same.all(TrainStep)]
        assert [step.loss for step in rank.all(TrainStep)] == pytest.approx(losses, abs=ROUNDING)
    for step in range(STEPS):
        said = [rank.all(TrainStep)[step] for rank in ranks]
        assert len({each.params for each in said}) == tp, "what was gathered is the same on all replicas"
        for place, each in enumerate(said):
            column = [said[other] for other in shape.members("dp", place)]
            assert sum(each.shards) == pytest.approx(each.own[0] if each.own else None, abs=1e-9)
            parts = [other.shards[shape.dp_of(place)] for other in column]
            assert each.reduced == pytest.approx(sum(parts), abs=1e-5)


def test_what_workers_push_to_a_server_and_pull_is_the_same_training() -> None:
    """Only the server holds a sum, and all ranks have its parameters after every step, to the bit."""
    shape, ranks, whole = shape_of(0, 3, 1, ps=1), trained(0, 3, 1, ps=1), trained(0, 3, 1)
    for rank, same in zip(ranks, whole, strict=True):
        assert list(rank.entries) == list(schedule(shape, rank.place))
        losses = [step.loss for step in same.all(TrainStep)]
        assert [step.loss for step in rank.all(TrainStep)] == pytest.approx(losses, abs=ROUNDING)
    for step in range(STEPS):
        said = [rank.all(TrainStep)[step] for rank in ranks]
        assert len({each.params for each in said}) == 1
        sums = [sum(each.shards[place] for each in said) for place in range(3)]
        assert [each.reduced for each in said] == pytest.approx(sums, abs=1e-5)
        assert sums[1:] == [0.0, 0.0]

"""Replicas that share the optimizer, on real ranks: each sums and updates a shard."""

from __future__ import annotations

import functools

import pytest

from doctor.smoke.events import InitialParameters, TrainStep
from doctor.smoke.onhost.corpus import reference_init
from doctor.smoke.onhost.schedule import schedule
from doctor.smoke.onhost.shape import CellShape, ScheduledCall
from doctor.smoke.onhost.trainplan import micro_batches
from tests.support.smoke.ranks import RankOutput, run_ranks

STEPS = 20
ROUNDING = 1e-4
SHARED = [
    (1, 2, 1, 1),
    (3, 3, 1, 1),
    (1, 2, 1, 2),
    *(
        pytest.param(*each, marks=pytest.mark.long)
        for each in ((2, 2, 2, 1), (3, 2, 2, 1), (1, 4, 1, 1), (1, 2, 2, 2), (1, 2, 1, 5))
    ),
]
"""The stage of ZeRO, replicas, ranks that split a layer, and stages of a pipeline."""


def shape_of(zero: int, dp: int, tp: int, pp: int = 1, ps: int = 0) -> CellShape:
    micro = micro_batches(pp) if pp > 1 else 0
    whole = dp * tp * pp
    return CellShape(dp, tp, (whole,), STEPS, 5, waver_tries=2, pp=pp, micro=micro, zero=zero, ps=ps)


@functools.cache
def trained(zero: int, dp: int, tp: int, pp: int = 1, ps: int = 0) -> list[RankOutput]:
    ranks = run_ranks(shape_of(zero, dp, tp, pp, ps), limit=120, still=30)
    assert [(rank.code, rank.words) for rank in ranks] == [(0, "")] * (dp * tp * pp)
    return ranks


def _shown(entry: ScheduledCall) -> ScheduledCall:
    """As a page shows it, which knows no members of pairs."""
    return entry._replace(call=entry.call._replace(members=()))


@pytest.mark.parametrize(("zero", "dp", "tp", "pp"), SHARED)
def test_shards_add_up_to_the_whole(zero: int, dp: int, tp: int, pp: int) -> None:
    """Of each stage, if the model is cut: also of one that has no parameters."""
    shape, ranks, whole = shape_of(zero, dp, tp, pp), trained(zero, dp, tp, pp), trained(0, dp, tp, pp)
    for rank, same in zip(ranks, whole, strict=True):
        assert list(map(_shown, rank.entries)) == list(map(_shown, schedule(shape, rank.place)))
        assert rank.one(InitialParameters).params == reference_init(shape, rank.place)
        losses = [step.loss for step in same.all(TrainStep)]
        assert [step.loss for step in rank.all(TrainStep)] == pytest.approx(losses, abs=ROUNDING)
    for step in range(STEPS):
        said = [rank.all(TrainStep)[step] for rank in ranks]
        parts = {shape.part_of(place) for place in range(shape.world)}
        assert len({each.params for each in said}) <= len(parts), (
            "what was gathered is the same on all replicas"
        )
        for place, each in enumerate(said):
            column = [said[other] for other in shape.members("dp", place)]
            assert sum(each.shards) == pytest.approx(each.own[0] if each.own else None, abs=1e-9)
            added = [other.shards[shape.dp_of(place)] for other in column if other.shards]
            assert each.reduced == pytest.approx(sum(added), abs=1e-5)


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

"""The model cut in the stages of a pipeline, on real ranks."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import pytest

from doctor.smoke.events import Audit, InitialParameters, TrainStep
from doctor.smoke.onhost.corpus import reference_init
from doctor.smoke.onhost.schedule import schedule
from doctor.smoke.onhost.shape import CellShape, ScheduledCall
from doctor.smoke.onhost.trainplan import micro_batches
from tests.support.smoke.ranks import RankOutput, run_ranks

if TYPE_CHECKING:
    from collections.abc import Sequence

STEPS = 30
ROUNDING = 1e-4
CUTS = [
    (2, 1, 1),
    (4, 1, 1),
    (2, 2, 1),
    (2, 1, 1, 2),
    *(pytest.param(cut, marks=pytest.mark.long) for cut in ((3, 1, 1), (8, 1, 1), (2, 2, 2))),
    *(pytest.param(cut, marks=pytest.mark.long) for cut in ((4, 1, 1, 2), (2, 2, 2, 3))),
]
"""Stages, replicas, ranks that split a layer, and stages that each rank holds."""


def shape_of(pp: int, dp: int, tp: int, vpp: int = 1) -> CellShape:
    micro = micro_batches(pp) if pp > 1 else 0
    return CellShape(dp, tp, (pp * dp * tp,), STEPS, 5, waver_tries=2, pp=pp, micro=micro, vpp=vpp)


@functools.cache
def trained(pp: int, dp: int, tp: int, vpp: int = 1) -> list[RankOutput]:
    ranks = run_ranks(shape_of(pp, dp, tp, vpp), limit=120, still=30)
    assert [(rank.code, rank.words) for rank in ranks] == [(0, "")] * (pp * dp * tp)
    return ranks


@pytest.mark.parametrize("cut", CUTS)
class TestStages:
    def test_have_the_losses_of_the_whole_model(self, cut: Sequence[int]) -> None:
        _, dp, tp = cut[:3]
        whole, shape = trained(1, dp, tp), shape_of(*cut)
        for rank in trained(*cut):
            same = whole[rank.place % (dp * tp)]
            assert shape.dp_of(rank.place) == shape.dp_of(same.place)
            losses = [step.loss or 0.0 for step in rank.all(TrainStep)]
            assert losses == pytest.approx([step.loss for step in same.all(TrainStep)], abs=ROUNDING)
            assert losses[0] - losses[-1] > 2

    def test_keep_to_the_schedule(self, cut: Sequence[int]) -> None:
        for rank in trained(*cut):
            assert list(rank.entries) == [_shown(each) for each in schedule(shape_of(*cut), rank.place)]

    def test_hold_their_parts_and_compute_alike(self, cut: Sequence[int]) -> None:
        shape, ranks = shape_of(*cut), trained(*cut)
        for rank in ranks:
            assert rank.one(InitialParameters).params == reference_init(shape, rank.place)
            assert {audit.used == audit.votes[0] for audit in rank.all(Audit)} == {True}
        for step in range(STEPS):
            params = {rank.all(TrainStep)[step].params for rank in ranks}
            held = {reference_init(shape, place) for place in range(shape.world)}
            assert len(params) == len(held)


def _shown(entry: ScheduledCall) -> ScheduledCall:
    """A page does not show who a pair are."""
    return entry._replace(call=entry.call._replace(members=()))

"""The training of the smoke run, on real ranks."""

from __future__ import annotations

import functools
import math
import os
import signal
from pathlib import Path

import pytest

from doctor.smoke.events import (
    Audit,
    BatchHashes,
    Error,
    InitialParameters,
    PhaseEvent,
    RankEnd,
    RankStart,
    Solo,
    TrainStep,
)
from doctor.smoke.onhost.corpus import FLOOR, reference_batch, reference_init
from doctor.smoke.onhost.schedule import schedule
from doctor.smoke.onhost.shape import CellShape
from doctor.smoke.onhost.streamplan import reference_streams
from doctor.smoke.onhost.trainplan import GOLDEN, places_again, replicas_again
from tests.support.smoke.ranks import RankOutput, run_ranks

LAYOUTS = [
    (1, 1),
    (2, 1),
    (1, 2),
    (2, 2),
    *(pytest.param(*each, marks=pytest.mark.long) for each in ((3, 1), (4, 2), (2, 4))),
]
STEPS = 11
PHASES = ["start", "ready", "join", "collectives", "train", "audit"]


def shape_of(dp: int, tp: int, steps: int = STEPS, seed: int = 5) -> CellShape:
    return CellShape(dp=dp, tp=tp, hosts=(dp * tp,), steps=steps, seed=seed)


@functools.cache
def healthy(dp: int, tp: int, steps: int = STEPS) -> list[RankOutput]:
    ranks = run_ranks(shape_of(dp, tp, steps), limit=120, still=30)
    assert [(rank.code, rank.words) for rank in ranks] == [(0, "")] * (dp * tp)
    return ranks


@pytest.mark.parametrize(("dp", "tp"), LAYOUTS)
class TestHealthyRanks:
    def test_keep_to_the_schedule(self, dp: int, tp: int) -> None:
        for rank in healthy(dp, tp):
            assert list(rank.entries) == schedule(shape_of(dp, tp), rank.place)
            assert (rank.page["phase"], rank.page["inside"]) == ("done", 0)

    def test_say_what_they_do_in_order(self, dp: int, tp: int) -> None:
        for rank in healthy(dp, tp):
            assert [event.phase for event in rank.all(PhaseEvent)] == PHASES
            assert isinstance(rank.events[-1], RankEnd)
            assert [event.step for event in rank.all(TrainStep)] == list(range(STEPS))
            assert [event.step for event in rank.all(BatchHashes)] == [0, 1, 2, 10]
            assert [event.step for event in rank.all(Audit)] == [9, 10]

    def test_train_on_the_reference(self, dp: int, tp: int) -> None:
        shape = shape_of(dp, tp)
        for rank in healthy(dp, tp):
            assert rank.one(InitialParameters).params == reference_init(shape, rank.place)
            for batch in rank.all(BatchHashes):
                found = (batch.tokens, batch.mask, batch.labels)
                assert found == reference_batch(shape, batch.step, rank.place)
                known = reference_streams(shape, batch.step, rank.place)
                assert {"python", "torch"} <= set(batch.streams)
                assert all(known[name] == batch.streams[name] for name in known if name in batch.streams)

    def test_compute_alike(self, dp: int, tp: int) -> None:
        """Peers have one loss and replicas one set of parameters, equal in every bit, at every step."""
        ranks = healthy(dp, tp)
        for step in range(STEPS):
            steps = [rank.all(TrainStep)[step] for rank in ranks]
            assert all(event.finite and event.loss is not None for event in steps)
            assert [event.loss for event in steps] == [
                steps[place // tp * tp].loss for place in range(dp * tp)
            ]
            assert len({event.loss for event in steps}) == dp
            assert len({event.params for event in steps}) == tp

    def test_sum_what_they_contribute(self, dp: int, tp: int) -> None:
        shape, ranks = shape_of(dp, tp), healthy(dp, tp)
        for rank in ranks:
            members = shape.members("dp", rank.place)
            for step, event in enumerate(rank.all(TrainStep)):
                contributed = [ranks[member].all(TrainStep)[step].own or (0.0, 0.0) for member in members]
                total, magnitude = map(sum, zip(*contributed, strict=True))
                assert event.reduced is not None
                assert magnitude > 0
                assert abs(event.reduced - total) < 1e-7 * magnitude

    def test_agree_in_the_audits(self, dp: int, tp: int) -> None:
        shape, ranks = shape_of(dp, tp), healthy(dp, tp)
        for number in range(2):
            used = [rank.all(Audit)[number].used for rank in ranks]
            assert len(set(used)) == dp * tp
            for rank in ranks:
                replicas = replicas_again(shape, shape.dp_of(rank.place))
                expected = tuple(used[replica * tp + shape.tp_of(rank.place)] for replica in replicas)
                assert rank.all(Audit)[number].votes == expected
        alone = [rank.one(Solo).votes for rank in ranks]
        assert len({votes[0] for votes in alone}) == dp * tp
        for place, votes in enumerate(alone):
            assert votes == tuple(alone[other][0] for other in places_again(shape, place))

    def test_know_the_golden_product(self, dp: int, tp: int) -> None:
        for rank in healthy(dp, tp):
            assert rank.one(RankStart).golden == (GOLDEN,) * 3
            assert {"python", "torch", "cpu"} <= set(rank.one(RankStart).versions)


def test_ranks_of_two_hosts_also_measure_the_links() -> None:
    shape = shape_of(2, 2, 3)._replace(hosts=(2, 2))
    for rank in run_ranks(shape, limit=120, still=30):
        assert (rank.code, rank.words) == (0, "")
        assert [event.phase for event in rank.all(PhaseEvent)] == [*PHASES, "bandwidth"]
        calls = [
            entry._replace(call=entry.call._replace(members=())) for entry in schedule(shape, rank.place)
        ]
        assert list(rank.entries) == calls


def test_thirty_steps_learn() -> None:
    ranks = healthy(2, 2, 30)
    losses = [[event.loss or math.nan for event in rank.all(TrainStep)] for rank in ranks]
    mean = [sum(step) / 4 for step in zip(*losses, strict=True)]
    first, last = sum(mean[:3]) / 3, sum(mean[-10:]) / 10
    assert (first - last) / (first - FLOOR) > 0.8
    assert abs(sum(losses[0][-10:]) - sum(losses[2][-10:])) / 10 < 0.55


def test_nothing_is_written_to_disk(tmp_path: Path) -> None:
    """torch's class for Adam would leave a folder among the temporary files."""
    before = set(os.listdir("/dev/shm"))
    where = {name: str(tmp_path) for name in ("TMPDIR", "HOME", "XDG_CACHE_HOME")}
    ranks = run_ranks(shape_of(2, 1, 3), environment=where)
    assert [rank.code for rank in ranks] == [0, 0]
    assert list(tmp_path.rglob("*")) == []
    assert {name for name in set(os.listdir("/dev/shm")) - before if name.startswith("torch")} == set()


def test_a_rank_reports_what_ends_it() -> None:
    """The heads of the model cannot be divided among three ranks."""
    ranks = run_ranks(shape_of(1, 3), only=["train"])
    assert [rank.code for rank in ranks] == [3, 3, 3]
    assert all(rank.events[-1] == rank.one(Error) for rank in ranks)
    error = ranks[0].one(Error)
    assert (error.type, ranks[0].page["phase"]) == ("RuntimeError", "train")
    assert "model.py" in error.trace


def test_a_rank_that_is_at_work_shows_its_stack() -> None:
    (rank,) = run_ranks(shape_of(1, 1, 1_000_000), only=["train"], limit=4)
    assert (rank.code, rank.signal, rank.killed) == (None, signal.SIGKILL, True)
    assert rank.page["phase"] == "train"
    assert "train.py" in rank.stack

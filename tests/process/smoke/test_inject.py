"""Injected faults: each really has its documented effect on real ranks."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from doctor.smoke.events import Audit, BatchHashes, Collectives, Error, InitialParameters, TrainStep
from doctor.smoke.onhost.corpus import reference_batch, reference_init
from doctor.smoke.onhost.schedule import join_calls
from doctor.smoke.onhost.shape import CellShape, ScheduledCall, numbered
from doctor.smoke.onhost.streamplan import reference_streams
from doctor.smoke.onhost.trainplan import train_calls
from tests.support.cases import cases_with
from tests.support.smoke.ranks import RankOutput, run_ranks

SHAPE = CellShape(2, 2, (4,), 4, 7)
STEP = 1
HANGING = ("never-join", "stop", "stuck", "spin", "op", "order")
"""Kinds after which nothing moves: for these alone, a short wait suffices."""


# Behaviour of ranks. A fault of one rank must not show in the others' reports about themselves.


def ranks_with(
    *kinds: str, shape: CellShape = SHAPE, step: int | None = STEP, only: Sequence[str] = ("train",)
) -> list[RankOutput]:
    """Run with the first kind of fault on rank 0, the second on rank 1, and so on; "" means no fault."""
    injects = [{"kind": kind, "rank": rank, "step": step} for rank, kind in enumerate(kinds) if kind]
    return run_ranks(shape, injects, still=2.0 if kinds[1] in HANGING else 10.0, only=only)


def disturbed(ranks: list[RankOutput]) -> list[int]:
    return [rank.place for rank in ranks if rank.page["disturbed"]]


def off_schedule(rank: RankOutput, shape: CellShape = SHAPE) -> tuple[ScheduledCall, ScheduledCall] | None:
    """The first collective that is not on the schedule, and the scheduled one."""
    expected = numbered({"join": join_calls(shape, rank.place), "train": train_calls(shape, rank.place)})
    for number, entered in enumerate(rank.entries):
        if entered != expected[number]:
            return entered, expected[number]
    return None


def _killed(rank: RankOutput) -> bool:
    return rank.signal == 9 and not rank.killed


def _still_there(rank: RankOutput) -> bool:
    return rank.killed and not rank.page["inside"]


def _raised(rank: RankOutput) -> bool:
    return rank.code == 3 and rank.one(Error).type == "RuntimeError" and "injected" in rank.one(Error).text


def _gone_silently(rank: RankOutput) -> bool:
    return rank.code == 7 and not rank.all(Error) and not rank.words


@cases_with(_killed, _still_there, _raised, _gone_silently)
def test_a_rank_that_ends_or_stands_still(kind: str, ended: Callable[[RankOutput], bool], stack: str) -> None:
    ranks = ranks_with("", kind)
    assert ended(ranks[1])
    assert stack in ranks[1].stack
    assert (ranks[1].page["phase"], ranks[1].page["step"]) == ("train", STEP)
    assert disturbed(ranks) == [1]
    assert [off_schedule(rank) for rank in ranks] == [None] * 4
    assert not any(rank.page["phase"] == "done" for rank in ranks)
    assert ranks[0].page["inside"], "it waits for the rank"


def test_a_rank_that_never_joins() -> None:
    ranks = ranks_with("", "never-join", step=None)
    assert disturbed(ranks) == [1]
    assert {(rank.page["phase"], len(rank.entries), rank.killed) for rank in ranks} == {("join", 0, True)}
    assert "_sleep" in ranks[1].stack
    assert not any("_sleep" in ranks[place].stack for place in (0, 2, 3))


@pytest.mark.parametrize("tp", [1, 2])
@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("shape", lambda call: call._replace(bytes=call.bytes - 4)),
        ("dtype", lambda call: call._replace(dtype="float64", bytes=2 * call.bytes)),
        ("op", lambda call: call._replace(op="broadcast")),
        ("order", lambda call: call._replace(group="world", bytes=4)),
    ],
)
def test_a_rank_that_calls_something_else(kind: str, change: Callable[[Any], Any], tp: int) -> None:
    shape = CellShape(2, tp, (2 * tp,), 4, 7)
    ranks = ranks_with("", kind, shape=shape)
    off = off_schedule(ranks[1], shape)
    assert off is not None
    entered, wanted = off
    assert (wanted.call.group, wanted.call.op, wanted.call.step) == ("dp", "all_reduce", STEP)
    assert entered.call._replace(end=-1) == change(wanted.call)
    assert entered.position == wanted.position
    assert disturbed(ranks) == [1]
    assert not any(off_schedule(rank, shape) for rank in ranks if rank.place != 1)


@pytest.mark.parametrize(("kind", "steps"), [("skip", (STEP + 1, STEP)), ("extra", (STEP, STEP + 1))])
def test_a_rank_that_calls_a_collective_too_few_or_too_many(kind: str, steps: tuple[int, int]) -> None:
    ranks = ranks_with("", kind)
    off = off_schedule(ranks[1])
    assert off is not None
    entered, due = off
    assert (entered.call.step, due.call.step) == steps
    assert (due if kind == "skip" else entered).call.group == "dp"
    assert disturbed(ranks) == [1]
    assert not any(off_schedule(rank) for rank in ranks if rank.place != 1)


# Data and random numbers.


def data_differs(rank: RankOutput, shape: CellShape) -> dict[str, set[int]]:
    """The steps, by name, at which a rank's data or random numbers are wrong."""
    differs: dict[str, set[int]] = {}
    for batch in rank.all(BatchHashes):
        tokens, mask, labels = reference_batch(shape, batch.step, rank.place)
        expected = {"tokens": tokens, "mask": mask, "labels": labels}
        expected.update(reference_streams(shape, batch.step, rank.place))
        got = {"tokens": batch.tokens, "mask": batch.mask, "labels": batch.labels, **batch.streams}
        for name in expected.keys() & got.keys():
            if got[name] != expected[name]:
                differs.setdefault(name, set()).add(batch.step)
    return differs


ALL, LATER = {0, 1, 2, 3}, {1, 2, 3}
MASK = {"mask": LATER, "labels": LATER}
SEED = {**MASK, "python": LATER, "torch": LATER}


def test_masks_and_data_that_differ() -> None:
    shape = CellShape(8, 1, (8,), 4, 7)
    kinds = ("mask", "mask-stray", "mask-hash", "mask-time", "mask-ahead", "same-data", "shuffled", "")
    ranks = ranks_with(*kinds, shape=shape)
    with_numpy = "numpy" in ranks[7].all(BatchHashes)[0].streams
    seed = {**SEED, "numpy": LATER} if with_numpy else SEED
    expected: list[dict[str, set[int]]] = [
        MASK,
        {**MASK, "python": LATER},
        seed,
        seed,
        seed,
        {**seed, "tokens": LATER},
        {"labels": LATER},
        {},
    ]
    assert [data_differs(rank, shape) for rank in ranks] == expected
    assert disturbed(ranks) == list(range(7))
    assert {rank.code for rank in ranks} == {0}
    fifth, fourth = ranks[5].all(BatchHashes), ranks[4].all(BatchHashes)
    assert len(fifth) == len(fourth) == 4
    for batch in fifth[1:]:
        assert (batch.tokens, batch.mask, batch.labels) == reference_batch(shape, batch.step, 4)
        assert batch.streams["python"] == reference_streams(shape, batch.step, 4)["python"]
    ahead = ranks[4].all(BatchHashes)[1]
    assert ahead.streams["torch"] == reference_streams(shape, 2, 4)["torch"]


def test_faults_of_a_replica_are_those_of_all_its_ranks() -> None:
    ranks = ranks_with("", "shuffled")
    assert [data_differs(rank, SHAPE) for rank in ranks] == [{"labels": LATER}] * 2 + [{}] * 2
    assert disturbed(ranks) == [0, 1]
    assert ranks[0].all(BatchHashes) == ranks[1].all(BatchHashes)


# Computation.


def params(rank: RankOutput) -> list[str]:
    return [rank.one(InitialParameters).params, *(step.params for step in rank.all(TrainStep))]


def test_parameters_that_differ() -> None:
    shape = CellShape(4, 1, (4,), 4, 7)
    first = ranks_with("other-init", "param-bit", "no-sync", "", shape=shape)
    right = params(first[3])
    assert right[0] == reference_init(shape, 0)
    same = [[mine == theirs for mine, theirs in zip(params(rank), right, strict=True)] for rank in first]
    assert same == [
        [False] * 5,
        [True, True, False, False, False],
        [True, True, False, False, False],
        [True] * 5,
    ]
    assert disturbed(first) == [0, 1, 2]
    assert not any(off_schedule(rank, shape) for rank in first)


def test_a_replica_without_sync_keeps_its_own_gradient() -> None:
    ranks = ranks_with("", "no-sync")
    for rank in ranks:
        steps = rank.all(TrainStep)
        own = [step.own is not None and step.own[0] == step.reduced for step in steps]
        assert own == ([False, True, True, True] if rank.place < 2 else [False] * 4)
    assert disturbed(ranks) == [0, 1]


@pytest.mark.parametrize(("zero", "ps"), [(0, 0), (2, 0), (0, 1)])
def test_a_part_and_an_update_that_are_lost(zero: int, ps: int) -> None:
    """Whoever pulls or gathers the parameters gets those of the others at the next step, which began with the
    old ones.
    """
    shape = CellShape(3, 1, (3,), 4, 7, zero=zero, ps=ps)
    ranks = ranks_with("", "lost-part", "no-update", shape=shape)
    right = ranks_with("", "", "", shape=shape)
    same = [
        [mine == theirs for mine, theirs in zip(params(one), params(other), strict=True)]
        for one, other in zip(ranks[1:], ranks[:2], strict=True)
    ]
    assert same == [[True] * 5, [True, True, False, False, zero + ps > 0]]
    assert params(ranks[0])[:2] == params(right[0])[:2]
    assert params(ranks[0])[2] != params(right[0])[2]
    assert disturbed(ranks) == [1, 2]


@pytest.mark.parametrize(("zero", "ps"), [(1, 0), (0, 1)])
def test_a_flipped_bit_is_shown_though_the_step_overwrites_it(zero: int, ps: int) -> None:
    ranks = ranks_with("", "param-bit", "", shape=CellShape(3, 1, (3,), 4, 7, zero=zero, ps=ps))
    said = [params(rank) for rank in ranks]
    assert said[0] == said[2]
    assert [mine == theirs for mine, theirs in zip(said[1], said[0], strict=True)] == [
        True,
        True,
        False,
        True,
        True,
    ]


def test_gradients_that_are_wrong() -> None:
    shape = CellShape(4, 1, (4,), 4, 7)
    ranks = ranks_with("grad-bit", "stale", "", "", shape=shape)
    audits = [rank.one(Audit) for rank in ranks]
    assert [audit.step for audit in audits] == [3] * 4
    assert [audit.used == audit.votes[0] for audit in audits] == [False, False, True, True]
    assert [audits[2].votes[1], audits[2].votes[2]] == [audits[1].votes[0], audits[0].votes[0]]
    magnitudes = [step.own and step.own[1] for step in ranks[1].all(TrainStep)]
    assert magnitudes[0]
    assert magnitudes[1:] == [0.0] * 3
    assert disturbed(ranks) == [0, 1]
    assert {rank.code for rank in ranks} == {0}


def test_a_gradient_that_is_not_a_number_is_the_rank_s_own() -> None:
    ranks = ranks_with("", "nan")
    finite = [[step.finite for step in rank.all(TrainStep)][:2] for rank in ranks]
    assert finite == [[True, True], [True, False], [True, True], [True, True]]
    assert [rank.all(TrainStep)[1].loss is not None for rank in ranks] == [True] * 4
    assert disturbed(ranks) == [1]


@pytest.mark.parametrize("kind", ["frozen", "lr-explode"])
def test_a_learning_rate_is_wrong_on_all_ranks(kind: str) -> None:
    ranks = ranks_with("", kind, step=None if kind == "frozen" else STEP)
    assert disturbed(ranks) == [0, 1, 2, 3]
    for rank in ranks:
        if kind == "frozen":
            assert len(set(params(rank))) == 1
        else:
            losses = [step.loss for step in rank.all(TrainStep)]
            assert None not in losses[:3]
            assert losses[2] is not None
            assert losses[0] is not None
            assert losses[2] > 2 * losses[0]


def test_a_wrong_sum_in_the_collectives_phase() -> None:
    ranks = ranks_with("", "wrong-result", step=None, only=("collectives",))
    reports = [rank.one(Collectives).wrong for rank in ranks]
    assert [bool(report) for report in reports] == [False, True, False, False]
    assert {wrong.name.split()[0] for wrong in reports[1]} == {"all_reduce"}
    assert {wrong.group for wrong in reports[1]} == {"world", "tp", "dp"}
    assert disturbed(ranks) == [1]


@pytest.mark.parametrize("shape", [SHAPE, CellShape(1, 2, (2,), 4, 7)], ids=["dp", "tp"])
def test_a_wrong_sum_in_the_training(shape: CellShape) -> None:
    ranks = ranks_with("", "wrong-result", shape=shape)
    assert disturbed(ranks) == [1]
    healthy = [step.params for step in run_ranks(shape, only=("train",))[1].all(TrainStep)]
    got = [step.params for step in ranks[1].all(TrainStep)]
    assert got[0] == healthy[0]
    assert got[1] != healthy[1]


def test_a_slow_rank_computes_twice_as_long() -> None:
    shape = CellShape(2, 1, (2,), 16, 7)
    ranks = ranks_with("", "slow", shape=shape)

    def usual(rank: RankOutput) -> float:
        return sorted(step.cpu for step in rank.all(TrainStep)[STEP:])[7]

    assert 1.5 < usual(ranks[1]) / usual(ranks[0]) < 2.8
    assert disturbed(ranks) == [1]

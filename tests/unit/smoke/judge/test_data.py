"""For every fault in the numbers of a run, exactly its culprit is named, and consequences are not charged."""

from dataclasses import replace
from typing import Any

import pytest

from doctor.model import Confidence
from doctor.rules.smoke import problem
from doctor.smoke.events import BatchHashes, RankStart, TrainStep
from doctor.smoke.judge.charge import SmokeCharge
from doctor.smoke.judge.data import judge_data
from doctor.smoke.onhost.corpus import reference_batch, reference_init
from doctor.smoke.onhost.streamplan import reference_streams
from doctor.smoke.onhost.trainplan import GOLDEN
from doctor.smoke.result import RankOutcome
from tests.support.cases import cases
from tests.support.each import each
from tests.support.smoke.results import changed, healthy, mark, plan_of, with_rank
from tests.support.smoke.spoilt import (
    SHAPES,
    Spoil,
    Verdict,
    alone_wrong,
    audited,
    batches,
    both,
    broken_device,
    data_of,
    drifted,
    initial,
    lost_part,
    masked,
    missing_part,
    risen,
    run_of,
    split_losses,
    started,
    steps,
    stray,
    summed_wrong,
    unsynced,
    verdicts,
    wrong,
)

MASK, DESYNC = "smoke-mask-divergence", "smoke-desync"
WRONG, CORRUPT, STALL = "smoke-collective-wrong", "smoke-corruption", "smoke-loss-stall"
CASES: dict[str, tuple[str, Spoil, list[Verdict]]] = {
    "a mask of its own": ("2x2", masked(3), [(MASK, "mask", (3,), False)]),
    "in a world of two": ("2x1", masked(1), [(MASK, "mask", (1,), False)]),
    "alone": ("1x1", masked(0), [(MASK, "mask", (0,), False)]),
    "two of four peers": ("1x4", both(masked(1), masked(2)), [(MASK, "mask", (1, 2), False)]),
    "from a later step on": ("4x2", masked(5, 10), [(MASK, "mask", (5,), False)]),
    "of the second cell": ("two cells", masked(6), [(MASK, "mask", (6,), False)]),
    "what follows from a mask": (
        "2x2",
        both(masked(3, 10), split_losses(3, 5), audited(2, used=True), audited(3, used=True)),
        [(MASK, "mask", (3,), False)],
    ),
    "what peers show before the mask is looked at": (
        "1x4",
        both(masked(1, 10), split_losses(1, 5)),
        [(MASK, "mask", (1,), False)],
    ),
    "labels of a replica": (
        "2x2",
        both(*(batches(r, lambda b: changed(b, labels=mark("shuffled", b.step))) for r in (2, 3))),
        [(MASK, "labels", (2, 3), False)],
    ),
    "another replica's data": (
        "4x2",
        both(data_of(2, 0), data_of(3, 0)),
        [(MASK, "same-data", (2, 3), False)],
    ),
    "one step ahead": ("2x2", data_of(1, 1, 1), [(MASK, "ahead", (1,), False)]),
    "a stray draw": ("2x2", stray(2, "numpy", first=10), [(MASK, "stream", (2,), False)]),
    "two streams at once": ("2x2", stray(2, "python", "torch"), [(MASK, "stream", (2,), False)]),
    "a stream and its mask": (
        "2x2",
        both(stray(2, "python", first=10), masked(2, 10)),
        [(MASK, "mask", (2,), False)],
    ),
    "a stream, and later a mask": (
        "2x2",
        both(stray(2, "python", first=10), masked(2, 20)),
        [(MASK, "stream", (2,), False)],
    ),
    "initial parameters": ("2x1", initial(1), [(DESYNC, "init", (1,), False)]),
    "of a whole replica": ("2x2", both(initial(2), initial(3)), [(DESYNC, "init", (2, 3), False)]),
    "gradient not reduced": ("2x1", unsynced(1, 7), [(DESYNC, "no-sync", (1,), False)]),
    "of a replica": ("4x2", both(unsynced(4, 7), unsynced(5, 7)), [(DESYNC, "no-sync", (4, 5), False)]),
    "by nobody": (
        "2x1",
        both(unsynced(0, 3), unsynced(1, 3)),
        [(DESYNC, "no-sync", (), False)],
    ),
    "parameters of one of three": ("3x1", drifted(2, 12), [(DESYNC, "parameters", (2,), False)]),
    "parameters of one of two": ("2x2", drifted(3, 12), [(DESYNC, "parameters", (1, 3), True)]),
    "parameters at an audit": (
        "4x2",
        both(drifted(4, 9), *(audited(rank, of=(2, 1, 0)) for rank in (4, 5))),
        [(DESYNC, "parameters", (4,), False)],
    ),
    "of one of two, at an audit": (
        "2x2",
        both(drifted(3, 9), *(audited(rank, of=(1, 0)) for rank in (2, 3))),
        [(DESYNC, "parameters", (1, 3), True)],
    ),
    "losses of peers": ("2x2", split_losses(1, 4), [(DESYNC, "tp-loss", (0, 1), True)]),
    "loss of one of four peers": ("1x4", split_losses(1, 4), [(DESYNC, "tp-loss", (1,), False)]),
    "wrong sum on one rank": ("2x1", summed_wrong(1, 11), [(WRONG, "sum", (1,), False)]),
    "a part lost": ("3x1", lost_part(1, (0, 1, 2), 11), [(WRONG, "sum", (1,), False)]),
    "wrong sum on all": (
        "2x1",
        both(summed_wrong(0, 11), summed_wrong(1, 11)),
        [(WRONG, "sum", (0, 1), True)],
    ),
    "used another gradient": ("2x2", audited(3, used=True), [(CORRUPT, "transient", (3,), False)]),
    "used another, alone": ("1x1", audited(0, used=True), [(CORRUPT, "transient", (0,), False)]),
    "peers used another": (
        "2x2",
        both(audited(2, used=True), audited(3, used=True)),
        [(CORRUPT, "transient", (2, 3), True)],
    ),
    "wrong in all gradients": ("3x1", audited(1, of=(0, 1, 2)), [(CORRUPT, "gradient", (1,), False)]),
    "wrong in one gradient": ("3x1", audited(1, of=(0,)), [(CORRUPT, "gradient", (1,), False)]),
    "in one, where the numbers of all are too large": (
        "3x1",
        both(risen(0, 1, 2), audited(1, of=(0,))),
        [(STALL, "diverged", (), False)],
    ),
    "in one, where those of most are": (
        "3x1",
        both(risen(0, 2), audited(1, of=(0,))),
        [(CORRUPT, "gradient", (1,), False)],
    ),
    "in one, where nothing was learned": (
        "3x1",
        both(
            *(steps(rank, lambda s: changed(s, loss=5.0 + s.step / 30)) for rank in range(3)),
            audited(1, of=(0,)),
        ),
        [(CORRUPT, "gradient", (1,), False)],
    ),
    "always wrong, and so the numbers are too large": (
        "3x1",
        both(risen(0, 1, 2), audited(1, of=(0, 1, 2)), alone_wrong(1)),
        [(CORRUPT, "gradient", (1,), False)],
    ),
    "used another gradient, and the numbers are too large": (
        "3x1",
        both(risen(0, 1, 2), audited(1, used=True)),
        [(STALL, "diverged", (), False)],
    ),
    "wrong data": ("4x2", both(audited(2, of=(1,)), audited(3, of=(1,))), [(CORRUPT, "data", (2, 3), False)]),
    "one of two is wrong": ("2x1", audited(1, of=(0, 1)), [(CORRUPT, "gradient", (0, 1), True)]),
    "alone, it is known which peer": (
        "4x2",
        broken_device(5, dp=4, replica=(4, 5)),
        [(CORRUPT, "alone", (5,), False)],
    ),
    "not alone, it is not": (
        "4x2",
        broken_device(dp=4, replica=(4, 5)),
        [(CORRUPT, "gradient", (4, 5), True)],
    ),
    "alone only": ("2x2", alone_wrong(0), [(CORRUPT, "alone", (0,), False)]),
    "alone, of two": ("2x1", alone_wrong(0), [(CORRUPT, "alone", (0, 1), True)]),
    "a product": ("3x1", started(1, golden=("bad",) * 3), [(CORRUPT, "golden", (1,), False)]),
    "a product now and then": (
        "2x1",
        started(1, golden=("5c0ffee5c0ffee00", "bad", "5c0ffee5c0ffee00")),
        [(CORRUPT, "golden-again", (1,), False)],
    ),
    "a product, of two": ("2x1", started(1, golden=("bad",) * 3), [(CORRUPT, "golden", (0, 1), True)]),
    "a product and gradients": (
        "3x1",
        both(started(1, golden=("bad",) * 3), audited(1, of=(0, 1, 2)), alone_wrong(1)),
        [(CORRUPT, "golden", (1,), False)],
    ),
    "a product, and the sums of its gradients": (
        "2x1",
        both(
            *(started(rank, golden=(GOLDEN if rank == 0 else "bad",) * 3) for rank in (0, 1)),
            *(summed_wrong(rank, 0) for rank in (0, 1)),
        ),
        [(CORRUPT, "golden", (1,), False)],
    ),
    "a product decides whose parameters": (
        "2x1",
        both(started(1, golden=("x", "y", "z")), drifted(1, 12)),
        [(CORRUPT, "golden-again", (1,), False)],
    ),
    "wrong result on one": (
        "2x2",
        both(
            wrong(1, "all_reduce of 1000 float32", 3, 7, 8, 5), wrong(1, "broadcast of 1 int32", 0, 1, 2, 9)
        ),
        [(WRONG, "collective", (1,), False)],
    ),
    "spread by what follows": (
        "2x2",
        both(
            wrong(1, "reduce_scatter of 1000 int32", 3, 7, 8, 5),
            *(wrong(r, "all_gather of 1000 int32", 253, 7, 8, 6) for r in range(4)),
        ),
        [(WRONG, "collective", (1,), False)],
    ),
    "a part missing": (
        "2x2",
        missing_part(2, 4, (5, 0), (8, 3)),
        [(WRONG, "collective", (2,), False)],
    ),
    "wrong everywhere": (
        "2x2",
        both(*(wrong(r, "all_reduce of 1 int32", 0, 999, 26, 5) for r in range(4))),
        [(WRONG, "collective", (0, 1, 2, 3), True)],
    ),
    "what one sends": (
        "2x2",
        both(*(wrong(r, "all_gather of 1000 int32 from 3", 0, 4, 5, 5) for r in range(3))),
        [(WRONG, "collective", (3,), False)],
    ),
    "what one broadcasts": (
        "2x2",
        both(*(wrong(r, "broadcast of 1000 int32", 7, 4, 5, 5) for r in (0, 1, 3))),
        [(WRONG, "collective", (2,), False)],
    ),
    "in one dp group": (
        "4x2",
        wrong(3, "all_reduce of 1000 int32", 7, 4, 5, 50, "dp"),
        [(WRONG, "collective", (3,), False)],
    ),
    "what follows from a collective": (
        "4x2",
        both(wrong(3, "all_reduce of 1000 int32", 7, 4, 5, 50), summed_wrong(3, 0)),
        [(WRONG, "collective", (3,), False)],
    ),
    "an unknown name": ("2x1", wrong(1, "all_reduce", 7, "a", "b", 50), [(WRONG, "collective", (1,), False)]),
    "two faults, far apart": (
        "two cells",
        both(masked(1), audited(6, used=True)),
        [(MASK, "mask", (1,), False), (CORRUPT, "transient", (6,), False)],
    ),
}


@each("name", CASES)
def test_the_culprit_is_named_exactly(name: str) -> None:
    """Each charge is a sentence with numbers."""
    shape, spoil, expected = CASES[name]
    result = spoil(run_of(shape))
    charges = judge_data(result)
    assert verdicts(charges) == expected
    for charge in charges:
        assert charge.summary
        assert charge.expected
        assert charge.actual
        assert charge.evidence
        assert charge.phase in ("start", "collectives", "train", "audit")
        assert not charge.undecided or problem(charge, result).confidence is Confidence.SUSPECT
        assert set(charge.ranks).isdisjoint(charge.victims)
        assert all(f"rank {rank} " not in charge.summary for rank in charge.ranks)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_healthy_run_is_not_charged(shape: str) -> None:
    assert judge_data(run_of(shape)) == ()


@cases
def test_what_ended_the_run_comes_before_what_followed(charge: SmokeCharge, left: bool) -> None:
    result = drifted(1, 12)(run_of("3x1"))
    assert bool(judge_data(result, [replace(charge, ranks=(2,))])) == left


@pytest.mark.parametrize("late", [1, 3, 25])
def test_sums_from_mismatched_calls_are_charged_to_no_rank(late: int) -> None:
    """Rank 3 skipped an all-reduce; rank 1 received what rank 3 sent in the next step instead. The pages show
    it only some steps later.
    """
    result = both(
        steps(1, lambda s: changed(s, reduced=(s.reduced or 0) + 1), 2),
        unsynced(3, 2),
        drifted(1, 2),
    )(run_of("2x2"))
    assert {rank for _, _, ranks, _ in verdicts(judge_data(result)) for rank in ranks} == {1, 3}
    skipped = SmokeCharge("smoke-mismatch", "skip", "it skipped", ranks=(3,), phase="train", step=2 + late)
    assert judge_data(result, [skipped]) == ()


@cases
def test_wrong_results_of_mismatched_calls_are_charged_to_no_rank(phase: str, left: bool) -> None:
    result = wrong(1, "all_reduce of 1000 int32", 0, 5, 6, 4)(run_of("2x2"))
    mismatch = SmokeCharge("smoke-mismatch", "skip", "it skipped", ranks=(3,), phase=phase)
    assert bool(judge_data(result, [mismatch])) == left


def test_a_hang_of_another_cell_excuses_nothing() -> None:
    result = audited(6, used=True)(run_of("two cells"))
    hang = SmokeCharge("smoke-hang", "outside", "it hangs", ranks=(0,), phase="train", step=2)
    assert verdicts(judge_data(result, [hang])) == [(CORRUPT, "transient", (6,), False)]


def test_a_run_that_ended_early_is_judged_by_the_steps_that_all_finished() -> None:
    result = drifted(1, 5)(run_of("3x1"))
    for rank, last in enumerate((9, 8, 4)):
        result = with_rank(result, rank, steps=result.ranks[rank].steps[: last + 1])
    assert judge_data(result) == ()
    result = with_rank(result, 2, steps=run_of("3x1").ranks[2].steps[:6])
    assert verdicts(judge_data(result)) == [(DESYNC, "parameters", (1,), False)]


@pytest.mark.parametrize("other", [{"product": "aarch64"}, {"versions": {"torch": "2.1.0"}}])
def test_bits_are_compared_between_alike_ranks_only(other: dict[str, Any]) -> None:
    spoil = both(drifted(2, 3), audited(2, of=(0, 1, 2)), alone_wrong(2), started(2, **other))
    assert judge_data(spoil(run_of("3x1"))) == ()


def test_replicas_that_drifted_apart_are_not_audited() -> None:
    """Their gradients differ because their parameters differ."""
    spoil = both(drifted(2, 12), audited(2, of=(0, 1, 2), first=19))
    assert verdicts(judge_data(spoil(run_of("3x1")))) == [(DESYNC, "parameters", (2,), False)]


@pytest.mark.parametrize(("shape", "decided"), [("3x1", True), ("2x1", False)])
def test_parameters_that_changed_at_an_audited_step_explain_the_gradient(shape: str, decided: bool) -> None:
    """A bit of the parameters was flipped just before the gradient was computed."""
    of = (0, 1, 2) if decided else (0, 1)
    spoil = both(drifted(1, 9), audited(1, of=of, first=9))
    ranks = (1,) if decided else (0, 1)
    assert verdicts(judge_data(spoil(run_of(shape)))) == [(DESYNC, "parameters", ranks, not decided)]


@pytest.mark.parametrize(("error", "found"), [(1e-6, False), (1e-5, True)])
def test_sums_may_differ_only_by_rounding(error: float, found: bool) -> None:
    """The limit is 1e-7 of the magnitudes, which are 36 here."""
    result = steps(1, lambda s: changed(s, reduced=(s.reduced or 0) + error), 4)(run_of("3x1"))
    assert bool(judge_data(result)) == found


def test_numbers_beyond_the_plan_are_left_out() -> None:
    far = 2**53
    result = batches(0, lambda b: b)(run_of("2x1"))
    seen = result.ranks[1]
    odd = BatchHashes(far, "x", "y", "z", {"torch": "w"})
    step = TrainStep(far, None, False, "x", (1e308, 1e308), -1e308)
    result = with_rank(result, 1, batches=(*seen.batches, odd), steps=(*seen.steps, step))
    assert judge_data(result) == ()


def test_references_are_those_of_the_ranks_cell() -> None:
    plan = plan_of(hosts=4, each=2, tp=2, cells=2)
    first, second = plan.shape(0), plan.shape(1)
    assert reference_batch(first, 0, 0) != reference_batch(second, 0, 0)
    assert reference_init(first, 0) != reference_init(second, 0)
    assert reference_streams(first, 0, 0) != reference_streams(second, 0, 0)


def test_without_data_no_rank_is_charged() -> None:
    plan = plan_of(**SHAPES["4x2"])
    result = replace(healthy(plan), ranks=tuple(RankOutcome(seat.rank) for seat in plan.seats))
    assert judge_data(result) == ()
    empty = RankStart({}, {}, ())
    result = replace(result, ranks=tuple(replace(seen, started=empty) for seen in result.ranks))
    assert judge_data(result) == ()


def test_ranks_that_share_a_fault_of_their_host_do_not_outvote_the_others() -> None:
    result = both(alone_wrong(4), alone_wrong(5, like=4))(healthy(plan_of(4, 2, tp=2)))
    charges = judge_data(result)
    assert [(c.check, c.kind, c.ranks, c.undecided) for c in charges] == [(CORRUPT, "alone", (4, 5), False)]


def test_two_hosts_that_differ_are_undecided() -> None:
    result = both(alone_wrong(2), alone_wrong(3, like=2))(healthy(plan_of(2, 2)))
    charges = judge_data(result)
    assert [(charge.ranks, charge.undecided) for charge in charges] == [((0, 1, 2, 3), True)]


def test_one_wrong_rank_of_a_host_is_named_even_with_two_hosts() -> None:
    charges = judge_data(alone_wrong(3)(healthy(plan_of(2, 2))))
    assert [(c.kind, c.ranks, c.undecided) for c in charges] == [("alone", (3,), False)]

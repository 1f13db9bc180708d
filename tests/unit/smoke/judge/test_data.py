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
from doctor.smoke.result import RankOutcome
from tests.support.cases import cases, from_cases
from tests.support.each import each
from tests.support.smoke import spoilt
from tests.support.smoke.results import changed, healthy, plan_of, with_rank
from tests.support.smoke.spoilt import (
    SHAPES,
    Spoil,
    Verdict,
    alone_wrong,
    audited,
    batches,
    both,
    drifted,
    run_of,
    started,
    steps,
    unsynced,
    verdicts,
    wrong,
)

DESYNC = "smoke-desync"
CORRUPT = "smoke-corruption"
CASES = from_cases(__file__, "CASES", dict[str, tuple[str, Spoil, list[Verdict]]], **vars(spoilt))


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


@pytest.mark.parametrize("changes", [False, True])
def test_of_two_replicas_the_one_that_a_step_did_not_change_is_named(changes: bool) -> None:
    """If both changed, either may be wrong."""
    result = run_of("2x1")
    old = next(step.params for step in result.ranks[1].steps if step.step == 11)
    kept = steps(1, lambda s: changed(s, params=old), 12, 13)
    (charge,) = judge_data(both(*([] if changes else [kept]), drifted(1, 12 if changes else 13))(result))
    assert (charge.check, charge.step) == ("smoke-desync", 12)
    assert (charge.ranks, charge.undecided) == (((0, 1), True) if changes else ((1,), False))


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


@pytest.mark.parametrize(("other", "guilty"), [(1, {2}), (5, {0, 1, 2})])
def test_a_rank_that_kept_its_gradient_explains_the_one_sum_of_all_others(
    other: int, guilty: set[int]
) -> None:
    """Ranks 0 and 1 added what rank 2 sent next; if their sums differ, one of them may be wrong itself."""

    def with_sum(rank: int, more: int) -> Spoil:
        return steps(rank, lambda s: changed(s, reduced=(s.reduced or 0) + more), 2)

    result = both(with_sum(0, 1), with_sum(1, other), unsynced(2, 2))(run_of("3x1"))
    assert {rank for _, _, ranks, _ in verdicts(judge_data(result)) for rank in ranks} == guilty


@cases
def test_wrong_results_of_mismatched_calls_are_charged_to_no_rank(phase: str, left: bool) -> None:
    result = wrong(1, "all_reduce of 1000 int32", 0, 5, 6, 4)(run_of("2x2"))
    mismatch = SmokeCharge("smoke-mismatch", "skip", "it skipped", ranks=(3,), phase=phase)
    assert bool(judge_data(result, [mismatch])) == left


def exchanged(rank: int, peer: int) -> Spoil:
    return wrong(rank, f"exchange of 65536 float32 from {peer}", 0, 5, 6, 90 + rank, "pair")


def test_one_edge_with_wrong_data_has_two_suspects_and_several_edges_of_a_rank_name_it() -> None:
    run = healthy(replace(plan_of(4), layout={"pp": 4, "cp": 1, "ep": 1}))
    words = "what ranks exchanged with their neighbours arrived wrong"
    one = judge_data(exchanged(1, 0)(run))
    assert verdicts(one) == [("smoke-collective-wrong", "collective", (0, 1), True)]
    (several,) = judge_data(both(exchanged(1, 2), exchanged(3, 2))(run))
    assert (several.ranks, several.undecided, several.victims) == ((2,), False, (1, 3))
    assert words in several.summary
    far = judge_data(both(exchanged(1, 0), exchanged(2, 3))(run))
    assert [(charge.ranks, charge.undecided) for charge in far] == [((0, 1, 2, 3), True)]


def dealt(rank: int, sender: int, group: str = "world") -> Spoil:
    return wrong(rank, f"all_to_all of 1000 float32 from {sender}", 999, 0, 6, 8, group)


@pytest.mark.parametrize(
    ("spoilt", "ranks", "undecided"),
    [
        (dealt(3, 2), (2, 3), True),
        (both(dealt(3, 2), wrong(3, "all_reduce of 1 int32", 0, 1, 2, 30)), (3,), False),
        (both(dealt(3, 2), wrong(0, "all_gather of 1000 int32 from 2", 0, 1, 2, 30)), (2,), False),
        (both(dealt(3, 2), dealt(0, 2)), (2,), False),
        (both(dealt(3, 2), dealt(3, 1)), (3,), False),
        (dealt(3, 3), (3,), False),
        (wrong(3, "all_gather of 1000 int32 from 2", 0, 1, 2, 8), (3,), False),
    ],
)
def test_who_sent_and_who_got_one_wrong_part_are_two_suspects(
    spoilt: Spoil, ranks: tuple[int, ...], undecided: bool
) -> None:
    charge, *_ = judge_data(spoilt(run_of("2x2")))
    assert (charge.check, charge.ranks, charge.undecided) == ("smoke-collective-wrong", ranks, undecided)


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

"""Devices that do not compute the same bits each time: they accuse no rank, and large errors still show."""

from dataclasses import replace

import msgspec
import pytest

from doctor.smoke.events import Audit, GradientBits, Solo, Sums, TrainStep
from doctor.smoke.judge import judge
from doctor.smoke.judge.cells import LEAST, MOST, close, tolerance, wavering
from doctor.smoke.onhost.trainplan import places_again, replicas_again
from doctor.smoke.result import RankOutcome, SmokeResult
from tests.support.smoke.results import healthy, plan_of, with_rank, with_steps

SPREAD, MAGNITUDE = 1e-7, 12.0
SHAPE = plan_of(4, 2, tp=2, backend="hccl").shape(0)


def near(value: float, rank: int) -> Sums:
    """Values that are the same on all ranks, except for their last bits."""
    return value + SPREAD * MAGNITUDE * (rank - 4) / 10, MAGNITUDE


def wavers(seen: RankOutcome) -> RankOutcome:
    """Every hash of its floating-point results is different; the numbers are close to those of the others."""
    place, own = seen.rank, f"{seen.rank:016x}"
    dp, tp = SHAPE.dp_of(place), SHAPE.tp_of(place)
    votes = [near(batch + tp / 10, place) for batch in replicas_again(SHAPE, dp)]
    alone = [near(batch, place) for batch in places_again(SHAPE, place)]
    return replace(
        seen,
        bits=GradientBits(("a", "b", own), SPREAD),
        audits=tuple(
            Audit(each.step, own, tuple(f"{n} {own}" for n, _ in enumerate(votes)), (votes[0], *votes))
            for each in seen.audits
        ),
        steps=tuple(
            msgspec.structs.replace(
                step,
                params=f"{step.step} {own}",
                weights=near(3 + tp, place),
                loss=(step.loss or 0) * (1 + SPREAD * place),
            )
            for step in seen.steps
        ),
        solo=Solo(tuple(f"{n} {own}" for n, _ in enumerate(alone)), tuple(alone)),
    )


@pytest.fixture(scope="module")
def result() -> SmokeResult:
    """Four replicas of two ranks, all of which waver a little, each in its own way."""
    made = healthy(plan_of(4, 2, tp=2, backend="hccl"))
    return replace(made, ranks=tuple(map(wavers, made.ranks)))


def test_nobody_is_accused_of_wavering(result: SmokeResult) -> None:
    assert judge(result) == ()
    assert wavering(result) == tuple(range(8))


def test_without_its_tries_the_same_run_would_be_accused(result: SmokeResult) -> None:
    steady = replace(result, ranks=tuple(replace(seen, bits=None) for seen in result.ranks))
    assert judge(steady)


def test_one_rank_that_wavers_is_enough_for_all_to_be_compared_closely(result: SmokeResult) -> None:
    first = replace(result.ranks[0], bits=GradientBits(("a", "b", "c"), SPREAD))
    others = (replace(seen, bits=GradientBits(("a", "a", "a"), 0.0)) for seen in result.ranks[1:])
    assert judge(replace(result, ranks=(first, *others))) == ()


def test_a_gradient_that_is_far_off_is_still_found(result: SmokeResult) -> None:
    seen = result.ranks[5]
    audits = tuple(
        msgspec.structs.replace(audit, sums=tuple((sums[0] + 0.5, sums[1]) for sums in audit.sums))
        for audit in seen.audits
    )
    (charge,) = judge(with_rank(result, 5, audits=audits))
    assert (charge.check, charge.ranks) == ("smoke-corruption", (4, 5))
    assert charge.undecided, "a parameter of rank 4 that is off shows in the gradients of rank 5"
    assert "within 1e-05" in charge.expected


def test_a_gradient_that_is_not_computed_again_is_of_its_rank_alone(result: SmokeResult) -> None:
    audits = tuple(
        msgspec.structs.replace(audit, sums=((audit.sums[0][0] + 0.5, MAGNITUDE), *audit.sums[1:]))
        for audit in result.ranks[5].audits
    )
    (charge,) = judge(with_rank(result, 5, audits=audits))
    assert (charge.kind, charge.ranks, charge.undecided) == ("transient", (5,), False)


def test_a_rank_that_alone_computes_something_else_is_found(result: SmokeResult) -> None:
    seen = result.ranks[2]
    assert seen.solo is not None
    solo = msgspec.structs.replace(seen.solo, sums=tuple((sums[0] - 1, sums[1]) for sums in seen.solo.sums))
    (charge,) = judge(with_rank(result, 2, solo=solo))
    assert (charge.check, charge.ranks) == ("smoke-corruption", (2,))


def test_parameters_that_drift_away_are_found(result: SmokeResult) -> None:
    drifted = with_steps(
        result, 6, lambda step: msgspec.structs.replace(step, weights=(4.0, MAGNITUDE)), first=11
    )
    (charge,) = judge(drifted)
    assert (charge.check, charge.kind, charge.ranks, charge.step) == ("smoke-desync", "parameters", (6,), 11)


def test_losses_of_one_replica_that_differ_are_found(result: SmokeResult) -> None:
    def more(step: TrainStep) -> TrainStep:
        return msgspec.structs.replace(step, loss=(step.loss or 0) * 1.01)

    odd = with_steps(result, 3, more, 7, 7)
    assert [(charge.kind, charge.step) for charge in judge(odd) if charge.check == "smoke-desync"] == [
        ("tp-loss", 7)
    ]


@pytest.mark.parametrize(("spread", "expected"), [(0.0, LEAST), (1e-9, LEAST), (1e-5, 2e-4), (1.0, MOST)])
def test_the_tolerance_follows_what_was_seen(result: SmokeResult, spread: float, expected: float) -> None:
    ranks = [replace(seen, bits=GradientBits(("a", "b"), spread)) for seen in result.ranks[:1]]
    assert tolerance(ranks) == pytest.approx(expected)
    assert tolerance([replace(ranks[0], bits=GradientBits(("a", "a"), spread))]) is None


def test_close_values_share_a_word() -> None:
    words = close({1: (1.0, 10.0), 2: (1.0 + 9e-5, 10.0), 3: (1.1, 10.0)}, 1e-5)
    assert words[1] == words[2] != words[3]
    assert close({}, 1e-5) == {}

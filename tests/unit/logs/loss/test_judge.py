"""Each fault in a curve is found, with its step and rank; curves that only look faulty cause no charge."""

import random
from math import inf, log, nan

import pytest

from doctor.logs.loss.judge import judge_curves, since_of
from doctor.logs.model import Curve, LogCause, Role, Symptom
from doctor.model import Confidence
from tests.support.cases import cases
from tests.unit.logs.loss.curves import curve, falling


def one(*curves: Curve) -> LogCause:
    (charge,) = judge_curves(curves)
    return charge


def healthy(seed: int = 1, many: int = 200, noise: float = 0.03) -> list[float]:
    return falling(random.Random(seed), many, noise)


def test_nan_is_named_with_its_step_and_its_first_rank() -> None:
    curves = []
    for rank in range(4):
        losses = healthy(rank)
        first = 120 if rank == 2 else 123
        losses[first:] = [nan] * (len(losses) - first)
        curves.append(curve(losses, rank))
    charge = one(*curves)
    assert charge.symptom == "loss-nan"
    assert charge.says == "The loss of rank 2 is NaN since step 1210"
    assert [who.rank for who in charge.who] == [2]
    assert any("ranks 0-1, 3 followed at step 1240" in how for how in charge.how)
    assert any("rank2.log:220" in how for how in charge.how)
    assert charge.confidence is Confidence.STRONG
    assert since_of(charge, curves[2]) == 120


def test_nan_that_all_ranks_print_at_once_accuses_none_alone() -> None:
    losses = [*healthy(many=50), nan, nan]
    charge = one(*(curve(losses, rank) for rank in range(4)))
    assert [who.rank for who in charge.who] == [0, 1, 2, 3]
    assert "ranks 0-3" in charge.says


def test_a_rank_that_stays_a_number_is_said_to() -> None:
    charge = one(curve([*healthy(many=50), inf], 1), curve([*healthy(2, 51)], 0))
    assert charge.says == "The loss of rank 1 is infinite since step 510"
    assert any("rank 0 stayed a number" in how for how in charge.how)


@pytest.mark.parametrize("losses", [[nan], [nan, nan], [2.0, nan], [inf]])
def test_nan_needs_no_more_than_one_loss(losses: list[float]) -> None:
    assert one(curve(losses)).symptom == "loss-nan"


def test_one_lost_step_of_the_loss_scale_is_healthy() -> None:
    losses = healthy()
    losses[3] = inf
    losses[90] = nan
    assert judge_curves([curve(losses)]) == ()


def test_nan_that_comes_and_goes_is_told() -> None:
    losses = healthy()
    for place in (50, 80, 110, 140, 170):
        losses[place] = nan
    assert "again and again since step 510" in one(curve(losses)).says


@pytest.mark.parametrize("noise", [0.0, 0.03, 0.1])
@pytest.mark.parametrize("times", [1.03, 1.1])
def test_a_loss_that_explodes_is_diverging(noise: float, times: float) -> None:
    losses = healthy(noise=noise)
    for place in range(140, 200):
        losses[place] = min(losses[139] * times ** (place - 139), 60.0) * (
            1 + noise * random.Random(place).gauss(0, 1)
        )
    if times == 1.03:
        losses += [losses[-1] * 3.0 for _ in range(40)]
    charge = one(curve(losses))
    assert charge.symptom == "loss-diverging"
    assert 1400 <= since_of(charge, curve(losses)) * 10 <= 1750  # type: ignore[operator]
    assert charge.confidence is Confidence.STRONG


@cases
def test_even_a_few_losses_show_that_they_leave_their_level(losses: list[float], since: str) -> None:
    told = [charge.says for charge in judge_curves([curve(losses)])]
    assert told == ([f"The loss of rank 0 rises since {since}"] if since else [])


def test_a_bump_that_comes_back_is_healthy() -> None:
    losses = healthy()
    for place in range(100, 130):
        losses[place] += 3 * (1 - abs(place - 115) / 15)
    assert judge_curves([curve(losses)]) == ()


@pytest.mark.parametrize("level", [log(50257), log(32000), log(151936), log(1000)])
@pytest.mark.parametrize("noise", [0.0005, 0.01])
def test_a_model_that_guesses_all_along_stands_still(level: float, noise: float) -> None:
    rng = random.Random(3)
    charge = one(curve([level * (1 + noise * rng.gauss(0, 1)) for _ in range(100)]))
    assert (charge.symptom, charge.confidence) == ("loss-stalled", Confidence.STRONG)
    assert charge.says == "The loss of rank 0 stands still: it never fell"


def test_a_classifier_that_guesses_is_not_charged() -> None:
    """Its loss is that of many sound models, too."""
    rng = random.Random(3)
    assert judge_curves([curve([2.3027 + 0.003 * rng.gauss(0, 1) for _ in range(100)])]) == ()


@pytest.mark.parametrize("many", [10, 49])
def test_a_beginning_is_no_standstill(many: int) -> None:
    assert judge_curves([curve([10.8] * many)]) == ()


def test_a_job_that_went_on_from_a_checkpoint_is_not_judged_by_its_beginning() -> None:
    rng = random.Random(3)
    assert (
        judge_curves([curve([10.9 * (1 + 0.001 * rng.gauss(0, 1)) for _ in range(100)], first=52_000)]) == ()
    )


def test_a_model_that_collapsed_is_back_where_it_began() -> None:
    rng = random.Random(5)
    losses = [10.8 * (1 + n / 8) ** -0.6 + 0.02 * rng.gauss(0, 1) for n in range(150)]
    losses += [10.8 + 0.02 * rng.gauss(0, 1) for _ in range(100)]
    # Both are true of this step, so either may be reported.
    for charge in judge_curves([curve(losses)]):
        assert charge.symptom in ("loss-stalled", "loss-diverging")
        assert "since step 15" in charge.says


def test_the_same_number_in_every_step_is_a_standstill() -> None:
    charge = one(curve([1.3862943] * 80))
    assert charge.says == "The loss of rank 0 is the same number in every step: it never fell"


def test_a_plateau_at_the_end_is_healthy() -> None:
    rng = random.Random(9)
    losses = [*healthy(many=60), *(2.2 * (1 + 0.002 * rng.gauss(0, 1)) for _ in range(1500))]
    assert judge_curves([curve(losses)]) == ()


def test_local_losses_of_replicas_differ_from_the_start_and_are_healthy() -> None:
    curves = [curve(healthy(seed), seed) for seed in range(4)]
    assert judge_curves(curves) == ()


def test_a_rise_before_nan_is_one_charge() -> None:
    rising = [*healthy(many=100), *(2.5 * 1.1**n for n in range(60)), nan]
    assert one(curve(rising)).symptom == "loss-nan"


def test_the_last_start_of_a_job_counts() -> None:
    failed = [*healthy(many=50), nan]
    assert judge_curves([curve(failed), curve(healthy(many=100))]) == ()


def test_a_file_given_twice_is_one() -> None:
    losses = [*healthy(many=50), nan]
    assert one(curve(losses), curve(losses)).count == 1


def test_losses_without_steps_are_counted() -> None:
    charge = one(curve([*healthy(many=30), nan], None, counted=True))
    assert charge.says == "The loss of train.log is NaN since loss no. 31"


def test_what_is_known_of_a_symptom_comes_with_its_charge() -> None:
    known = Symptom(
        "loss-nan",
        "t",
        "loss",
        Role.ROOT,
        (),
        causes=("a",),
        checks=("smoke-loss-nan",),
        remedy=("doctor smoke",),
    )
    (charge,) = judge_curves([curve([nan])], [known])
    assert (charge.causes, charge.checks) == (("a",), ("smoke-loss-nan",))
    assert charge.remedy is not None
    assert charge.remedy.commands == ("doctor smoke",)


@pytest.mark.parametrize(
    "losses",
    [
        [1e308, -1e308] * 50,
        [1e-320] * 100,
        [0.0] * 100,
        [1e308] * 100,
        [-1.0, 1e308, 0.0, 5e-324] * 30,
        [],
    ],
)
def test_absurd_numbers_break_nothing(losses: list[float]) -> None:
    judge_curves([curve(losses), curve(losses[1:], 1), curve(list(reversed(losses)), 2)])

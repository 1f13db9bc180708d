"""The loss of a run: both sides of each limit, which rank is named, and what the report shows."""

import math
import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doctor.model import Confidence
from doctor.smoke.judge.charge import SmokeCharge
from doctor.smoke.judge.curve import expected, least_of
from doctor.smoke.judge.data import judge_data, judge_nan
from doctor.smoke.judge.loss import judge_loss, loss_summary
from doctor.smoke.onhost.corpus import FLOOR
from doctor.smoke.onhost.shape import CellShape
from doctor.smoke.result import SmokeResult
from tests.support.cases import cases, from_cases
from tests.support.smoke.results import changed, healthy, plan_of, with_rank, with_steps

STALL, NAN = "smoke-loss-stall", "smoke-loss-nan"
Curve = Callable[[int, int], float | None]
"""The loss of a replica at a step."""


@cache
def run_of(hosts: int = 2, each: int = 2, tp: int = 2, cells: int = 1, steps: int = 30) -> SmokeResult:
    return healthy(plan_of(hosts=hosts, each=each, tp=tp, cells=cells, steps=steps))


def curved(result: SmokeResult, curve: Curve, cell: int | None = None) -> SmokeResult:
    for seen in result.ranks:
        seat = result.plan.seat(seen.rank)
        if cell in (None, seat.cell):
            dp = seat.place // result.plan.tp
            said = tuple(changed(step, loss=curve(step.step, dp)) for step in seen.steps)
            result = with_rank(result, seen.rank, steps=said)
    return result


def fallen(part: float) -> Curve:
    """A loss that falls by this share of the way at once."""
    return lambda step, _: 4.6 if step < 3 else 4.6 - part * (4.6 - FLOOR)


def behind(gap: float, *replicas: int) -> Curve:
    return lambda step, dp: 4.6 if step < 3 else 0.8 + gap * (dp in replicas)


def jumped(factor: float, at: int) -> Curve:
    return lambda step, _: 4.6 if step < 3 else factor if step == at else 0.8


def leaked(end: float) -> Curve:
    return lambda step, _: 4.6 if step < 3 else end


def verdicts(charges: tuple[SmokeCharge, ...]) -> list[tuple[str, str, tuple[int, ...], bool]]:
    return [(charge.check, charge.kind, charge.ranks, charge.undecided) for charge in charges]


@cases
def test_the_loss_must_approach_its_floor(steps: int, part: float, kind: str | None) -> None:
    result = curved(run_of(steps=steps), fallen(part))
    assert verdicts(judge_data(result)) == ([(STALL, kind, (), False)] if kind else [])


def measured(shape: CellShape, step: int, dp: int, above: float = 1.0) -> float:
    """A healthy loss with `above` times the usual excess over the lowest loss of its batch."""
    return least_of(shape, step, dp) + above * expected(shape.dp, range(step, step + 1))


@pytest.mark.parametrize("halt", [10, 12, 14])
@pytest.mark.parametrize(
    ("hosts", "steps"), [(2, 30), (4, 30), (2, 60), pytest.param(4, 200, marks=pytest.mark.slow)]
)
def test_a_loss_that_stops_falling_halfway_is_found(hosts: int, steps: int, halt: int) -> None:
    """Its parameters still change, and it has learned more than the 70 % that are always required."""
    result = run_of(hosts, steps=steps)
    shape = result.plan.shape(0)

    def curve(step: int, dp: int) -> float:
        stays = expected(shape.dp, range(halt, halt + 1))
        return least_of(shape, step, dp) + stays if step > halt else measured(shape, step, dp)

    assert not judge_data(curved(result, lambda step, dp: measured(shape, step, dp)))
    assert verdicts(judge_data(curved(result, curve))) == [(STALL, "stopped", (), False)]


@pytest.mark.parametrize("halt", [10, 15, 20, 29])
@pytest.mark.parametrize(("hosts", "each", "tp"), [(2, 2, 2), (1, 1, 1), (4, 1, 1)])
def test_parameters_that_no_longer_change_are_found_at_once(
    hosts: int, each: int, tp: int, halt: int
) -> None:
    """The parameters of all ranks stand still; if only one rank's do, the replicas are no longer equal."""
    result = run_of(hosts, each, tp)
    stood = result
    for seen in result.ranks:
        before = seen.steps[halt - 1].params
        stood = with_steps(stood, seen.rank, partial(changed, params=before), halt)
    (charge,) = judge_data(stood)
    assert (charge.kind, charge.ranks) == ("frozen", ())
    assert f"did not change in step {halt}:" in charge.summary
    assert (charge.check, charge.confidence) == (STALL, Confidence.CERTAIN)
    if hosts > 1:
        alone = with_rank(result, 0, steps=stood.ranks[0].steps)
        assert {charge.check for charge in judge_data(alone)} == {"smoke-desync"}


CURVES = from_cases(
    __file__,
    "CURVES",
    list[tuple[str, Curve, list[tuple[str, str, tuple[int, ...], bool]]]],
    fallen,
    behind,
    jumped,
    leaked,
)


@pytest.mark.parametrize(("name", "curve", "expected"), CURVES, ids=[name for name, _, _ in CURVES])
def test_faulty_curves_are_charged(
    name: str, curve: Curve, expected: list[tuple[str, str, tuple[int, ...], bool]]
) -> None:
    hosts = 4 if "four" in name else 2
    charges = judge_data(curved(run_of(hosts), curve))
    assert verdicts(charges) == expected
    for charge in charges:
        assert charge.confidence is Confidence.STRONG
        assert charge.expected
        assert charge.actual
        assert charge.evidence
        assert charge.ranks or charge.victims == tuple(range(hosts * 2))


def test_a_replica_of_two_with_shuffled_labels() -> None:
    """It learns nothing, and its gradients slow the other one down. The losses are those of such a run."""

    def curve(step: int, dp: int) -> float:
        return 4.3 if dp else 4.6 - 2.6 * min(step / 15, 1.0)

    assert verdicts(judge_data(curved(run_of(), curve))) == [(STALL, "replica", (2, 3), False)]


def test_fewer_steps_allow_larger_gaps() -> None:
    assert not judge_data(curved(run_of(steps=15), behind(0.7, 1)))
    assert judge_data(curved(run_of(steps=15), behind(0.8, 1)))


def test_a_replica_is_not_behind_others_that_learn_nothing() -> None:
    result = curved(run_of(), lambda _, dp: 4.6 + dp)
    assert verdicts(judge_data(result)) == [(STALL, "stall", (), False)]


@pytest.mark.parametrize("steps", [2, 6, 14])
def test_a_short_run_whose_loss_explodes_is_found(steps: int) -> None:
    short = run_of(steps=steps)
    assert not list(judge_loss(short))
    (charge,) = judge_loss(curved(short, lambda step, _: 4.9 if step < 1 else 98.0 * step))
    assert (charge.kind, charge.ranks) == ("diverged", ())


def test_a_short_run_that_changes_no_parameter_is_found() -> None:
    short = run_of(steps=4)
    for seen in short.ranks:
        assert seen.init is not None
        same = tuple(changed(step, params=seen.init.params) for step in seen.steps)
        short = with_rank(short, seen.rank, steps=same)
    assert [charge.kind for charge in judge_loss(short)] == ["frozen"]


@cases
def test_a_stall_of_one_cell_blames_that_cell(
    cell: int | None, expected: list[tuple[str, str, tuple[int, ...], bool]]
) -> None:
    """A stall of all cells blames no rank; a stall of one cell blames one of its ranks."""
    assert verdicts(judge_data(curved(run_of(4, cells=2), fallen(0.1), cell))) == expected


def test_the_first_deviation_counts() -> None:
    result = with_steps(curved(run_of(3, 1, 1), fallen(0.1)), 1, lambda s: changed(s, params="x"), 5)
    assert [charge.check for charge in judge_data(result)] == ["smoke-desync"]
    hang = SmokeCharge("smoke-hang", "outside", "it hangs", ranks=(0,), phase="train", step=17)
    assert judge_data(curved(run_of(), fallen(0.1)), [hang]) == ()


# No numbers.


def not_finite(result: SmokeResult, *ranks: int, first: int) -> SmokeResult:
    """Losses that are not finite on these ranks from that step on, and on all ranks from the next one."""
    for seen in result.ranks:
        begins = first if seen.rank in ranks else first + 1
        result = with_steps(
            result, seen.rank, lambda s: changed(s, finite=False, loss=None, own=None, reduced=None), begins
        )
    return result


@cases
def test_the_first_rank_without_numbers(
    hosts: int, ranks: tuple[int, ...], expected: list[tuple[str, str, tuple[int, ...], bool]]
) -> None:
    charges = judge_data(not_finite(run_of(hosts), *ranks, first=12))
    assert verdicts(charges) == expected
    assert all("step 12" in charge.summary for charge in charges)


def test_one_of_four_peers_without_numbers() -> None:
    """That its loss differs from its peers' is a consequence."""
    charges = judge_data(not_finite(run_of(1, 4, 4), 1, first=12))
    assert verdicts(charges) == [(NAN, "nan", (1,), False)]


def test_a_loss_that_blew_up_blames_no_rank() -> None:
    def curve(step: int, _: int) -> float:
        return 4.6 if step < 5 else 10.0**step

    result = not_finite(curved(run_of(), curve), 3, first=12)
    assert verdicts(tuple(judge_nan(result))) == [(NAN, "nan", (), False)]
    assert [charge.kind for charge in judge_data(result)] == ["spike"]


def test_a_single_rank_counts_as_all_ranks() -> None:
    charges = judge_data(not_finite(run_of(1, 1, 1), 0, first=3))
    assert verdicts(charges) == [(NAN, "nan", (), False)]


# The summary for the report.


def test_summary_of_a_healthy_run() -> None:
    summary = loss_summary(run_of())
    assert summary.steps == len(summary.curve) == 30
    assert summary.limit == 0.7
    assert summary.floor == FLOOR
    assert summary.drop == pytest.approx(0.94, abs=0.05)
    assert summary.replica_gap == pytest.approx(0.0, abs=0.1)


@pytest.mark.parametrize("steps", [0, 7])
def test_summary_of_a_run_that_ended_early(steps: int) -> None:
    result = with_rank(run_of(), 3, steps=run_of().ranks[3].steps[:steps])
    summary = loss_summary(result)
    assert (summary.steps, summary.drop, summary.limit, summary.replica_gap) == (steps, None, None, None)


def test_summary_without_numbers_and_with_one_replica() -> None:
    summary = loss_summary(not_finite(run_of(), 3, first=12))
    assert summary.curve[12:] == (None,) * 18
    assert (summary.drop, summary.replica_gap) == (None, None)
    assert loss_summary(run_of(1, 1, 1)).replica_gap is None
    assert loss_summary(curved(run_of(4, cells=2), fallen(0.25), 1), 1).drop == pytest.approx(0.25)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 2**32), st.sampled_from([15, 20, 29, 30, 60]), st.sampled_from([1, 2, 4]))
def test_healthy_noise_is_not_a_fault(seed: int, steps: int, hosts: int) -> None:
    """Curves as measured: what a run learns by a step varies, and so does its result on each batch. In 15
    steps of a single rank, chance is taken for a fault in 4 of 1,000 runs, so the examples are always the
    same.
    """
    chance = random.Random(seed)
    result = run_of(hosts, 1, 1, steps=steps)
    shape = result.plan.shape(0)
    learned = math.exp(min(chance.gauss(0, 0.15), 0.5))

    def curve(step: int, dp: int) -> float:
        return measured(shape, step, dp, learned * chance.uniform(0.6, 1.4))

    assert not list(judge_loss(curved(result, curve)))


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False), min_size=30, max_size=30))
def test_any_numbers_are_judged(losses: list[float | None]) -> None:
    result = curved(run_of(each=1, tp=1), lambda step, dp: losses[step] if dp else 1.0)
    for charge in judge_loss(result):
        assert charge.summary
    summary = loss_summary(result)
    assert summary.drop is None or math.isfinite(summary.drop)


def test_steps_outside_the_plan_do_not_count() -> None:
    result = run_of()
    more = changed(result.ranks[0].steps[0], step=10**9, loss=1e300)
    result = replace(result, ranks=tuple(replace(seen, steps=(*seen.steps, more)) for seen in result.ranks))
    assert loss_summary(result).steps == 30
    assert not judge_data(result)

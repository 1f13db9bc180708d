"""If nothing names an injected fault, that is a fault of the run: it never passes."""

from dataclasses import replace

import pytest

from doctor.model import Severity
from doctor.smoke.inject import KINDS, parse_injection
from doctor.smoke.judge import judge
from doctor.smoke.judge.charge import SmokeCharge
from doctor.smoke.judge.injections import judge_injected
from doctor.smoke.result import SmokeResult
from tests.support.cases import cases
from tests.support.reports import NAMES, rehearsed, seated
from tests.support.smoke.frozen import frozen, stuck
from tests.support.smoke.results import changed, healthy, plan_of, with_end, with_rank

PLAN = plan_of(4, 2, tp=2)


def broken(result: SmokeResult, *texts: str) -> SmokeResult:
    injected = tuple(parse_injection(text, 8, 30, 4) for text in texts)
    return replace(result, plan=replace(result.plan, injected=injected))


@pytest.mark.parametrize("kind", KINDS)
def test_a_healthy_run_with_a_fault_on_purpose_missed_it(kind: str) -> None:
    (charge,) = judge(broken(healthy(PLAN), f"{kind}@3"))
    assert (charge.check, charge.kind, charge.severity) == (KINDS[kind].check, "not-found", Severity.FAIL)
    assert charge.summary.startswith(f"the injected fault was not found: {kind}@3")
    assert not charge.ranks + charge.hosts
    assert not judge(healthy(PLAN))


@pytest.mark.parametrize("kind", ["stuck", "spin", "kill"])
def test_the_exit_code_says_so(kind: str) -> None:
    plan = seated(NAMES, each=2, tp=2)
    report = rehearsed(broken(healthy(plan), f"{kind}@3"))
    assert report.exit_code == 1
    assert [found.check for found in report.findings if found.summary.startswith("the injected")] == [
        KINDS[kind].check
    ]
    assert rehearsed(healthy(plan)).exit_code == 0


@cases
def test_what_counts_as_found(text: str, charge: SmokeCharge, found: bool) -> None:
    assert bool(list(judge_injected(broken(healthy(PLAN), text), [charge]))) == (not found)


def test_a_gradient_of_zero_is_a_wrong_gradient_before_it_is_a_standstill() -> None:
    """In a world of one rank nothing else is added to it, so the parameters do not change."""
    result = healthy(plan_of(1))
    audits = tuple(changed(audit, used="0" * 16) for audit in result.ranks[0].audits)
    steps = tuple(changed(step, params=result.ranks[0].init.params) for step in result.ranks[0].steps)  # type: ignore[union-attr]
    still = with_rank(result, 0, audits=audits, steps=steps)
    injected = (parse_injection("stale@0:0", 1, 30),)
    found = judge(replace(still, plan=replace(still.plan, injected=injected)))
    assert {charge.check for charge in found} == {"smoke-corruption"}


def test_what_a_run_did_not_come_to_is_not_missed() -> None:
    hung = broken(frozen(PLAN, {5: stuck(150)}), "stuck@5:3", "mask@2:20")
    assert [charge.check for charge in judge(hung)] == ["smoke-hang"]
    for kind in ("interrupted", "lost", "trouble"):
        ended = with_end(broken(healthy(PLAN), "mask@2:20"), kind)
        assert not list(judge_injected(ended, []))
    begun = with_rank(with_end(broken(healthy(PLAN), "mask@2:20"), "deadline"), 2, disturbed=1.0)
    assert [charge.kind for charge in judge_injected(begun, [])] == ["not-found"]

"""The long trials count honestly: what is right, what is wrong, and with which confidence."""

from pathlib import Path
from typing import Any

import pytest

from doctor.smoke.inject import KINDS
from tests.support.cases import cases, cases_with
from tests.trials.kinds import INSIDE, ORDER, OUTSIDE
from tests.trials.outcome import Outcome, Ran, Truth, append, judged, load
from tests.trials.table import interval, table

HANG = frozenset({"smoke-hang"})
RANK = Truth(HANG, frozenset({"node2"}), frozenset({3}))
HOST = Truth(HANG, frozenset({"node2"}), None)
EVERYBODY = Truth(HANG, frozenset(), frozenset())


def found(
    check: str = "smoke-hang",
    hosts: tuple[str, ...] = ("node2",),
    ranks: tuple[int, ...] = (3,),
    status: str = "fail",
    because: str | None = None,
) -> dict[str, Any]:
    where = [{"host": hosts[0] if hosts else None, "rank": rank} for rank in ranks]
    words = {"summary": "stood still", "nodeset": ",".join(hosts)}
    return {
        "check": check,
        "hosts": list(hosts),
        "where": where,
        "status": status,
        "because": because,
        **words,
    }


def outcome(truth: Truth | None, *findings: dict[str, Any]) -> Outcome:
    return judged("stuck", 0, "3:10", truth, Ran(1, {"findings": list(findings)}, "", 5.0), 0.5)


@cases_with(found, RANK=RANK, HOST=HOST, EVERYBODY=EVERYBODY)
def test_a_report_is_compared_with_the_truth(
    truth: Truth | None, findings: list[dict[str, Any]], expected: tuple[bool, bool, bool]
) -> None:
    seen = outcome(truth, *findings)
    assert (seen.detected, seen.named, seen.alone) == expected


@pytest.mark.parametrize("truth", [RANK, None])
def test_a_run_without_a_report_is_wrong(truth: Truth | None) -> None:
    seen = judged("stuck", 0, "", truth, Ran(70, None, "it broke", 5.0))
    assert not seen.right
    assert seen.said == ("no report: it broke",)


@cases
def test_the_interval_is_that_of_clopper_and_pearson(hits: int, trials: int, low: float, high: float) -> None:
    assert interval(hits, trials) == pytest.approx((low, high), abs=1e-4)


def test_outcomes_are_kept_between_runs_and_counted_in_one_table(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    right, wrong = outcome(RANK, found()), outcome(RANK, found(ranks=(2,)))
    for each in (right, wrong):
        append(path, each)
    assert load(path) == [right, wrong]
    *_, line, total = table(load(path), ORDER).splitlines()
    assert [cell.strip() for cell in line.split("|")[1:7]] == ["stuck", "2", "1", "0", "0", "1"]
    assert "0.50 s" in line
    assert [cell.strip() for cell in total.split("|")[1:4]] == ["all", "2", "1"]


def test_every_fault_is_tried_and_has_a_unique_name() -> None:
    assert set(INSIDE) == set(KINDS)
    assert not set(INSIDE) & set(OUTSIDE)
    assert len(ORDER) == len(set(ORDER))

"""The loss as a picture, beside that of a healthy run; below it, the tables of ranks and pairs."""

from dataclasses import replace
from itertools import takewhile
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from doctor.facts.smoke import JudgedRun
from doctor.judge.verdict import Report, Training
from doctor.report.page.smoke import rank_paces
from doctor.smoke.judge.charge import SmokeCharge
from doctor.smoke.result import SmokeResult
from tests.support.recordings import recording, report
from tests.support.reports import NAMES, seated, smoke_runs, text
from tests.support.smoke.results import changed, healthy, with_steps

PLAIN = report(recording(NAMES))
STALL = SmokeCharge("smoke-loss-stall", "stall", "the loss did not fall as it must", phase="train")


def told(result: SmokeResult, *charges: SmokeCharge) -> Report:
    return replace(PLAIN, training=Training((JudgedRun(result, charges),)))


def picture(of: Report, width: int = 100, **options: Any) -> list[str]:
    lines = text(of, width, **options).splitlines()
    rows = [number for number, line in enumerate(lines) if "┤" in line]
    return [*takewhile(bool, lines[rows[0] :])] if rows else []


def slowed(rank: int, times: float) -> SmokeResult:
    result = smoke_runs()["passed"]
    return with_steps(result, rank, lambda step: changed(step, compute=times * step.compute))


@pytest.mark.parametrize("width", [60, 80, 200])
def test_the_curve_fills_the_width_and_ends_where_a_healthy_one_does(width: int) -> None:
    lines = picture(told(smoke_runs()["passed"]), width, verbose=True)
    assert max(map(len, lines)) == width
    assert max(line.rfind("*") for line in lines[:9]) == width - 1
    assert lines[0].lstrip().startswith("4.")
    assert "step 0" in lines[10]
    assert lines[10].endswith("29")
    assert "* ranks 0-1, ranks 2-3" in lines[11]
    assert "─ a healthy run" in " ".join(lines[11:])


def test_the_picture_says_whether_the_loss_is_good() -> None:
    good = " ".join(" ".join(picture(told(smoke_runs()["passed"]), verbose=True)).split())
    assert "good: 94 % of the way, at least 70 % is needed" in good
    flat = smoke_runs()["passed"]
    for rank in range(8):
        flat = with_steps(flat, rank, lambda step: changed(step, loss=4.6))
    bad = " ".join(picture(told(flat, STALL)))
    assert "not good: 0 % of the way" in bad
    assert "\x1b[1;31m*" in text(told(flat, STALL), 100, colours=True)
    assert "\x1b[1;32mgood: " in text(told(smoke_runs()["passed"]), 100, colours=True, verbose=True)
    short = " ".join(picture(told(healthy(seated(NAMES, each=2, steps=5))), verbose=True))
    assert "too few steps to say whether it is good" in short


def test_the_picture_stands_there_when_the_loss_is_at_fault_and_on_v() -> None:
    passed = smoke_runs()["passed"]
    assert picture(told(passed)) == []
    assert picture(told(passed), verbose=True)
    assert picture(told(passed, STALL))
    assert picture(told(passed, STALL), quiet=True) == []


def test_a_run_that_ended_early_has_no_curve_behind_its_end() -> None:
    lines = picture(told(smoke_runs()["hung"]), verbose=True)
    assert max(line.rfind("*") for line in lines[:8]) < 50 < max(line.rfind("─") for line in lines[:8])


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(loss=st.none() | st.floats(-1e200, 1e200), width=st.integers(20, 200))
def test_any_loss_can_be_drawn(loss: float | None, width: int) -> None:
    result = with_steps(smoke_runs()["passed"], 0, lambda step: changed(step, loss=loss), first=20)
    for line in picture(told(result), width, verbose=True)[:10]:
        assert len(line) <= width


def test_a_slow_rank_stands_out_in_the_table() -> None:
    slow = SmokeCharge("smoke-straggler", "slow", "it is slow", ranks=(5,), phase="train")
    result = slowed(5, 3.0)
    (pace,) = (each for each in rank_paces(JudgedRun(result, (slow,))) if each.check)
    assert (pace.rank, pace.host, pace.late > 0.01) == (5, "node3", True)
    shown = text(told(result, slow), 100)
    (row,) = (line for line in shown.splitlines() if line.endswith("smoke-straggler"))
    assert row.split()[:2] == ["5", "node3"]
    assert f"{1e3 * pace.late:+.1f} ms" in row
    assert "slowest pairs" not in shown
    assert "late by" not in text(told(smoke_runs()["passed"]), 100)
    assert "late by" in text(told(smoke_runs()["passed"]), 100, verbose=True)


def test_the_loss_of_a_rank_is_held_against_the_mean() -> None:
    result = with_steps(smoke_runs()["passed"], 3, lambda step: changed(step, loss=2 * (step.loss or 0)))
    paces = {pace.rank: pace for pace in rank_paces(JudgedRun(result, ()))}
    assert paces[3].loss_share == pytest.approx(2 * paces[0].loss_share, rel=0.05)


@pytest.mark.slow
def test_of_many_ranks_the_latest_are_shown() -> None:
    many = healthy(seated(NAMES, each=16, tp=2))
    many = with_steps(many, 40, lambda step: changed(step, compute=9.0))
    lines = text(told(many), 100, verbose=True).splitlines()
    head = next(number for number, line in enumerate(lines) if "late by" in line)
    assert lines.index("", head) - head == 18
    assert any(line.split()[:2] == ["40", "node3"] for line in lines[head:])
    assert "ms a step" in lines[head + 17]


def test_the_slowest_pairs_come_first() -> None:
    slow = SmokeCharge("smoke-slow-link", "host", "its links are slow", hosts=("node2",), phase="bandwidth")
    lines = text(told(smoke_runs()["passed"], slow), 100).splitlines()
    head = next(number for number, line in enumerate(lines) if "slowest pairs" in line)
    assert lines[head + 1].split()[:3] == ["node1", "-", "node2"]
    assert lines.index("", head) - head == 6


@pytest.mark.parametrize("width", [40, 60, 80])
def test_the_tables_fit(width: int) -> None:
    lines = text(told(smoke_runs()["passed"]), width, verbose=True).splitlines()
    for title in ("rank  host", "slowest pairs"):
        head = next(number for number, line in enumerate(lines) if title in line)
        assert max(map(len, lines[head : lines.index("", head)])) <= width

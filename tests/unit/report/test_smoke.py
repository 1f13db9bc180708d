"""The smoke runs in a report, on a terminal of any width and encoding, and in the JSON."""

import io
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from doctor.facts.smoke import JudgedRun
from doctor.judge.verdict import Report, Training
from doctor.mesh.result import OmittedHost
from doctor.model import Severity
from doctor.report.out.formats import check_html, check_markdown
from doctor.report.page.smoke import RunNumbers
from doctor.report.page.training import curve
from doctor.smoke.events import RankStart, Transfer
from doctor.smoke.judge.charge import SmokeCharge
from doctor.smoke.onhost.page import PHASES
from doctor.smoke.result import Injection, RunEnd, SmokeResult
from doctor.text.terminal import put
from tests.support.cases import cases, from_cases
from tests.support.envelopes import as_data, wrong
from tests.support.recordings import recording, report
from tests.support.reports import NAMES, reports, seated, smoke_runs, text
from tests.support.smoke.results import changed, healthy, plan_of, with_host, with_rank, with_steps
from tests.unit.report.test_hostile import HOSTILE, unsafe

PLAIN = report(recording(NAMES))


def shown(*runs: JudgedRun, width: int = 200, **options: bool) -> list[str]:
    """The lines of the paragraph, without its title."""
    lines = text(told(*runs), width, **options).splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("Smoke"))
    last = lines.index("", first)
    assert all(line.startswith(" " * 7) for line in lines[first + 1 : last])
    return [line[7:] for line in lines[first:last]]


def told(*runs: JudgedRun) -> Report:
    return replace(PLAIN, training=Training(runs, net_seconds=0.12))


def run(result: SmokeResult, *charges: SmokeCharge) -> JudgedRun:
    return JudgedRun(result, charges)


def stopped(phase: Any, kind: Any = "still", **plan: Any) -> SmokeResult:
    """Every rank was in this phase at the end."""
    result = healthy(plan_of(**plan))
    for rank in range(len(result.ranks)):
        result = with_rank(result, rank, phase=phase, done=False)
    return replace(result, end=RunEnd(kind, 3.0))


def test_a_run_without_faults_takes_three_lines() -> None:
    first, second, third = shown(run(smoke_runs()["passed"]))
    assert first == (
        "8 ranks (4 hosts × 2), torch 2.13.0 over gloo, dp 4 × tp 2: 30 steps, loss 4.65 → 0.83 █▅▄▂▂▁▁▁ "
        "(good: learned 94 %, needed 70 %), 12.5 ms a step"
    )
    assert second == ("net 0.1  start 1.9  join 0.1  collectives 0.4  train 1.0  audit 0.1  bandwidth 0.0 s")
    assert third == "164,000 tokens a second; links 1.20 GB/s each way; round trips up to 0.10 ms"


@pytest.mark.parametrize("form", [check_markdown, check_html])
def test_no_sign_stands_beside_what_is_not_told(form: Callable[[Report], bytes]) -> None:
    for of in (smoke_runs()["passed"], healthy(plan_of(hosts=1))):
        made = form(told(run(of))).decode()
        assert not re.search(r"tokens a second; *(;|$|<)", made, re.MULTILINE)
    assert shown(run(healthy(plan_of(hosts=1))))[-1].endswith("tokens a second")


@pytest.mark.parametrize("name", [name for name in reports() if name.startswith("smoke-")])
@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_lines_fit_and_end_without_blanks(name: str, width: int) -> None:
    lines = text(reports()[name], width, verbose=True).splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("Smoke"))
    paragraph = lines[first : lines.index("", first)]
    assert max(map(len, paragraph)) <= width
    assert [line for line in paragraph if line != line.rstrip()] == []


def test_a_narrow_terminal_loses_no_word() -> None:
    of = run(smoke_runs()["passed"])
    assert " ".join(shown(of, width=60)).split() == " ".join(shown(of, width=400)).split()


def test_quiet_leaves_it_out_and_verbose_adds_versions() -> None:
    of = run(with_host(smoke_runs()["passed"], "node2", peak_memory=210_400_000))
    assert "Smoke" not in text(told(of), 100, quiet=True)
    assert "210 MB a rank" in "\n".join(shown(of, verbose=True))
    assert "torch 2.13.0" in "\n".join(shown(of, verbose=True))
    assert "numpy" not in "\n".join(shown(of))


def test_no_smoke_run_was_asked_for() -> None:
    assert "Smoke" not in text(PLAIN, 100)
    assert as_data(PLAIN)["smoke"] is None


def test_it_could_not_run() -> None:
    made = replace(PLAIN, training=Training(not_made="no host passed the checks"))
    assert "Smoke  not made: no host passed the checks" in text(made, 100)
    smoke = as_data(made)["smoke"]
    assert (smoke["status"], smoke["reason"]) == ("skipped", "no host passed the checks")


@cases
def test_the_first_line_counts_hosts_and_ranks(plan: dict[str, Any], words: str) -> None:
    assert shown(run(healthy(plan_of(**plan))))[0].startswith(words)


def test_hosts_with_different_numbers_of_ranks() -> None:
    result = healthy(plan_of(2, 2))
    seats = tuple(replace(seat, host="n1" if seat.rank < 3 else "n2") for seat in result.plan.seats)
    assert shown(run(replace(result, plan=replace(result.plan, seats=seats))))[0].startswith(
        "4 ranks (2 hosts), torch 2.13.0 over gloo"
    )


COURSES = from_cases(__file__, "COURSES", dict[str, tuple[str, ...]])


@pytest.mark.parametrize("name", COURSES)
def test_the_first_line_names_the_end_of_the_run(name: str) -> None:
    phase, kind, words = COURSES[name]
    assert words in shown(run(stopped(phase, kind, hosts=2)))[0]


def test_a_run_that_ended_before_the_first_step() -> None:
    result = stopped("join", hosts=2)
    for rank in (0, 1):
        result = with_rank(result, rank, steps=(), pairs=())
    line = shown(run(replace(result, seconds={"start": 0.2, "join": 15.0})))
    assert line == [
        "2 ranks (2 hosts × 1), torch 2.13.0 over gloo, dp 2 × tp 1: failed, ended in the join phase, "
        "0 of 30 steps",
        "net 0.1  start 1.2  join 15.0 s failed (not reached: collectives, train, audit, bandwidth)",
    ]


def test_too_few_steps_are_not_compared_with_a_limit() -> None:
    line = shown(run(healthy(plan_of(2, steps=10))))[0]
    assert "10 steps, loss 4.6" in line
    assert "needed" not in line


def test_missing_and_huge_numbers_are_printed_short() -> None:
    result = with_steps(smoke_runs()["passed"], 0, lambda step: changed(step, loss=None), first=20)
    assert "loss 4.65 → " in shown(run(result))[0]
    huge = with_steps(smoke_runs()["passed"], 0, lambda step: changed(step, loss=1e200))
    assert max(map(len, shown(run(huge)))) < 250
    assert wrong(as_data(told(run(result)))) == []


ORDER = ("net", "start", "join", "collectives", "train", "audit", "bandwidth")


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("kind", ["still", "interrupted"])
def test_phases_of_a_run_that_ended_early(phase: str, kind: str) -> None:
    """Earlier phases passed; the phase itself failed, unless interrupted; later ones never started."""
    found = RunNumbers(run(stopped(phase, kind, hosts=2)), 0.1).phases
    assert [row.name for row in found] == list(ORDER)
    name = {"spawned": "start", "ready": "start", "done": "bandwidth"}.get(phase, phase)
    at = ORDER.index(name)
    assert {row.status for row in found[:at]} == {"pass"}
    assert found[at].status == ("skipped" if kind == "interrupted" else "fail")
    assert {row.status for row in found[at + 1 :]} <= {"skipped"}
    assert {row.seconds for row in found[at + 1 :]} <= {0.0}


def test_a_fault_of_values_marks_its_own_phase() -> None:
    charge = SmokeCharge("smoke-desync", "kind", "they differ", ranks=(1,), phase="train")
    of = run(healthy(plan_of(2)), charge)
    failed = {row.name for row in RunNumbers(of).phases if row.status != "pass"}
    assert (RunNumbers(of).outcome, failed) == ("fail", {"train"})
    warning = run(of.result, replace(charge, severity=Severity.WARN))
    assert (RunNumbers(warning).outcome, {row.status for row in RunNumbers(warning).phases}) == (
        "pass",
        {"pass"},
    )
    slow = run(of.result, SmokeCharge("smoke-slow-link", "kind", "slow", hosts=("n1",), phase="bandwidth"))
    assert (RunNumbers(slow).outcome, {row.status for row in RunNumbers(slow).phases}) == ("pass", {"pass"})


def test_one_host_has_neither_net_nor_bandwidth() -> None:
    names = [row.name for row in RunNumbers(run(healthy(plan_of(1, 4)))).phases]
    assert names == ["start", "join", "collectives", "train", "audit"]


def test_start_includes_the_import_of_the_slowest_host() -> None:
    result = with_host(healthy(plan_of(2)), "n2", imported=7.25)
    result = replace(result, seconds={"spawned": 0.5, "start": 0.25})
    assert RunNumbers(run(result)).phases[0].seconds == 8.0


def test_links_are_those_of_hosts_and_the_slowest_comes_first() -> None:
    result = healthy(plan_of(3, 2))
    for rank, peer, seconds in ((0, 2, 0.1), (2, 0, 0.1), (0, 4, 0.4), (4, 0, 0.4), (2, 4, 0.2), (4, 2, 0.2)):
        seen = [pair for pair in result.ranks[rank].pairs if pair.peer != peer]
        met = Transfer(peer, 0, 120_000_000, seconds, 0.001 * seconds)
        result = with_rank(result, rank, pairs=(*seen, met))
    found = RunNumbers(run(result)).links
    assert [(link.hosts, round(link.rate / 1e6)) for link in found] == [
        (("n1", "n3"), 300),
        (("n2", "n3"), 600),
        (("n1", "n2"), 1200),
    ]
    line = shown(run(result))[2]
    assert "links 300 MB/s (n1 - n3) to 1.20 GB/s each way; round trips up to 0.40 ms" in line


@pytest.mark.parametrize(
    "pair", [Transfer(99, 0, 1, 0.1, 0.1), Transfer(1, 0, 0, 0.1, 0.1), Transfer(1, 0, 5, 0.0, 0.1)]
)
def test_an_impossible_pair_is_not_a_link(pair: Transfer) -> None:
    result = with_rank(with_rank(healthy(plan_of(2)), 0, pairs=(pair,)), 1, pairs=())
    assert RunNumbers(run(result)).links == ()


def test_versions_that_differ_are_shown_with_their_hosts() -> None:
    result = healthy(plan_of(4))
    started = result.ranks[0].started
    assert started is not None
    other = changed(started, versions={**started.versions, "torch": "2.12.0"})
    found = RunNumbers(run(with_rank(result, 3, started=other))).versions
    assert found == {
        "device": "x86_64",
        "python": "3.11.2",
        "torch": "2.13.0 on n[1-3]; 2.12.0 on n4",
    }


def test_injected_faults_are_marked() -> None:
    result = smoke_runs()["hung"]
    plan = replace(result.plan, injected=(Injection("stuck", 3, 10), Injection("kill", 1)))
    of = run(replace(result, plan=plan))
    assert "injected on purpose: stuck@3:10,kill@1 (the run was ended 1.04 s after it took effect)" in shown(
        of
    )
    smoke = as_data(told(of))["smoke"]
    assert (smoke["injected"], smoke["latency"]) == ("stuck@3:10,kill@1", 1.04)


def test_left_out_and_repeated() -> None:
    hung = SmokeCharge("smoke-hang", "outside", "it never came", ranks=(5,), phase="train")
    left = tuple(OmittedHost(f"n{n}", "faulty: shm-small") for n in (7, 8))
    first = run(replace(smoke_runs()["hung"], left_out=left), hung)
    again = run(healthy(seated(["node1", "node2", "node4"], each=2, tp=2)))
    third = run(healthy(seated(["node1", "node2"], each=2, tp=2)))
    lines = shown(first, replace(again, charges=(hung,)), third)
    assert "left out: n[7-8] (faulty: shm-small)" in lines
    assert lines[-2:] == ["repeated without node3: failed (smoke-hang)", "repeated without node4: passed"]
    smoke = as_data(told(first, again))["smoke"]
    assert smoke["left_out"] == {"n7": "faulty: shm-small", "n8": "faulty: shm-small"}
    assert (smoke["status"], [each["status"] for each in smoke["runs"]]) == ("fail", ["pass"])


@pytest.mark.parametrize(
    ("values", "signs"),
    [
        ([1.0], "▁"),
        ([2.0, 1.0], "█▁"),
        ([1.0] * 30, "▁" * 8),
        ([float(n) for n in range(8)], "▁▂▃▄▅▆▇█"),
        ([float(n) for n in range(16, 0, -1)], "█▇▆▅▄▃▂▁"),
    ],
)
def test_a_curve_is_drawn_with_blocks(values: list[float], signs: str) -> None:
    assert curve(values) == signs


@given(st.lists(st.floats(-1e100, 1e100), min_size=1, max_size=100))
def test_any_curve_can_be_drawn(values: list[float]) -> None:
    assert 1 <= len(curve(values)) <= 8


@cases
def test_a_terminal_that_lacks_our_characters(encoding: str, curve: str, times: str) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, errors="replace")
    put(text(told(run(smoke_runs()["passed"])), 200), stream)
    written = raw.getvalue().decode(encoding)
    assert f"(4 hosts {times} 2)" in written
    assert f" {curve} " in written
    assert "?" not in re.sub(r"^  \? ", "", written, flags=re.MULTILINE)


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(evil=st.just(HOSTILE) | st.text(max_size=40))
@example(evil=" ")
def test_hostile_ranks_print_no_escapes_and_break_no_json(evil: str) -> None:
    started = RankStart({evil: evil, "torch": evil}, {evil: evil}, (evil,), evil)
    result = with_rank(healthy(plan_of(2)), 1, started=started)
    result = replace(result, left_out=(OmittedHost("n3", evil),))
    of = told(run(result, SmokeCharge("smoke-hang", "kind", evil, ranks=(1,))))
    for width in (80, 200):
        assert unsafe(text(of, width, verbose=True)) == []
    assert wrong(as_data(of)) == []

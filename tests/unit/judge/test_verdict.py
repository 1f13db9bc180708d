"""The verdict, each host's status, the counts, and every row of the table of exit codes."""

from dataclasses import replace
from typing import Any

from doctor.job.plan import draft
from doctor.job.wishes import JobWishes
from doctor.judge.again import EarlierFinding, Recheck, RecheckState
from doctor.judge.verdict import ExaminedChecks, Report, Rules, RunInfo, Training, host_reports
from doctor.model import (
    Confidence,
    Finding,
    Host,
    HostStatus,
    Place,
    Result,
    Scope,
    Status,
    UnreachedHost,
    UnreachedKind,
    Verdict,
    View,
)
from doctor.report.page.card import CardKind
from doctor.report.page.headline import last_line, verdict_word
from tests.support.cases import cases

FAIL, WARN, UNKNOWN, CRASH = Status.FAIL, Status.WARN, Status.UNKNOWN, Status.CRASH
NAMES = "abcd"
LOST = {"d": UnreachedHost("d", UnreachedKind.REFUSED, "no SSH server listens", "start it")}


def finding(check: str, status: Status, hosts: str, where: str = "") -> Finding:
    places = tuple(Place(host=host) for host in where)
    names = tuple(hosts)
    sure = Confidence.CERTAIN
    return Finding(
        "f", check, status, names, hosts, None, places, View.HOST, sure, "s", "", "", (), None, None
    )


def made(
    *found: Finding,
    stopped_by: int | None = None,
    unreached: bool = False,
    outstanding: tuple[str, ...] = (),
    replayed: bool = False,
    untrained: str = "",
    **rules: Any,
) -> Report:
    """A report over four hosts; `port` is an essential check."""
    hosts = [Host(name, name) for name in NAMES]
    lost = LOST if unreached else {}
    products = {name: "cpu" for name in NAMES if name not in lost}
    judged_by = Rules(frozenset({"port"}), **rules)
    plan = draft(hosts, JobWishes())
    no_proof = dict.fromkeys(untrained, "the last smoke run did not pass")
    return Report(
        run=RunInfo(
            *("check", "preflight", "", 0.0, "ssh"),
            stopped_by=stopped_by,
            replayed=replayed,
            outstanding=outstanding,
        ),
        plan=plan,
        hosts=host_reports(hosts, plan, products, lost, outstanding, found, judged_by, no_proof),
        findings=found,
        results=(),
        rules=judged_by,
        training=Training(untrained=no_proof),
    )


@cases
def test_exit_codes(found: list[tuple[str, ...]], how: dict[str, Any], code: int, verdict: Verdict) -> None:
    report = made(*(finding(check, Status(status), *where) for check, status, *where in found), **how)
    assert (report.exit_code, report.verdict) == (code, verdict)


def test_each_host_has_its_own_status() -> None:
    found = (finding("x", FAIL, "ab"), finding("y", FAIL, "b"), finding("z", WARN, "c"))
    report = made(*found, unreached=True)
    assert [(h.name, h.status, h.reason) for h in report.hosts] == [
        ("a", HostStatus.FAULTY, "x"),
        ("b", HostStatus.FAULTY, "x"),
        ("c", HostStatus.HEALTHY, None),
        ("d", HostStatus.UNEXAMINED, "no SSH server listens"),
    ]
    assert (report.healthy_hosts, report.other_hosts) == (("c",), ("a", "b", "d"))


def test_a_host_with_something_essential_undecided_is_unexamined() -> None:
    report = made(finding("port", UNKNOWN, "ab"), finding("x", FAIL, "b"), finding("x", UNKNOWN, "c"))
    assert [(h.status.value, h.reason) for h in report.hosts] == [
        ("unexamined", "port could not be decided: s"),
        ("faulty", "x"),
        ("healthy", None),
        ("healthy", None),
    ]


def test_a_host_that_did_not_answer_is_never_healthy() -> None:
    hosts = [Host("a", "a"), Host("b", "b")]
    reports = host_reports(hosts, draft(hosts, JobWishes()), {"b": "cpu"}, {}, ("b",), (), Rules(), {})
    assert [h.status for h in reports] == [HostStatus.UNEXAMINED] * 2


def test_counts_are_pairs_and_cluster_checks_count_once() -> None:
    def result(check: str, hosts: str, status: Status) -> Result:
        return Result(check, tuple(hosts), status)

    report = made()
    results = (
        result("each", "a", Status.PASS),
        result("each", "b", FAIL),
        result("each", "b", FAIL),
        result("each", "c", UNKNOWN),
        result("each", "d", CRASH),
        result("part", "a", UNKNOWN),
        result("part", "a", WARN),
        result("part", "b", Status.WAIVED),
        result("part", "b", Status.PASS),
        result("all", "ab", FAIL),
        result("all", "c", FAIL),
        result("all", "d", UNKNOWN),
        result("skipped", "abcd", Status.SKIP),
    )
    scopes = {"each": Scope.HOST, "part": Scope.HOST, "skipped": Scope.HOST, "all": Scope.CLUSTER}
    counted = Report(
        report.run, report.plan, report.hosts, (), results, Rules(), ExaminedChecks(scopes)
    ).counts()
    assert counted == {"pass": 1, "fail": 2, "warn": 1, "unknown": 1, "skip": 4, "crash": 1, "waived": 1}


def test_what_was_looked_at_again_decides_although_other_hosts_are_not_proved() -> None:
    before = EarlierFinding("f1", "x", ("a",), (), "x")
    fixed = replace(made(untrained="b"), again=(Recheck(before, RecheckState.FIXED),))
    assert (made(untrained="b").verdict.value, fixed.verdict.value) == ("inconclusive", "healthy")
    cut = replace(made(stopped_by=2, untrained="b"), again=fixed.again)
    assert cut.verdict.value == "inconclusive"


@cases
def test_what_is_said_of_a_run_that_looked_again(
    now: tuple[RecheckState, ...], found: tuple[Status, ...], word: str, line: str
) -> None:
    before = EarlierFinding("f1", "x", ("a",), (), "x")
    again = tuple(Recheck(before, each) for each in now)
    of = replace(made(*(finding("x", each, "b") for each in found)), again=again, again_from="r.json")
    assert (verdict_word(of)[0], last_line(of)) == (word, line)


def test_the_word_of_a_cut_run_is_red_only_if_something_is_faulty() -> None:
    for of, kind in (
        (made(stopped_by=2), CardKind.OPEN),
        (made(finding("x", FAIL, "a"), stopped_by=2), CardKind.FAIL),
    ):
        assert verdict_word(of) == ("Interrupted", kind)


def test_an_npu_network_that_was_left_out_is_told_if_the_job_needs_it() -> None:
    assert made(npu_network=frozenset({"a"})).npu_network_left_out
    assert made().npu_network_left_out == ()

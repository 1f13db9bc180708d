"""What a waiver covers, what it leaves alone, and what every output says of it."""

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from doctor.api import Check
from doctor.judge.findings import Views, fold_findings
from doctor.judge.verdict import Report
from doctor.judge.waived import not_needed, waiving
from doctor.model import (
    UNDECIDED,
    Confidence,
    HostStatus,
    Place,
    Problem,
    Result,
    Scope,
    Status,
    Verdict,
    Waiver,
)
from doctor.report.out.formats import check_html, check_markdown, json_of
from doctor.report.page.names import waiver_words
from doctor.report.start.go import go_line
from tests.support.cases import cases
from tests.support.envelopes import as_junit, as_prometheus
from tests.support.recordings import heard, recording
from tests.support.reports import NAMES, SMALL_SHM, report, text

DAY = "2026-11-20"
LATER, BEFORE = "2027-01-31", "2026-01-31"

CHECKS = {
    id: Check(id, id, (), Scope.CLUSTER, lambda: iter(()), "", "", causes=causes)
    for id, causes in (("cause", ()), ("symptom", ("cause",)))
}


def waiver(hosts: str = "a", subject: str = "", until: str = LATER, check: str = "x") -> Waiver:
    return Waiver(check, tuple(hosts), "a cable is on its way", "ops", until, subject, "w.yaml:2:3")


def failed(hosts: str, *where: Place, subject: str | None = None, status: Status = Status.FAIL) -> Result:
    return Result(
        "x", tuple(hosts), status, None, Problem("s", subject=subject, hosts=tuple(hosts), where=where)
    )


def waive(results: Sequence[Result], waivers: Sequence[Waiver], day: str) -> tuple[Result, ...]:
    return tuple(part for each in results for part in waiving(waivers, day)(each))


def states(*results: Result) -> dict[str, str]:
    return {host: each.status.value for each in results for host in each.hosts}


@cases
def test_a_subject_covers_itself_and_nothing_else(
    subject: str, devices: tuple[int, ...], waived: bool
) -> None:
    found = failed("a", *(Place("a", device=each) for each in devices), subject="its link")
    (done,) = waive([found], [waiver(subject=subject)], DAY)
    assert (done.status is Status.WAIVED) == waived


def test_each_culprit_is_waived_by_itself() -> None:
    done = waive([failed("ab", Place("a", device=1), Place("b", device=2))], [waiver("a")], DAY)
    assert states(*done) == {"a": "waived", "b": "fail"}
    assert [place.host for each in done for place in (each.problem or Problem("")).where] == ["a", "b"]


@pytest.mark.parametrize("until", [LATER, BEFORE])
@pytest.mark.parametrize("status", [Status.FAIL, Status.WARN])
def test_a_waived_result_keeps_what_it_would_be(status: Status, until: str) -> None:
    (done,) = waive([failed("a", status=status)], [waiver(until=until)], DAY)
    assert done.waiver
    assert done.waiver.status is status


@pytest.mark.parametrize("day", [LATER, BEFORE, DAY])
def test_a_waiver_holds_through_its_last_day(day: str) -> None:
    (done,) = waive([failed("a")], [waiver(until=DAY)], day)
    assert (done.status is Status.WAIVED) == (day <= DAY)
    assert done.waiver


@cases
def test_a_day_that_is_none_waives_nothing(until: str, day: str) -> None:
    (done,) = waive([failed("a")], [waiver(until=until)], day)
    assert done.status is Status.FAIL


def test_who_waives_it_is_one_line() -> None:
    said = waiver_words(replace(waiver(), owner="ops\nFAIL  node1"), Status.WAIVED)
    assert len(said.splitlines()) == 1


def test_of_two_waivers_the_one_that_holds_counts() -> None:
    (done,) = waive([failed("a")], [waiver(until=BEFORE), waiver(subject="s1"), waiver()], DAY)
    assert done.status is Status.WAIVED


def test_what_is_not_a_fault_or_has_no_culprit_is_left_alone() -> None:
    results = [
        Result("x", ("a",), Status.UNKNOWN, "why"),
        Result("x", ("a",), Status.CRASH, "why"),
        failed(""),
    ]
    assert waive(results, [waiver()], DAY) == tuple(results)


def test_what_is_no_longer_there_is_said_once_and_only_if_it_is_decided() -> None:
    passed = Result("x", ("a", "b", "c"), Status.PASS)
    (note,) = not_needed([waiver("abcd")], [passed, Result("x", ("c",), Status.UNKNOWN, "?")])
    assert note == "x passes on a,b: the waiver of ops until 2027-01-31 is no longer needed there"
    assert not [*not_needed([waiver()], [failed("a")])]


@cases
def test_a_numbered_subject_covers_only_what_is_told_whole(
    said: str | None, ports: tuple[int, ...], times: int, waived: bool
) -> None:
    found = failed("a", *(Place("a", port=each) for each in ports * times), subject=said)
    (done,) = waive([found], [waiver(subject="ports 60000,60001")], DAY)
    assert (done.status is Status.WAIVED) == waived


@cases
def test_a_known_cause_accuses_nobody_whom_it_clears(
    causes: tuple[str, ...], waivers: tuple[tuple[str, str, str], ...], found: tuple[str, ...]
) -> None:
    """Nothing from `a` reaches `b`; `causes` are results of what explains that."""
    link = Problem(f"no answer{UNDECIDED}", where=(Place("b", peer="a"),), confidence=Confidence.SUSPECT)
    results = [
        *(Result("cause", tuple(hosts), Status.FAIL, None, Problem("drops")) for hosts in causes),
        Result("symptom", ("a", "b"), Status.FAIL, None, link),
    ]
    held = [waiver(hosts, until=until, check=check) for check, hosts, until in waivers]
    made, rows = fold_findings(results, CHECKS, Views({}), lambda *_: None, waive=waiving(held, DAY))
    known = {each.id: each.check for each in made}
    assert [
        f"{each.check} {each.nodeset} {each.status.value} {known.get(each.because or '', '-')}"
        for each in made
    ] == list(found)
    assert {each.status for each in made} == {each.status for each in rows}


def shm(*waivers: Waiver) -> Report:
    whole = recording(NAMES, heard={"node2": heard(2, NAMES, spaces=SMALL_SHM)})
    return report(replace(whole, wishes=replace(whole.wishes, waivers=waivers)))


HELD = replace(waiver(check="shm-small"), hosts=("node2",))
OVER = replace(HELD, until=BEFORE)


def test_a_waived_fault_does_not_fail_and_did_not_pass() -> None:
    found = shm(HELD)
    assert (found.verdict, found.exit_code, found.healthy_hosts) == (Verdict.HEALTHY, 0, tuple(NAMES))
    assert found.counts()["waived"] == 1
    assert found.counts()["pass"] == shm().counts()["pass"]
    assert ("shm-small", "node2") not in {
        (each.check, host) for each in found.results if each.status is Status.PASS for host in each.hosts
    }


def test_every_output_says_who_waives_what_until_when() -> None:
    found = shm(HELD)
    said = f"accepted until {LATER} by ops: a cable is on its way"
    assert "WAIVED  node2" in text(found, 100)
    assert said in text(found, 100)
    assert "Waived: node2 (shm-small)." in text(found, 100)
    assert "1 waived" in text(found, 100)
    assert said in check_html(found).decode()
    assert said in check_markdown(found).decode()
    assert "waived: node2 (shm-small)" in go_line(found, NAMES)
    assert 'type="waived"' in as_junit(found).decode()
    assert f"waiver: {said}" in as_junit(found).decode()
    assert (
        'check_waived{command="preflight",check="shm-small",host="node2"} 1' in as_prometheus(found).decode()
    )
    assert (
        'check_status{command="preflight",check="shm-small",host="node2"}'
        not in as_prometheus(found).decode()
    )
    made = json.loads(json_of(found))
    (finding,) = (each for each in made["findings"] if each["check"] == "shm-small")
    assert finding["status"] == "waived"
    assert finding["verify"] is None
    assert finding["waiver"]["reason"] == "a cable is on its way"
    assert made["summary"]["waived"] == 1


def test_an_expired_waiver_gives_the_fault_back_and_says_so() -> None:
    found = shm(OVER)
    assert found.verdict is Verdict.FAULTY
    assert {host.name for host in found.hosts if host.status is HostStatus.FAULTY} == {"node2"}
    assert f"expired: accepted until {BEFORE} by ops: a cable is on its way" in text(found, 100)
    assert f"waiver: expired: accepted until {BEFORE} by ops: a cable" in as_junit(found).decode()
    (finding,) = (each for each in json.loads(json_of(found))["findings"] if each["check"] == "shm-small")
    assert (finding["status"], finding["waiver"]["until"]) == ("fail", BEFORE)


def test_a_host_with_another_fault_stays_faulty() -> None:
    other = replace(HELD, check="disk-full")
    assert shm(other).verdict is Verdict.FAULTY

"""clock-skew: a clock that was set while its host was asked, and the clocks of the others."""

from dataclasses import replace

import pytest

from doctor.api import Expect
from doctor.facts.run import Offset
from doctor.judge.registry import find_checks
from doctor.judge.verdict import Report
from doctor.model import Status
from doctor.probe import HostAnswer
from tests.support.cases import cases
from tests.support.recordings import NOW, heard, recording, report

NAMES = [f"node{n}" for n in range(1, 5)]


def clock(number: int, first: float, last: float) -> HostAnswer:
    """The host's answer takes half a second; its clock is that far ahead at the beginning and at the end."""
    return heard(number, NAMES, clock=f"{NOW + 0.1 + first:.3f}", clock_end=f"{NOW + 0.4 + last:.3f}")


def judged(*odd: HostAnswer) -> Report:
    return report(recording(NAMES, heard={each.host: each for each in odd}))


def found(of: Report) -> set[tuple[str, str, str]]:
    told = [finding for finding in of.findings if finding.check == "clock-skew"]
    return {(finding.nodeset, finding.status.value, finding.summary.partition(":")[0]) for finding in told}


def test_all_clocks_agree() -> None:
    assert found(judged()) == set()
    assert found(judged(clock(2, 0.0, 0.8), clock(3, 0.5, -0.5))) == set(), "half seconds, as of busybox"


@cases
def test_a_clock_that_is_set_meanwhile_hides_no_other(first: float, last: float, says: str) -> None:
    of = judged(clock(2, first, last), clock(3, 100.0, 100.0))
    assert found(of) == {
        ("node2", "warn", f"its clock was set {says} while it was asked"),
        ("node3", "fail", "its clock is 100 s ahead"),
    }
    assert of.exit_code == 1
    assert not [each for each in of.results if each.status is Status.CRASH]


def test_the_time_afterwards_is_compared() -> None:
    assert {(node, status) for node, status, _ in found(judged(clock(2, 0.0, 100.0)))} == {
        ("node2", "warn"),
        ("node2", "fail"),
    }


def test_when_all_clocks_were_set_it_was_this_machines() -> None:
    told = found(judged(*(clock(n, 0.0, 100.0) for n in (1, 2, 3, 4))))
    assert [status for _, status, _ in told] == ["unknown"]


@pytest.mark.parametrize("seconds", [-3600.0, -0.2, 3600.0])
def test_this_machines_clock_was_set(seconds: float) -> None:
    answers = [clock(number, 0.0, 0.0) for number in (1, 2, 3, 4)]
    of = judged(*(replace(each, ended=each.ended + seconds) for each in answers))
    assert {status for _, status, _ in found(of)} <= {"unknown"}


def test_a_jump_of_just_the_limit_is_none() -> None:
    check = next(each for each in find_checks().checks if each.id == "clock-skew")
    others = {"node2": Offset(0.0, 0.1), "node3": Offset(0.0, 0.1)}
    for jump, told in ((1.0, False), (1.01, True)):
        problems = list(check.run({"node1": Offset(0.0, 0.1, jump), **others}, Expect(clock_skew_s=1.0)))
        assert bool(problems) is told

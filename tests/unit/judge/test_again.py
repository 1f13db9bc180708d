"""The fate of a finding of an earlier run, by the results of a new one."""

import pytest

from doctor.judge.again import EarlierFinding, RecheckState, compare
from doctor.model import Place, Problem, Result, Status

FIXED, STILL, OPEN = RecheckState.FIXED, RecheckState.STILL, RecheckState.OPEN
ONE = EarlierFinding("f1", "x", ("a",), (Place(host="a"),), "")
TWO = EarlierFinding("f1", "x", ("a", "b"), (), "")
NOBODY = EarlierFinding("f1", "x", (), (), "")
DEVICE = EarlierFinding("f1", "x", ("a",), (Place(host="a", device=3),), "")


def result(hosts: str, status: Status, *where: Place, check: str = "x") -> Result:
    problem = Problem("s", hosts=tuple(hosts), where=where) if status in (Status.FAIL, Status.WARN) else None
    return Result(check, tuple(hosts), status, None if problem else "why", problem)


PASS, FAIL, WARN = Status.PASS, Status.FAIL, Status.WARN


@pytest.mark.parametrize(
    ("before", "results", "unheard", "now"),
    [
        (ONE, [result("a", PASS)], "", FIXED),
        (ONE, [result("a", FAIL)], "", STILL),
        (ONE, [result("a", WARN)], "", STILL),
        (ONE, [result("b", FAIL), result("a", PASS)], "", FIXED),
        (ONE, [result("a", FAIL, check="y"), result("a", PASS)], "", FIXED),
        (ONE, [result("a", Status.UNKNOWN)], "", OPEN),
        (ONE, [result("", Status.CRASH)], "", OPEN),
        (ONE, [result("ab", Status.SKIP)], "", OPEN),
        (ONE, [], "", OPEN),
        (ONE, [result("b", PASS)], "a", OPEN),
        (ONE, [result("a", FAIL)], "a", STILL),  # that it cannot be reached
        (ONE, [result("", FAIL)], "", STILL),  # a fault without a culprit may be this one
        (ONE, [result("b", FAIL, Place(host="b", peer="a"))], "", FIXED),  # now it is the other host's
        (ONE, [result("ab", FAIL, Place(host="b", peer="a"))], "", STILL),
        (TWO, [result("a", PASS), result("b", PASS)], "", FIXED),
        (TWO, [result("a", PASS), result("b", Status.UNKNOWN)], "", OPEN),
        (TWO, [result("a", FAIL), result("b", Status.UNKNOWN)], "", STILL),
        (NOBODY, [result("ab", PASS)], "", FIXED),
        (NOBODY, [result("a", FAIL)], "", STILL),
        (NOBODY, [result("ab", PASS)], "c", OPEN),
        (NOBODY, [], "", OPEN),
        (DEVICE, [result("a", FAIL, Place(device=3), Place(device=4))], "", STILL),
        (DEVICE, [result("a", FAIL, Place(device=4))], "", FIXED),
        (DEVICE, [result("a", FAIL)], "", STILL),
    ],
)
def test_what_has_become_of_it(
    before: EarlierFinding, results: list[Result], unheard: str, now: RecheckState
) -> None:
    (found,) = compare([before], results, dict.fromkeys(unheard, "out of reach"))
    assert found.now is now
    assert bool(found.why) is (now is OPEN or bool(found.open))


def test_each_host_is_named_with_what_has_become_of_it() -> None:
    before = EarlierFinding("f1", "x", ("a", "b", "c"), (), "")
    now = [result("a", FAIL), result("b", PASS)]
    (found,) = compare([before], now, {"c": "out of reach"})
    assert (found.still, found.open, found.why) == (("a",), ("c",), "out of reach")

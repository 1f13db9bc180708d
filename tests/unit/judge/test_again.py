"""The fate of a finding of an earlier run, by the results of a new one."""

from doctor.judge.again import EarlierFinding, RecheckState, compare
from doctor.model import Place, Problem, Result, Status
from tests.support.cases import cases_with

FIXED, STILL, OPEN = RecheckState.FIXED, RecheckState.STILL, RecheckState.OPEN
ONE = EarlierFinding("f1", "x", ("a",), (Place(host="a"),), "")
TWO = EarlierFinding("f1", "x", ("a", "b"), (), "")
NOBODY = EarlierFinding("f1", "x", (), (), "")
DEVICE = EarlierFinding("f1", "x", ("a",), (Place(host="a", device=3),), "")


def result(hosts: str, status: Status, *where: Place, check: str = "x") -> Result:
    problem = Problem("s", hosts=tuple(hosts), where=where) if status in (FAIL, WARN, Status.WAIVED) else None
    return Result(check, tuple(hosts), status, None if problem else "why", problem)


PASS, FAIL, WARN = Status.PASS, Status.FAIL, Status.WARN


@cases_with(result, Status, Place, ONE=ONE, TWO=TWO, NOBODY=NOBODY, DEVICE=DEVICE)
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

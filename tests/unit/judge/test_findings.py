"""Results folded into findings: what is grouped, what explains what, and what comes first."""

from collections.abc import Container, Iterable, Mapping
from typing import Any

from doctor.api import Check, Scope
from doctor.judge.findings import Views, fold_findings
from doctor.model import Confidence, Damage, Finding, Place, Problem, Remedy, Result, Status, Values, View
from tests.support.cases import cases, cases_with

FAIL, WARN, UNKNOWN, CRASH = Status.FAIL, Status.WARN, Status.UNKNOWN, Status.CRASH


def made(id: str, *causes: str, remedy: str | None = None, damage: Damage | None = None) -> Check:
    nothing: Any = lambda: iter(())  # noqa: E731
    return Check(id, id, (), Scope.HOST, nothing, "", "", damage=damage, remedy=remedy, causes=causes)


CHECKS = {
    c.id: c
    for c in (
        made("cause"),
        made("symptom", "cause"),
        made("echo", "symptom"),
        made("plain", remedy="fix-it"),
        *(made(damage.name.lower(), damage=damage) for damage in Damage),
    )
}


def result(check: str, hosts: str, status: Status = FAIL, **problem: Any) -> Result:
    """`hosts` are letters. A failed result has a problem, any other result has a reason."""
    if status in (FAIL, WARN):
        return Result(check, tuple(hosts), status, problem=Problem(problem.pop("summary", "sad"), **problem))
    return Result(check, tuple(hosts), status, problem.get("reason", "because"))


def fill_remedy(name: str, values: Values, vendors: Container[str]) -> Remedy | None:
    assert not vendors
    return Remedy(name, (f"{name} {dict(values)}",))


def folded(results: Iterable[Result], views: Mapping[str, View] | None = None) -> tuple[Finding, ...]:
    return fold_findings(list(results), CHECKS, Views(views or {}), fill_remedy)[0]


def shown(found: Iterable[Finding]) -> list[tuple[str, str, str | None]]:
    return [(f.check, "".join(f.hosts), f.because) for f in found]


def test_passes_and_skips_are_not_findings() -> None:
    assert folded([result("plain", "a", Status.PASS), result("plain", "b", Status.SKIP)]) == ()


def test_equal_faults_fold_over_hosts() -> None:
    (one,) = folded(Result("plain", (h,), FAIL, problem=Problem("sad")) for h in ("n1", "n2", "n4"))
    assert (one.hosts, one.nodeset) == (("n1", "n2", "n4"), "n[1-2,4]")
    assert one.where == tuple(Place(host=host) for host in one.hosts)


@cases
def test_different_faults_do_not(other: dict[str, Any]) -> None:
    assert len(folded([result("plain", "a"), result("plain", "b", **other)])) == 2


def test_findings_from_a_container_are_kept_apart() -> None:
    views = {"a": View.HOST, "b": View.CONTAINER}
    found = folded([result("plain", "a"), result("plain", "b")], views)
    assert [(f.hosts, f.view) for f in found] == [(("a",), View.HOST), (("b",), View.CONTAINER)]


def test_a_fault_of_several_culprits_is_not_folded() -> None:
    assert len(folded([result("plain", "ab"), result("plain", "ab"), result("plain", "")])) == 3


def test_unknowns_fold_by_reason() -> None:
    rows = [result("plain", host, UNKNOWN, reason=reason) for host, reason in zip("abc", "xyx", strict=True)]
    assert [("".join(f.hosts), f.summary, f.remedy) for f in folded(rows)] == [
        ("ac", "x", None),
        ("b", "y", None),
    ]


def test_places_without_a_host_get_that_of_the_finding() -> None:
    (lone,) = folded([result("plain", "a", where=(Place(port=5), Place(host="b", peer="a")))])
    assert lone.where == (Place(host="a", port=5), Place(host="b", peer="a"))
    (several,) = folded([result("plain", "ab", where=(Place(port=5),))])
    assert several.where == (Place(port=5),)


@cases_with(Remedy, tuple)
def test_remedies(problem: dict[str, Any], remedy: Remedy) -> None:
    (found,) = folded([result("plain", "a", **problem)])
    assert found.remedy == remedy


def test_the_most_damage_comes_first_and_then_what_most_hosts_have() -> None:
    """Five hosts at risk count less than one that is gone; if the damage is equal, the fault of the most
    hosts is first.
    """
    found = folded(
        [
            *(result("risk", host) for host in "abcde"),
            result("plain", "a"),
            result("load", "a"),
            result("wrong", "a"),
            *(result("blocked", host, summary=host) for host in "bcd"),
            *(result("gone", host) for host in "ab"),
            result("gone", "c", WARN),
        ]
    )
    assert [(f.check, "".join(f.hosts), f.status) for f in found] == [
        ("gone", "ab", FAIL),
        *(("blocked", host, FAIL) for host in "bcd"),
        ("wrong", "a", FAIL),
        ("load", "a", FAIL),
        ("risk", "abcde", FAIL),
        ("plain", "a", FAIL),
        ("gone", "c", WARN),
    ]


def test_faults_of_one_check_count_together() -> None:
    """They share a card: three hosts with a value each count against two with the same value."""
    alike = [Result("load", (host,), FAIL, problem=Problem("sad")) for host in ("n1", "n2")]
    own = [Result("shm", (host,), FAIL, problem=Problem(f"{host} MB")) for host in ("n3", "n4", "n5")]
    known = {**CHECKS, "shm": made("shm", damage=Damage.LOAD)}
    found = fold_findings([*alike, *own], known, Views({}), fill_remedy)[0]
    assert [f.check for f in found] == ["shm", "shm", "shm", "load"]


def test_findings_are_sorted_by_severity_with_symptoms_after_their_cause() -> None:
    found = folded(
        [
            result("echo", "a"),
            result("plain", "d", UNKNOWN),
            result("plain", "c", WARN),
            result("plain", "b", CRASH),
            result("symptom", "a"),
            result("plain", "a"),
            result("plain", "ab", summary="of two"),
            result("plain", "", summary="common to all"),
            result("cause", "a"),
        ]
    )
    assert shown(found) == [
        ("plain", "", None),
        ("plain", "ab", None),
        ("plain", "a", None),
        ("cause", "a", None),
        ("symptom", "a", "f4"),
        ("echo", "a", "f5"),
        ("plain", "b", None),
        ("plain", "c", None),
        ("plain", "d", None),
    ]
    assert [f.id for f in found] == [f"f{n}" for n in range(1, 10)]


@cases
def test_a_cause_explains_only_symptoms_on_its_host(cause: Result, symptom: Result, linked: bool) -> None:
    found = {f.check: f for f in folded([symptom, cause])}
    assert (found["symptom"].because == found["cause"].id) is linked
    assert found["cause"].because is None


def test_a_sure_cause_clears_the_other_suspects() -> None:
    """It does so if it is at one end of every failed link and does not concern the other end."""
    failed = Place(host="b", peer="a")
    suspects = result("symptom", "ab", confidence=Confidence.SUSPECT, where=(failed,))
    narrowed = folded([suspects, result("cause", "b")])[1]
    assert (narrowed.hosts, narrowed.nodeset) == (("b",), "b")
    elsewhere = folded([suspects, result("cause", "b", where=(Place(host="b", peer="c"),))])
    assert {f.check: f.hosts for f in elsewhere}["symptom"] == ("a", "b")
    certain = folded([result("symptom", "ab", where=(failed,)), result("cause", "b")])
    assert {f.check: f.hosts for f in certain}["symptom"] == ("a", "b")


def test_checks_that_explain_each_other_are_all_kept() -> None:
    circle = {"x": made("x", "y"), "y": made("y", "x")}
    found = fold_findings([result("x", "a"), result("y", "a")], circle, Views({}), fill_remedy)[0]
    assert sorted(f.check for f in found) == ["x", "y"]


def test_every_finding_has_an_id_of_its_own() -> None:
    found = folded(result("plain", "a", expected=expected) for expected in "xyz")
    assert [f.id for f in found] == ["f1", "f2", "f3"]

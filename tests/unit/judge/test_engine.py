"""How the engine handles checks that pass, fail, skip, stay undecided or crash, and missing facts."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from doctor.api import (
    EXPECT,
    HERE,
    PLAN,
    Capture,
    Check,
    Expect,
    Fact,
    Here,
    JobPlan,
    Problem,
    Run,
    RunValue,
    Scope,
    Severity,
    Skip,
    Undecided,
    UnreadableOutput,
    check,
    maybe,
)
from doctor.facts.run import UNREACHED
from doctor.job.plan import draft
from doctor.job.wishes import JobWishes
from doctor.judge.engine import Facts, Inputs, judge
from doctor.model import Backend, Host, MissingFact, Result, Status
from doctor.probe import HostAnswer
from tests.support.cases import cases, cases_with

HOSTS = ("a", "b", "c")


def nothing(*_: object) -> Iterator[Problem]:
    return iter(())


def parse(capture: Capture) -> str:
    if capture.stdout == "garbage":
        raise UnreadableOutput("it printed garbage")
    return capture.stdout.upper()[: 1 // len(capture.stdout) + 99]


WORD: Fact[str] = Fact("word", Run("echo"), parse)
OTHER: Fact[str] = Fact("other", Run("echo"), parse)
SUN: RunValue[str] = RunValue("sun", of_hosts=True)


def heard(host: str, word: str | None) -> HostAnswer:
    """`None` is a missing fact; an empty text makes the parser fail."""
    missing = {} if word is not None else {"word": MissingFact("word", "it hid")}
    captures = {"word": Capture("word", 0, word)} if word is not None else {}
    return HostAnswer(host, captures, missing, True, 0.0, 0.0)


def case(words: Mapping[str, str | None] | None = None, **more: Any) -> Inputs:
    words = dict.fromkeys(HOSTS, "x") if words is None else words
    plan = draft([Host(name, name) for name in words], JobWishes())
    plain = Inputs(plan, Facts({h: heard(h, w) for h, w in words.items()}), {}, Expect(), {"plan": plan}, {})
    return replace(plain, **more)


def outcomes(made: Check, given: Inputs) -> list[tuple[str, tuple[str, ...], str | None]]:
    return [(r.status.value, r.hosts, r.reason) for r in judge([made], given)]


def host_check(function: Callable[[str], Iterator[Problem]], **options: Any) -> Check:
    make: Callable[[Callable[[str], Iterator[Problem]]], Check] = check("it", WORD, **options)
    return make(function)


def test_yielding_nothing_is_a_pass() -> None:
    made = host_check(nothing)
    assert outcomes(made, case()) == [("pass", (host,), None) for host in HOSTS]


def test_a_problem_belongs_to_the_host_that_has_it() -> None:
    def odd(word: str) -> Iterator[Problem]:
        if word == "BAD":
            yield Problem("bad")

    assert outcomes(host_check(odd), case({"a": "x", "b": "bad"})) == [
        ("pass", ("a",), None),
        ("fail", ("b",), None),
    ]


def test_a_need_that_is_missing_makes_it_unknown_with_the_reason() -> None:
    made = host_check(nothing)
    assert outcomes(made, case({"a": None, "b": "garbage", "c": "x"})) == [
        ("unknown", ("a",), "word: it hid"),
        ("unknown", ("b",), "word: it printed garbage"),
        ("pass", ("c",), None),
    ]


def test_a_parser_that_fails_is_a_reason_and_stops_no_other_check() -> None:
    made = host_check(nothing)
    (broken, fine) = outcomes(made, case({"a": "", "b": "x"}))
    assert broken[:2] == ("crash", ("a",))
    assert broken[2] is not None
    assert broken[2].startswith("word: its parser broke (ZeroDivisionError")
    assert fine[0] == "pass"


def test_a_fact_that_the_recording_lacks() -> None:
    made = check("it", OTHER)(nothing)
    assert outcomes(made, case({"a": "x"})) == [("unknown", ("a",), "other: the recording does not hold it")]


def test_a_fact_is_parsed_once() -> None:
    calls: list[str] = []

    def count(capture: Capture) -> str:
        calls.append(capture.stdout)
        return "x"

    fact = Fact("word", Run("echo"), count)
    made = [check(f"it{n}", fact)(nothing) for n in range(3)]
    judge(made, case({"a": "x", "b": "y"}))
    assert calls == ["x", "y"]


def test_a_crash_names_its_place_and_stops_no_other_check() -> None:
    def breaks(word: str) -> Iterator[Problem]:
        yield Problem("found before it broke")
        raise KeyError(word)

    fine = check("fine", WORD)(nothing)
    results = judge([host_check(breaks), fine], case({"a": "x"}))
    assert [(r.check, r.status) for r in results] == [
        ("it", Status.CRASH),
        ("it", Status.FAIL),
        ("fine", Status.PASS),
    ]
    assert results[0].reason is not None
    assert results[0].reason.startswith("KeyError: 'X' (test_engine.py:")


def test_a_check_that_yields_something_else_crashes() -> None:
    made = host_check(lambda _: iter(["text"]))  # type: ignore[list-item]
    assert [status for status, _, _ in outcomes(made, case({"a": "x"}))] == ["crash"]


def test_a_skipped_check_has_its_reason() -> None:
    def skips(_: str) -> Iterator[Problem]:
        raise Skip("no such device")
        yield

    assert outcomes(host_check(skips), case({"a": "x"})) == [("skip", ("a",), "no such device")]


@cases_with(Backend)
def test_a_check_that_does_not_apply(options: dict[str, Any], hosts: tuple[str, ...], reason: str) -> None:
    made = host_check(nothing, **options)
    assert outcomes(made, case(dict.fromkeys(hosts, "x"))) == [("skip", hosts, reason)]


def test_undecided_keeps_what_was_found() -> None:
    def doubts(_: str) -> Iterator[Problem]:
        yield Problem("one thing is sure")
        raise Undecided("the other is not")

    assert outcomes(host_check(doubts), case({"a": "x"})) == [
        ("unknown", ("a",), "the other is not"),
        ("fail", ("a",), None),
    ]


def cluster_check(function: Callable[[Mapping[str, str]], Iterator[Problem]]) -> Check:
    return check("it", WORD, scope=Scope.CLUSTER)(function)


def test_a_cluster_check_gets_the_hosts_that_have_the_fact() -> None:
    seen: list[Mapping[str, str]] = []

    def look(words: Mapping[str, str]) -> Iterator[Problem]:
        seen.append(words)
        yield Problem("odd", hosts=("b",))

    assert outcomes(cluster_check(look), case({"a": "x", "b": "y", "c": None})) == [
        ("unknown", ("c",), "word: it hid"),
        ("fail", ("b",), None),
    ]
    assert seen == [{"a": "X", "b": "Y"}]


def test_a_cluster_check_without_any_fact_is_not_run() -> None:
    def never(_: Mapping[str, str]) -> Iterator[Problem]:
        raise AssertionError

    assert outcomes(cluster_check(never), case({"a": None, "b": None})) == [
        ("unknown", ("a", "b"), "word: it hid")
    ]


def test_undecided_for_some_hosts_of_a_cluster() -> None:
    def doubts(_: Mapping[str, str]) -> Iterator[Problem]:
        raise Undecided("not seen", ("c",))
        yield

    assert outcomes(cluster_check(doubts), case()) == [
        ("unknown", ("c",), "not seen"),
        ("pass", ("a", "b"), None),
    ]


def test_a_given_that_is_missing() -> None:
    made = check("it", SUN, scope=Scope.CLUSTER)(nothing)
    given = case(givens={"sun": MissingFact("sun", "it is night")})
    assert outcomes(made, given) == [("unknown", HOSTS, "sun: it is night")]


def test_an_optional_need_may_be_missing() -> None:
    got: list[str | None] = []

    def look(word: str | None) -> Iterator[Problem]:
        got.append(word)
        yield from ()

    judge([check("it", maybe(WORD))(look)], case({"a": "x", "b": None}))
    assert got == ["X", None]


def test_givens_belong_to_the_host_that_is_judged() -> None:
    got: list[tuple[str, bool, int, int]] = []

    def look(here: Here, expect: Expect, plan: JobPlan) -> Iterator[Problem]:
        got.append((here.name, here.is_head, expect.nofile, len(plan.hosts)))
        yield from ()

    judge([check("it", HERE, EXPECT, PLAN)(look)], case({"a": "x", "b": "x"}, expect={"b": Expect(nofile=7)}))
    assert got == [("a", True, 0, 2), ("b", False, 7, 2)]


@cases
def test_the_exam_overrides_the_problem_which_overrides_the_check(
    exam: Severity | None, problem: Severity | None, own: Severity, status: str
) -> None:
    made = host_check(lambda _: iter([Problem("p", severity=problem)]), severity=own)
    given = case({"a": "x"}, severities={"it": exam} if exam else {})
    assert outcomes(made, given) == [(status, ("a",), None)]


def test_the_same_facts_give_the_same_results() -> None:
    def judged() -> list[Result]:
        return judge([host_check(lambda word: iter([Problem(word)]))], case({"b": "y", "a": "x"}))

    assert judged() == judged()
    assert [result.hosts for result in judged()] == [("b",), ("a",)], "in the order of the hosts"


def test_without_an_answer_nothing_is_healthy() -> None:
    plan = draft([Host("a", "a"), Host("b", "b")], JobWishes())
    nobody = Inputs(plan, Facts({}), {}, Expect(), {"sun": "up", UNREACHED.name: {}}, {})
    by_fact = cluster_check(nothing)
    by_given = check("it", SUN, scope=Scope.CLUSTER)(nothing)
    assert outcomes(by_fact, nobody) == [("unknown", (), "no host answered")]
    assert outcomes(by_given, nobody) == [("unknown", (), "no host answered")]
    by_reach = check("it", UNREACHED, scope=Scope.CLUSTER)(nothing)
    assert outcomes(by_reach, nobody) == [("pass", (), None)], "that one judges just this"


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ({"a": "no", "b": "no"}, [((), "nobody has it")]),
        ({"a": "no", "b": "no", "c": None}, [((), "nobody has it; c could not be looked at")]),
        ({"a": "no", "b": "yes"}, [(("a",), "it is not there")]),
        ({"a": "no"}, [(("a",), "it is not there")]),
        ({"a": "no", "b": None}, [(("a",), "it is not there")]),
    ],
)
def test_what_all_hosts_are_given_alike_is_told_once(
    words: dict[str, str | None], found: list[tuple[tuple[str, ...], str]]
) -> None:
    """With those that could not be looked at."""

    def lacks(word: str) -> Iterator[Problem]:
        """It lacks what it was given."""
        if word == "NO":
            yield Problem("it is not there", of_all="nobody has it")

    made = check("lacks", WORD)(lacks)
    results = judge([made], case(words))
    assert [(r.hosts, r.problem.summary) for r in results if r.problem] == found

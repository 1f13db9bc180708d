"""Faults that share an examination: which of them may, and what is reported if one of them is not found."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support import batches as module
from tests.support.batches import batches, prove_each
from tests.support.cases import cases_with
from tests.support.faults import ALONE, HEAD, Fault, Outcome


def fault(check: str, status: str = "fail", args: tuple[str, ...] = ALONE, **more: Any) -> Fault:
    return Fault(check, str, status, args=args, **more)


def ids(faults: Mapping[str, Fault], *sample: str, **how: Any) -> list[str | None]:
    return [each.id for each in batches(faults, *sample, **how) if not each.marks]


def test_the_first_is_alone_and_three_of_the_others_share_a_run() -> None:
    assert ids({name: fault(name) for name in "abcdefgh"}) == ["a", "b + c + d", "e + f + g", "h"]
    assert ids({name: fault(name) for name in "abcde"}, size=2) == ["a", "b + c", "d + e"]


@cases_with(fault)
def test_faults_that_may_show_in_each_other_s_results_do_not_share_one(other: Fault) -> None:
    faults = {"a": fault("a"), "b": fault("b", on=HEAD), "c": other}
    assert ids(faults, *faults) == ["a", "b", "c"]


def test_where_hosts_connect_nothing_is_shared() -> None:
    assert ids({name: fault(name, args=()) for name in "abc"}) == ["a", "b", "c"]


def test_a_fault_that_shows_on_other_hosts_is_alone_in_place_of_the_first() -> None:
    assert ids({name: fault(name) for name in "abcd"}, alone=["c"]) == ["c", "a + b + d"]


def test_variants_are_long_unless_they_are_asked_for() -> None:
    faults = {"a": fault("x"), "b": fault("x", "warn"), "c": fault("y"), "d": fault("y")}
    assert ids(faults) == ["a", "b + c"]
    assert ids(faults, *faults, alike=True) == ["a", "b + c + d"]
    assert [each.id for each in batches(faults) if each.marks] == ["d"]


class Bench:
    """Hosts that can only be healed."""

    healed = 0

    def heal(self) -> None:
        self.healed += 1


@pytest.mark.parametrize("red", ["b", "", "abc"])
def test_a_red_batch_is_tried_one_by_one(red: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first fault that is red alone shows why; if none is, the batch itself is red."""
    tried = []

    def prove(faults: Mapping[str, Fault], bench: Bench, mended: bool) -> None:
        tried.append((*faults, bench.healed, mended))
        assert len(faults) == 1, "several"
        assert {*faults}.isdisjoint(red), "alone"

    monkeypatch.setattr(module, "_prove", prove)
    bench: Any = Bench()
    with pytest.raises(AssertionError, match="alone" if red else "several"):
        prove_each({name: fault(name) for name in "abc"}, bench, mended=True)
    assert tried[0] == ("a", "b", "c", 0, True)
    assert tried[-1] == ({"b": "b", "": "c", "abc": "a"}[red], len(tried) - 1, True)


def test_a_fault_alone_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def prove(*_: object) -> None:
        raise AssertionError("alone")

    monkeypatch.setattr(module, "_prove", prove)
    bench: Any = Bench()
    with pytest.raises(AssertionError):
        prove_each({"a": fault("a")}, bench)
    assert bench.healed == 0


def test_what_is_found_of_the_other_hosts_is_set_aside() -> None:
    place = {"rank": None, "device": 1, "port": None, "peer": None}
    one, two = ({"host": host, **place} for host in ("node1", "node2"))
    both = {"check": "x", "hosts": ["node1", "node2"], "where": [one, two]}
    of_nobody = {"check": "y", "hosts": [], "where": []}
    of_the_other = {"check": "z", "hosts": ["node2"], "where": []}
    outcome = Outcome(1, {"findings": [both, of_nobody, of_the_other]}, "", "", Path())
    left = module._without(outcome, {"node2"}).report["findings"]
    assert left == [{**both, "hosts": ["node1"], "where": [one]}, of_nobody]

"""What a trial of a scene counts as right, and the table of all trials."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.trials.hang.counts import counts
from tests.trials.hang.scenes.scene import SceneTruth, held_to
from tests.trials.outcome import Outcome

HANGS = SceneTruth((1,), frozenset({"node1"}), frozenset({40}), "sleep", rank=2)
WORKS = SceneTruth((0, 3), frozenset({"node1"}), frozenset({40}), rank=2)
STARTS = SceneTruth((1,), frozenset({"node2", "node3"}), says="has node rank 1")
RANK = {
    "rank": 2,
    "host": "node1",
    "pid": 40,
    "summary": "sleeps",
    "hang": {"stack": [{"function": "sleep"}]},
}


def of(
    truth: SceneTruth, code: int, *culprits: dict[str, Any], suspects: tuple[dict[str, Any], ...] = ()
) -> Outcome:
    named = [*((each, "fail") for each in culprits), *((each, "unknown") for each in suspects)]
    findings = [{**each, "status": status} for each, status in named]
    said = json.dumps({"headline": "", "findings": findings, "hang": {"notes": []}})
    return held_to(truth, "work sleep", 0, "", code, said, 1.0)


def test_right_is_the_process_its_number_and_its_line() -> None:
    assert of(HANGS, 1, RANK).right
    elsewhere = {"stack": [{"function": "train"}]}
    for changed in ({"pid": 41}, {"rank": 1}, {"host": "node2"}, {"hang": elsewhere}):
        assert not of(HANGS, 1, {**RANK, **changed}).right
    assert not of(HANGS, 1, RANK, {**RANK, "pid": 41}).alone
    assert not of(HANGS, 3).right


def test_work_is_never_accused_but_may_be_named() -> None:
    assert of(WORKS, 0).right
    assert of(WORKS, 3, suspects=(RANK,)).right
    assert not of(WORKS, 1, RANK).alone
    assert not of(WORKS, 3, suspects=({**RANK, "pid": 41},)).right
    loops = SceneTruth((3,), frozenset({"node1"}), frozenset({40}), "sleep", rank=2)
    assert of(loops, 3, suspects=(RANK,)).right
    assert not of(loops, 3).right, "it has to be named"


def test_all_hosts_of_a_start_are_named_and_for_the_right_reason() -> None:
    two = [
        {**RANK, "rank": None, "host": host, "summary": "has node rank 1, as"} for host in ("node2", "node3")
    ]
    assert of(STARTS, 1, *two).right
    assert not of(STARTS, 1, two[0]).named
    assert not of(STARTS, 1, *({**each, "summary": "calls port 1"} for each in two)).right


@pytest.mark.parametrize("said", ["", "no such option"])
def test_no_report_names_nobody(said: str) -> None:
    found = held_to(HANGS, "work sleep", 0, "", 2, said, 1.0)
    assert (found.right, found.alone) == (False, True)


def test_the_table_states_how_many_were_made() -> None:
    made = [of(HANGS, 1, RANK), of(HANGS, 3), of(HANGS, 1, {**RANK, "pid": 41})]
    said = counts(made, ["work sleep"], ())
    assert said.startswith("3 trials were made.")
    row = next(line for line in said.splitlines() if "work sleep" in line)
    assert [word.strip() for word in row.strip("| ").split("|")][1:5] == ["3", "1", "1", "1"]

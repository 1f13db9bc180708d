"""What a trial of a scene counts as right, and the table of all trials."""

import json
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from tests.support.cases import from_cases
from tests.trials.hang.__main__ import is_fault, part
from tests.trials.hang.answer import Answer
from tests.trials.hang.scenes.scene import LOOKS, HangScene, SceneTruth, held_to, looks_at
from tests.trials.outcome import Outcome
from tests.trials.table import table

HANGS = SceneTruth((1,), frozenset({"node1"}), frozenset({40}), "sleep", rank=2)
WORKS = SceneTruth((0, 3), frozenset({"node1"}), frozenset({40}), rank=2)
STARTS = SceneTruth((1,), frozenset({"node2", "node3"}), says="has node rank 1")
SCENE = HangScene("work sleep", lambda _: nullcontext(HANGS))
RANK = from_cases(__file__, "RANK", dict[str, Any])


def of(
    truth: SceneTruth, code: int, *culprits: dict[str, Any], suspects: tuple[dict[str, Any], ...] = ()
) -> Outcome:
    named = [*((each, "fail") for each in culprits), *((each, "unknown") for each in suspects)]
    findings = [{**each, "status": status} for each, status in named]
    said = json.dumps({"headline": "", "findings": findings, "hang": {"notes": []}})
    return held_to(truth, Answer("work sleep", 0, "", code, said, 1.0))


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
    found = held_to(HANGS, Answer("work sleep", 0, "", 2, said, 1.0))
    assert (found.right, found.alone) == (False, True)


def test_every_run_is_counted_as_one_of_four() -> None:
    made = [of(HANGS, 1, RANK), of(HANGS, 3), of(HANGS, 1, {**RANK, "pid": 41}), of(HANGS, 1)]
    assert [each.verdict for each in made] == ["right", "silent", "falsely", "wrong"]
    assert cells(table(made, ["work sleep"]), "work sleep")[1:6] == ["4", "1", "1", "1", "1"]


def cells(text: str, name: str) -> list[str]:
    row = next(line for line in text.splitlines() if line.startswith(f"| {name} "))
    return [word.strip() for word in row.strip("| ").split("|")]


def test_ways_to_look_are_counted_apart() -> None:
    made = [replace(of(HANGS, 1, RANK), fault=look.at(SCENE)) for look in LOOKS[:2]]
    said = table(made, (), lambda name: f"every fault{part(name)}")
    assert cells(said, "every fault")[1] == "1"
    assert cells(said, "every fault, as its user")[1] == "1"


def test_owners_take_turns_and_have_their_own_looks() -> None:
    first, second = ([name for name, _ in looks_at(SCENE, number)] for number in (0, 1))
    assert first == ["work sleep", "work sleep, as its user", "work sleep, without py-spy"]
    assert second == ["work sleep", "work sleep, as another user", "work sleep, without py-spy"]


def test_healthy_work_is_no_fault() -> None:
    assert is_fault("ddp sleep")
    assert not is_fault("tp checkpoint")
    assert is_fault("work sleep, without py-spy")
    assert not is_fault("work matmul, as its user")


def test_without_stacks_no_line_is_asked_for_and_a_stranger_accuses_nobody() -> None:
    blind = {**RANK, "rank": None, "hang": {"stack": []}}
    assert of(HANGS.without_stacks(), 1, blind).right
    assert not of(HANGS.without_stacks(), 3).right
    assert of(HANGS.for_a_stranger(), 3).right
    assert of(HANGS.for_a_stranger(), 3, suspects=(blind,)).right
    assert not of(HANGS.for_a_stranger(), 1, blind).alone
    assert not of(HANGS.for_a_stranger(), 0).right, "it does not move"
    assert not of(WORKS.for_a_stranger(), 3, suspects=({**blind, "pid": 41},)).right
    assert of(STARTS.for_a_stranger(), 3).right

"""What a trial of `doctor hang` counts as right."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.cases import from_cases
from tests.trials.hang.answer import Answer
from tests.trials.hang.drawn import Drawn, Victim, draw
from tests.trials.hang.held import held
from tests.trials.outcome import Outcome

GUILTY = from_cases(__file__, "GUILTY", dict[str, Any])


NODES = ("node1", "node2", "node3", "node4")


def drawn(fault: str, *victims: tuple[int, str], without: tuple[int, ...] = ()) -> Drawn:
    who = tuple(Victim(*each) for each in victims or ((2, fault),))
    return Drawn("ddp", fault, 0, "torchrun", "root", 1, who, 5, 29500, without)


def answered(code: int, said: str) -> Answer:
    return Answer("ddp sleep", 0, "", code, said, 1.0)


def of(
    fault: str | Drawn,
    code: int,
    *culprits: dict[str, Any],
    suspects: Sequence[Any] = (),
    notes: Sequence[str] = (),
    verdict: str = "hang",
) -> Outcome:
    named = [*((each, "fail") for each in culprits), *((each, "unknown") for each in suspects)]
    findings = [{**each, "status": status, "hang": each} for each, status in named]
    part = {"state": verdict, "notes": notes, "rights": {"unread": ["node2: why"]}}
    said = json.dumps({"headline": "", "findings": findings, "hang": part})
    return held(fault if isinstance(fault, Drawn) else drawn(fault), NODES, answered(code, said))


def test_right_is_the_rank_its_host_what_it_does_and_where() -> None:
    assert of("sleep", 1, GUILTY).right


@pytest.mark.parametrize(
    "wrong",
    [{"rank": 1}, {"host": "node2"}, {"cause": "computes"}, {"stack": [{"function": "spin"}]}],
    ids=lambda wrong: next(iter(wrong)),
)
def test_anything_else_is_wrong(wrong: dict[str, Any]) -> None:
    assert not of("sleep", 1, {**GUILTY, **wrong}).right


def test_nobody_else_may_be_accused() -> None:
    outcome = of("sleep", 1, GUILTY, {**GUILTY, "rank": 0, "host": "node1"})
    assert (outcome.named, outcome.alone) == (True, False)


def test_a_fault_that_was_not_found_is_wrong() -> None:
    assert not of("sleep", 0).detected


def test_in_a_healthy_job_nobody_may_be_accused() -> None:
    assert of("healthy", 0).right
    assert not of("healthy", 1, GUILTY).right
    assert not of("healthy", 3).right


def test_an_endless_loop_is_to_be_named_and_not_accused() -> None:
    loop = {**GUILTY, "cause": "computes", "stack": [{"function": "spin"}]}
    assert of("spin", 3, suspects=[loop], verdict="unknown").right
    assert not of("spin", 1, loop).right
    assert not of("spin", 3, verdict="unknown").right
    assert not of("spin", 3, suspects=[{**loop, "rank": 1}], verdict="unknown").right
    assert not of("spin", 3, suspects=[{**loop, "stack": []}], verdict="unknown").right


def test_no_answer_at_all_is_wrong() -> None:
    assert not held(drawn("healthy"), NODES, answered(70, "Traceback")).right


def test_both_of_two_victims_are_to_be_named_each_with_its_own_fault() -> None:
    two = drawn("two", (2, "sleep"), (3, "stop"))
    other = {"rank": 3, "host": "node4", "cause": "stopped", "summary": "", "stack": []}
    assert of(two, 1, GUILTY, other).right
    assert not of(two, 1, GUILTY).named
    assert not of(two, 1, other).named
    assert of(two, 1, other, notes=["rank 2 on node3 is outside as well: it sleeps"]).right
    assert not of(two, 1, GUILTY, {**other, "rank": 0, "host": "node1"}).alone


def test_without_a_stack_the_rank_has_to_be_named_and_not_the_function() -> None:
    bare = {**GUILTY, "stack": [], "cause": "is outside every collective"}
    assert not of("sleep", 1, bare).right
    beside = {**GUILTY, "rank": 3, "host": "node4"}
    perhaps = ["rank 2 may be outside as well: no stack shows what it waits for"]
    for without, right in (((2,), True), ((), False)):
        two = drawn("two", (2, "loader"), (3, "sleep"), without=without)
        assert of(two, 1, beside, notes=perhaps).right is right
    assert of(drawn("sleep", without=(2,)), 1, bare).right
    assert not of(drawn("sleep", without=(2,)), 1, {**bare, "rank": 1, "host": "node2"}).right


def test_of_a_mismatch_nobody_is_shown_alone() -> None:
    innocent = {**GUILTY, "rank": 0, "host": "node1"}
    assert of("skip", 3).right
    assert of("skip", 3, suspects=[GUILTY, innocent]).right
    assert not of("skip", 3, suspects=[GUILTY]).right
    assert not of("skip", 3, suspects=[innocent, {**innocent, "rank": 1}]).right
    assert not of("skip", 1, GUILTY, innocent).right
    unknown = of("skip", 3, verdict="unknown")
    assert not unknown.right
    assert "node2: why" in unknown.said


def draws(fault: str, mode: str = "ddp", *, ranks: int = 1) -> list[Drawn]:
    launchers, users = ("torchrun", "mpirun", "srun"), ("root", "trainee")
    made = [
        draw(mode, fault, n, hosts=4, ranks=ranks, launchers=launchers, users=users, without=2)
        for n in range(40)
    ]
    return [each for each in made if each]


def test_conditions_are_drawn_anew_for_each_trial_and_again_the_same() -> None:
    made = draws("sleep")
    assert made == draws("sleep")
    assert {each.launcher for each in made} == {"torchrun", "mpirun", "srun"}
    assert {each.user for each in made} == {"root", "trainee"}
    assert {len(each.without) for each in made} == {0, 2}
    assert {each.victims[0].rank for each in made} == {0, 1, 2, 3}


@pytest.mark.parametrize("mode", ["ddp", "tp", "pp"])
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_cut_is_between_two_hosts(mode: str, ranks: int) -> None:
    for each in draws("netdrop", mode, ranks=ranks):
        assert len({each.host_of(victim) for victim in each.victims}) == 2


def test_who_holds_the_store_is_not_killed() -> None:
    assert min(victim.rank for each in draws("kill") for victim in each.victims) >= 2
    assert {each.launcher for each in draws("kill")} == {"srun"}


def test_what_no_given_launcher_can_have_is_not_tried() -> None:
    assert draw("ddp", "kill", 0, hosts=4, ranks=1, launchers=["mpirun"], users=["root"], without=0) is None

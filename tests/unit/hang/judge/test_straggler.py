"""A rank that is late again and again is reported after enough looks, and only if it is not chance."""

from __future__ import annotations

import random

from doctor.hang.judge import judge
from doctor.hang.judge.judgement import Straggler
from doctor.hang.judge.straggler import LOOKS, Stragglers
from doctor.hang.report_json import hang_part
from tests.support.hang.written import evidence


def after(looks: list[list[str]]) -> Straggler | None:
    late = Stragglers()
    for does in looks:
        late.add(judge(evidence(does, silent=0.1)))
    return late.found()


def test_it_is_said_after_enough_looks_and_not_before() -> None:
    look = ["waits"] * 5 + ["sleeps"] + ["waits"] * 2
    for number in range(LOOKS):
        assert after([look] * number) is None
    found = after([look] * LOOKS)
    assert found == Straggler(5, "node2", 4050, 5, 5)
    assert str(found) == "others waited for rank 5 on node2 in 5 of 5 looks: it may be the slowest"


def test_of_two_ranks_it_takes_more_looks() -> None:
    assert after([["waits", "sleeps"]] * 10) is None
    assert after([["waits", "sleeps"]] * 11) == Straggler(1, "node2", 4010, 11, 11)


def test_two_that_are_late_and_looks_without_anybody_waiting_say_nothing() -> None:
    assert after([["waits", "sleeps", "sleeps", "waits"]] * 30) is None
    assert after([["waits"] * 4] * 30) is None
    assert after([["sleeps"] * 4] * 30) is None


def test_chance_names_nobody() -> None:
    dice = random.Random(7)
    named = 0
    for _ in range(40):
        late = Stragglers()
        for _ in range(12):
            late.add(judge(evidence([dice.choice(["waits", "sleeps"]) for _ in range(4)], silent=0.1)))
            named += late.found() is not None
    assert named == 0


def test_it_is_in_json() -> None:
    assert hang_part(judge(evidence(["waits"] * 2))).straggler is None

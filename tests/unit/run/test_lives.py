"""When the processes of a command ran: those below it, whoever is their parent later."""

import os
from math import inf

import pytest

from doctor.run import lives
from doctor.run.lives import CommandLives

SHELL, RANK, WORKER, OTHER = 10, 11, 12, 90


def test_all_below_the_command_are_remembered_and_nobody_else() -> None:
    found = CommandLives(SHELL)
    found.see({SHELL: (2, "a"), RANK: (SHELL, "b"), WORKER: (RANK, "c"), OTHER: (2, "d")}, 5.0)
    assert {*found.spans()} == {(SHELL, 5.0, inf), (RANK, 5.0, inf), (WORKER, 5.0, inf)}


def test_a_process_whose_parents_have_ended_still_counts_with_what_it_starts() -> None:
    found = CommandLives(SHELL)
    found.see({SHELL: (2, "a"), RANK: (SHELL, "b")}, 5.0)
    found.see({RANK: (1, "b"), WORKER: (RANK, "c"), OTHER: (1, "d")}, 10.0)
    assert {*found.spans()} == {(SHELL, 5.0, 10.0), (RANK, 5.0, inf), (WORKER, 10.0, inf)}


def test_a_pid_that_came_again_counts_only_below_the_command() -> None:
    found = CommandLives(SHELL)
    found.see({SHELL: (2, "a"), RANK: (SHELL, "b"), WORKER: (SHELL, "c")}, 5.0)
    found.see({SHELL: (2, "a"), RANK: (1, "e"), WORKER: (SHELL, "f")}, 10.0)
    assert [each for each in found.spans() if each[0] != SHELL] == [
        (RANK, 5.0, 10.0),
        (WORKER, 5.0, 10.0),
        (WORKER, 10.0, inf),
    ]
    found.see({SHELL: (1, "g"), OTHER: (SHELL, "h")}, 15.0)
    assert (SHELL, 5.0, 15.0) in found.spans()
    assert {pid for pid, _, until in found.spans() if until == inf} == set()


def test_only_so_many_that_have_ended_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lives, "MOST", 3)
    found = CommandLives(SHELL)
    for number in range(20, 30):
        found.see({SHELL: (2, "a"), number: (SHELL, "b")}, float(number))
    assert {pid for pid, *_ in found.spans()} == {26, 27, 28, SHELL, 29}


def test_a_process_of_this_machine_is_seen() -> None:
    found = CommandLives(os.getpid())
    found.look(0.0)
    spans = [until for pid, _, until in found.spans() if pid == os.getpid()]
    assert spans == ([inf] if lives._is_outside() else [])


def test_in_a_container_nothing_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel names processes by other PIDs."""
    monkeypatch.setattr(os, "readlink", lambda _: "pid:[4026532177]")
    found = CommandLives(os.getpid())
    found.look(0.0)
    assert found.spans() == []

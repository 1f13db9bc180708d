"""Ending all children: what only needs a processor to end is not called a process that cannot be killed."""

import os
import signal
from collections.abc import Iterator

import pytest

from doctor.agents.onhost import process
from doctor.agents.onhost.process import BUSY, end_children

SECONDS = 2.0
PID = 4711


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    clock = Clock()
    monkeypatch.setattr(process, "time", clock)
    monkeypatch.setattr(process, "children", lambda: [PID])
    monkeypatch.setattr(os, "listdir", lambda _: [str(PID), "4712"])
    killed: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda *told: killed.append(told))
    yield clock
    assert {*killed} == {(PID, signal.SIGKILL)}


def _threads(monkeypatch: pytest.MonkeyPatch, first: str, second: str) -> None:
    states = {f"{PID}/task/{PID}": first, f"{PID}/task/4712": second, str(PID): first}
    monkeypatch.setattr(process, "stat_fields", lambda which: [states[str(which)]])


def _gone_after(monkeypatch: pytest.MonkeyPatch, clock: Clock, seconds: float) -> None:
    until = clock.now + seconds
    monkeypatch.setattr(process, "_reap", lambda: clock.now < until)


@pytest.mark.parametrize("state", ["R", "Z", "S"])
def test_a_process_that_waits_for_a_processor_ends_later(
    state: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    _threads(monkeypatch, state, "R")
    _gone_after(monkeypatch, clock, 3 * SECONDS)
    assert end_children(SECONDS) == []


@pytest.mark.parametrize(("first", "second"), [("D", "S"), ("Z", "D")])
def test_a_process_that_sleeps_in_the_kernel_is_a_survivor(
    first: str, second: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = clock.now
    _threads(monkeypatch, first, second)
    _gone_after(monkeypatch, clock, 100 * SECONDS)
    assert end_children(SECONDS) == [(PID, "D")]
    assert clock.now - began < 1.1 * SECONDS


def test_a_process_that_never_ends_is_a_survivor_at_last(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = clock.now
    _threads(monkeypatch, "R", "R")
    _gone_after(monkeypatch, clock, 100 * SECONDS)
    assert end_children(SECONDS) == [(PID, "R")]
    assert clock.now - began >= BUSY * SECONDS

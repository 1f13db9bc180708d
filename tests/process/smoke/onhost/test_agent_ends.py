"""However and in whatever phase a smoke agent ends, nothing of its run is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from doctor.smoke.agents import smoke_script
from doctor.smoke.onhost import agent as program
from tests.support.cases import cases
from tests.support.faults import some_of
from tests.support.smoke.agent import JOINING, STAND_INS, Agent, Open, agents


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Open]:
    yield from agents(tmp_path)


def _before_start(_: Agent) -> None:
    pass


def _importing(run: Agent) -> None:
    run.start(2, store=True)
    until = time.monotonic() + 20
    while not any("forkserver" in line for line in run.pids().values()):
        assert time.monotonic() < until
        time.sleep(0.02)


def _working(run: Agent) -> None:
    run.start(2, "time.sleep(600)")
    run.spawned()


def _stopped(run: Agent) -> None:
    _working(run)
    for pid in run.said("spawned")[0]["pids"].values():
        os.kill(pid, signal.SIGSTOP)


def _with_families(run: Agent) -> None:
    """Ranks that have started processes in new sessions."""
    run.start(2, "subprocess.Popen(['sleep', '600'], start_new_session=True); say(ev='two'); time.sleep(600)")
    run.event("two")
    run.event("two")


PHASES = [_before_start, _importing, _working, _stopped]
SLOW_TORCH = "import time; time.sleep(60); __version__ = '1'"


def _in_phase(agent: Open, phase: Callable[[Agent], None]) -> Agent:
    run = agent(torch=SLOW_TORCH) if phase is _importing else agent()
    phase(run)
    return run


def _hang_up(run: Agent) -> None:
    run.session.close()


def _stop(run: Agent) -> None:
    run.stop()


def _signal(number: int) -> Callable[[Agent], None]:
    return lambda run: os.kill(run.agent_pid(), number)


ENDS: dict[str, Callable[[Agent], None]] = {
    "hang up": _hang_up,
    "SIGKILL": _signal(signal.SIGKILL),
    "stop": _stop,
}


def in_phases(ends: Iterable[object], *everywhere: object) -> list[Any]:
    """The first ones in every phase, the others while ranks work; the rest is marked long."""
    pairs = [(end, phase) for end in ends for phase in PHASES]
    return some_of(pairs, *(pair for pair in pairs if pair[0] in everywhere or pair[1] is _working))


@pytest.mark.parametrize(("end", "phase"), in_phases(ENDS, "hang up", "SIGKILL"))
def test_nothing_is_left(agent: Open, end: str, phase: Callable[[Agent], None]) -> None:
    run = _in_phase(agent, phase)
    assert run.pids()
    ENDS[end](run)
    assert run.gone_within(9), run.pids()
    assert not list(Path("/dev/shm").glob(f"*{run.mark}*"))


@pytest.mark.parametrize("end", [_stop, _signal(signal.SIGTERM)])
def test_children_of_ranks_end_with_them(agent: Open, end: Callable[[Agent], None]) -> None:
    run = _in_phase(agent, _with_families)
    assert sum(line.startswith("sleep ") for line in run.pids().values()) == 2
    end(run)
    assert run.gone_within(9), run.pids()


@pytest.mark.parametrize(
    ("number", "phase"), in_phases((signal.SIGTERM, signal.SIGHUP, signal.SIGINT), signal.SIGTERM)
)
def test_a_signal_ends_an_agent_in_order(agent: Open, phase: Callable[[Agent], None], number: int) -> None:
    run = _in_phase(agent, phase)
    os.kill(run.agent_pid(), number)
    run.until("bye", seconds=9)
    assert run.gone_within(9)
    assert not list(Path("/dev/shm").glob(f"*{run.mark}*"))


@pytest.mark.parametrize("phase", PHASES[1:])
def test_silence_ends_an_agent_when_its_lease_runs_out(agent: Open, phase: Callable[[Agent], None]) -> None:
    run = agent(torch=SLOW_TORCH) if phase is _importing else agent()
    run.lease = 1.5
    phase(run)
    run.beating = False
    run.until("bye", seconds=6)
    assert run.gone_within(9)


def test_an_agent_ends_when_its_lease_is_not_renewed(agent: Open) -> None:
    run = agent()
    run.lease = 1.0
    run.start(2)
    run.spawned()
    until = time.monotonic() + 2
    while time.monotonic() < until:
        run.hear(0.2)
    assert not run.said("bye")
    run.beating = False
    began = time.monotonic()
    run.until("bye")
    assert 0.8 < time.monotonic() - began < 20
    assert run.gone_within(9)


def test_a_controller_that_does_not_read_delays_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent still watches its lease although a pipe is full."""
    run = Agent(tmp_path)
    try:
        script = smoke_script(sys.executable, STAND_INS)
        env = dict(os.environ, DOCTOR_TEST_MARK=run.mark)
        deaf = subprocess.Popen(
            script.command, shell=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env
        )
        assert deaf.stdin is not None
        assert deaf.stdout is not None
        deaf.stdin.write(script.stdin)
        sent: list[bytes] = []
        monkeypatch.setattr(run, "write", sent.append)
        run.start(1, "while True: say(ev='x' * 9000)", lease=2)
        deaf.stdin.write(sent[0] + b"\n")
        deaf.stdin.flush()
        began = time.monotonic()
        assert deaf.wait(20) == 0
        assert time.monotonic() - began > 1.5
        deaf.stdin.close()
        deaf.stdout.close()
    finally:
        run.close()
    assert run.gone_within(9)


def test_the_death_of_the_process_that_starts_the_ranks_is_reported(agent: Open) -> None:
    run = agent()
    run.start(2, "time.sleep(600)")
    run.spawned()
    os.kill(run.forkserver_pid(), signal.SIGKILL)
    assert "the process that started the ranks ended (signal 9)" in run.until("trouble")["text"]
    run.until("bye")
    assert run.gone_within(9)


def test_an_interpreter_behind_a_wrapper_ends_too(agent: Open, tmp_path: Path) -> None:
    wrapper = tmp_path / "wrapper"
    wrapper.write_text(f'#!/bin/sh\n{sys.executable} "$@"\nexit $?\n')
    wrapper.chmod(0o755)
    run = agent()
    run.start(2, JOINING, python=str(wrapper))
    run.spawned()
    os.kill(run.agent_pid(), signal.SIGKILL)
    assert run.gone_within(9), run.pids()


@pytest.mark.timeout(method="thread")  # the timer is this test's subject
@cases
def test_a_process_that_cannot_be_killed_is_named(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, state: str, why: str
) -> None:
    monkeypatch.setattr(program, "end_children", lambda _: [(123, state)])
    program.SmokeAgent(b"", 0).end()
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0  # an agent that does not serve ends no process
    said = f'{{"say":"trouble","text":"process 123 cannot be killed ({why})"}}\n'
    assert capfd.readouterr().out == said

"""However and in whatever phase a smoke run ends, no process, file or listener of it stays anywhere."""

import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.lab import Host, Lab, Snapshot
from tests.lab.warm import Started
from tests.support.smoke.faults import silence, sitecustomize
from tests.support.smoke.pages import Rank, agent, sessions, watching
from tests.trials.kinds import STUCK_IMPORT
from tests.trials.once import ONCE

HOSTS = ("node1", "node2")
VICTIM = "node2"
PHASES = ("start", "join", "collectives", "train", "audit", "bandwidth")
STANDS = {"start": ("ready", 0), "train": ("train", 1)}
SOON, LEASE = 9.0, 45.0
"""Seconds in which a host must be clean: after the end of its connection, before any lease runs out, and
after a silent loss.
"""


@dataclass(frozen=True, slots=True)
class Run:
    """A smoke run of two hosts, and their state before it."""

    lab: Lab
    process: Started
    report: Path
    before: dict[str, Snapshot]

    def end(self) -> str:
        """Wait for its end; returns its whole output."""
        out, errors = self.process.communicate(timeout=60)
        assert "Traceback" not in out + errors
        return out + errors

    @property
    def failed(self) -> dict[str, list[str]]:
        """Check -> hosts, for faults in the report."""
        told: dict[str, Any] = json.loads(self.report.read_bytes())
        found = [each for each in told["findings"] if each["status"] in ("fail", "crash")]
        return {each["check"]: each["hosts"] for each in found}

    def assert_clean(self, since: float, limit: float, names: Sequence[str] = HOSTS, but: str = "") -> None:
        """Assert that nothing is left within `limit` seconds of `since`; `but` names processes that are not
        ours.
        """
        for name in names:
            while left := self._left(name, but):
                assert time.monotonic() < since + limit, f"{name} after {limit:g} s: {left}"
                time.sleep(0.02)

    def _left(self, name: str, but: str) -> Snapshot | None:
        left = self.lab[name].leftovers(self.before[name])
        ours = frozenset(each for each in left.processes if not but or but not in each.command)
        return Snapshot(ours, left.files, left.ports) or None


@pytest.fixture
def start(lab: Lab, tmp_path: Path) -> Iterator[Callable[[str], Run]]:
    """`start(phase)` returns as soon as a run has reached that phase: most phases are short."""
    runs: list[Run] = []

    def begin(phase: str) -> Run:
        if phase == "start":
            sitecustomize(lab[VICTIM], STUCK_IMPORT.replace("{name}", "torch"))
        steps = "1000" if phase == "train" else "4"
        before = {name: lab[name].snapshot() for name in HOSTS}
        options = ("--python", sys.executable, "--ranks-per-host", "2", "--steps", steps)
        report = tmp_path / "report.json"
        process = lab.start_doctor("smoke", *HOSTS, *options, "--json", str(report), program=ONCE)
        runs.append(Run(lab, process, report, before))
        with watching(lab) as watch:
            # While one host is held in its import, the ranks of the other are ready and wait.
            watch.await_phase(*STANDS.get(phase, (phase, 0)), run=process)
        return runs[-1]

    yield begin
    for run in runs:
        run.process.kill()


def ways(*pairs: tuple[Any, str], among: Sequence[Any]) -> list[Any]:
    """Each way in each phase; those that are not listed here are marked long."""
    return [
        (way, phase) if (way, phase) in pairs else pytest.param(way, phase, marks=pytest.mark.long)
        for way in among
        for phase in PHASES
    ]


@pytest.mark.parametrize(
    ("number", "phase"),
    ways(
        (signal.SIGINT, "train"),
        (signal.SIGTERM, "collectives"),
        (signal.SIGKILL, "train"),
        among=(signal.SIGINT, signal.SIGTERM, signal.SIGKILL),
    ),
)
def test_ended_by_a_signal(phase: str, number: signal.Signals, start: Callable[[str], Run]) -> None:
    """Ctrl-C, the end of a job's time, and a signal that cannot be handled."""
    run = start(phase)
    run.process.send_signal(number)
    sent = time.monotonic()
    if number is signal.SIGKILL:
        run.assert_clean(sent, SOON)
        return
    said = run.end()
    run.assert_clean(sent, SOON)
    assert run.process.returncode == 128 + number, said
    assert "Interrupted." in said
    assert run.failed == {}, "an end on purpose is nobody's fault"


def stores(seen: list[Rank]) -> bool:
    """Whether a rank has its file without a name in a folder of the host."""
    for rank in seen:
        with suppress(FileNotFoundError):  # it was closed while we looked
            links = Path(f"/proc/{rank.pid}/fd").iterdir() if rank.phase == "bandwidth" else ()
            if any(re.search(r"/scratch/.*\(deleted\)$", os.readlink(link)) for link in links):
                return True
    return False


def sweeps(seen: list[Rank]) -> bool:
    """Whether collectives are timed by size: the second rank of a host measures no pairs."""
    return any(rank.phase == "bandwidth" and rank.local == 1 and rank.inside for rank in seen)


@pytest.mark.parametrize(
    ("number", "moment"),
    [
        (signal.SIGKILL, sweeps),
        (signal.SIGKILL, stores),
        (signal.SIGINT, sweeps),
        pytest.param(signal.SIGINT, stores, marks=pytest.mark.long),
        pytest.param(signal.SIGTERM, sweeps, marks=pytest.mark.long),
    ],
)
def test_an_acceptance_test_ended_by_a_signal(
    number: signal.Signals, moment: Callable[[list[Rank]], bool], lab: Lab, tmp_path: Path
) -> None:
    """While files are written on the hosts, and while collectives are timed."""
    for name in HOSTS:
        lab[name].do("mkdir -p /tmp/scratch")
    before = {name: lab[name].snapshot() for name in HOSTS}
    report = tmp_path / "report.json"
    options = ("--python", sys.executable, "--ranks-per-host", "2", "--steps", "4", "--path", "/tmp/scratch")
    process = lab.start_doctor("accept", *HOSTS, *options, "--json", str(report), program=ONCE)
    run = Run(lab, process, report, before)
    try:
        with watching(lab) as watch:
            watch.await_that(moment, moment.__name__, run=process, timeout=120)
        process.send_signal(number)
        sent = time.monotonic()
        said = "" if number is signal.SIGKILL else run.end()
        run.assert_clean(sent, SOON)
    finally:
        process.kill()
    if said:
        assert (process.returncode, "Interrupted." in said, run.failed) == (128 + number, True, {})


def assert_lost(run: Run, phase: str) -> None:
    """Assert that only the victim is at fault; a host that is lost before its ranks ran may not have started
    them.
    """
    (fault,) = run.failed.items()
    assert fault[1] == [VICTIM]
    assert fault[0] == "smoke-crash" or (fault[0] == "smoke-not-started" and phase == "start"), fault


def kill_agent(host: Host) -> None:
    supervisor = agent(host)
    assert supervisor is not None
    os.kill(supervisor, signal.SIGKILL)


def kill_session(host: Host) -> None:
    for process in sessions(host):
        os.kill(process, signal.SIGKILL)


@pytest.mark.parametrize(
    ("cut", "phase"),
    ways(
        (kill_agent, "train"),
        (kill_session, "train"),
        among=(kill_agent, kill_session),
    ),
)
def test_the_connection_of_a_host_ends(
    phase: str, cut: Callable[[Host], None], start: Callable[[str], Run], lab: Lab
) -> None:
    """Its own processes end at once, those of the other hosts once the run has reported the lost host.

    The controller may log in again by then, to see whether the host is still there.
    """
    run = start(phase)
    cut(lab[VICTIM])
    struck = time.monotonic()
    run.assert_clean(struck, SOON, [VICTIM], but="sshd: ")
    said = run.end()
    run.assert_clean(time.monotonic(), SOON)
    assert run.process.returncode == 1, said
    assert_lost(run, phase)


@pytest.mark.parametrize("phase", [pytest.param("start", marks=pytest.mark.long), "train"])
def test_a_host_is_lost_silently(phase: str, start: Callable[[str], Run], lab: Lab) -> None:
    """No packet passes any more and no connection ends, but the lease runs out. Only sshd still waits."""
    run = start(phase)
    silence(lab[VICTIM], but_ssh=False)
    struck = time.monotonic()
    run.assert_clean(struck, LEASE, [VICTIM], but="sshd: ")
    said = run.end()
    run.assert_clean(time.monotonic(), SOON, ["node1"])
    assert run.process.returncode == 1, said
    assert_lost(run, phase)


def test_a_run_that_ends_by_itself_leaves_nothing(start: Callable[[str], Run]) -> None:
    run = start("bandwidth")
    said = run.end()
    run.assert_clean(time.monotonic(), SOON)
    assert run.process.returncode == 0, said
    assert run.failed == {}

"""`doctor smoke` on real hosts: healthy ones, and with each fault that it can inject."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from doctor.judge.reading import read_recording
from doctor.recording import load
from doctor.smoke.judge.speed import perhaps_slow
from tests.lab import Lab, missing
from tests.support.cases import cases
from tests.support.commands import doctor
from tests.support.faults import some_of
from tests.trials.kinds import INSIDE, STAGED
from tests.trials.outcome import MISSED, trouble
from tests.trials.run import Field, trial

PHASES = ["start", "join", "collectives", "train", "audit", "bandwidth"]


@dataclass(frozen=True, slots=True)
class Smoked:
    """The result of one smoke run."""

    code: int
    report: dict[str, Any]
    text: str
    errors: str
    recording: Path

    @property
    def smoke(self) -> dict[str, Any]:
        smoke: dict[str, Any] = self.report["smoke"]
        return smoke

    @property
    def phases(self) -> list[str]:
        return [each["name"] for each in self.smoke["phases"] if each["status"] == "pass"]


@dataclass(frozen=True, slots=True)
class Smoker:
    """`doctor smoke` on the controller of a lab, its report read back."""

    lab: Lab
    folder: Path

    def __call__(self, *args: str, user: str | None = None, python: str = sys.executable) -> Smoked:
        report, recording = self.folder / "report.json", self.folder / "recording.json"
        files = ("--json", str(report), "--save", str(recording))
        done = self.lab.doctor("smoke", *args, "--python", python, *files, user=user)
        assert report.exists(), f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stdout + done.stderr
        return Smoked(done.returncode, json.loads(report.read_bytes()), done.stdout, done.stderr, recording)

    def replay(self, smoked: Smoked) -> tuple[int, dict[str, Any]]:
        report = self.folder / "replayed.json"
        files = ["--replay", str(smoked.recording), "--json", str(report)]
        done = doctor("smoke", *files)
        return done.returncode, json.loads(report.read_bytes())


@pytest.fixture
def smoke(lab: Lab, tmp_path: Path) -> Smoker:
    return Smoker(lab, tmp_path)


def assert_well(smoked: Smoked) -> None:
    assert not trouble(smoked.report), smoked.text
    assert smoked.smoke["status"] == "pass"
    assert (smoked.code, smoked.report["verdict"]) == (0, "healthy"), smoked.text


@pytest.mark.main
def test_healthy_hosts_pass_and_are_left_as_they_were(lab: Lab, smoke: Smoker) -> None:
    before = {host.name: host.snapshot() for host in lab}
    smoked = smoke("node[1-4]", "--ranks-per-host", "2")
    for host in lab:
        host.await_that(lambda host=host: not host.leftovers(before[host.name]), "clean end")  # type: ignore[misc]
    assert_well(smoked)
    assert [each for each in smoked.phases if each in PHASES] == PHASES
    assert [rank["host"] for rank in smoked.smoke["ranks"]] == [name for name in lab.names for _ in range(2)]
    assert smoked.smoke["layout"] == {"dp": 4, "tp": 2, "cells": 1}
    assert smoked.smoke["loss"]["drop"] > smoked.smoke["loss"]["limit"]
    code, again = smoke.replay(smoked)
    assert (code, {**again, "run": None}) == (0, {**smoked.report, "run": None})


@cases
def test_few_hosts_and_few_ranks(hosts: str, ranks: str, layout: tuple[int, int], smoke: Smoker) -> None:
    smoked = smoke(hosts, "--ranks-per-host", ranks)
    assert_well(smoked)
    assert smoked.smoke["layout"] == {"dp": layout[0], "tp": layout[1], "cells": 1}
    assert ("bandwidth" in smoked.phases) == ("-" in hosts)


@pytest.mark.long
def test_an_ordinary_user_can_run_it(smoke: Smoker) -> None:
    assert_well(smoke("node[1-2]", "--ranks-per-host", "2", user="trainee"))


def test_a_host_without_power_is_left_out(lab: Lab, smoke: Smoker) -> None:
    lab["node3"].power_off()
    smoked = smoke("node[1-3]")
    assert {each["check"]: each["hosts"] for each in trouble(smoked.report)} == {
        "host-unreachable": ["node3"]
    }
    assert smoked.code == 1
    assert {rank["host"] for rank in smoked.smoke["ranks"]} == {"node1", "node2"}
    assert smoked.smoke["status"] == "pass", "the others were tried"


def test_an_interpreter_that_no_host_has(smoke: Smoker) -> None:
    smoked = smoke("node[1-2]", python="/opt/none/bin/python")
    assert {each["check"] for each in trouble(smoked.report)} == {"torch-missing"}, smoked.text
    assert smoked.code == 1
    assert "/opt/none/bin/python" in smoked.text
    assert "--python" in smoked.text


@pytest.fixture(scope="module")
def field() -> Iterator[Field]:
    """Three hosts of two ranks, whose ranks have a network of their own."""
    if reason := missing():
        pytest.skip(reason)
    with Lab(3, data=True) as lab:
        yield Field(lab, ranks=2, steps=20)


MAIN = ("stop", "mask-stray", "frozen")
"""A hang, masks that disagree, and a loss that does not fall."""
SAMPLE = (*MAIN, "skip", "grad-bit", "nan", "wrong-result")
"""`make test-long` tries the others and, many times, `make trials`."""
SHARED = ("mask", "same-data", "shuffled")
"""Kinds that take several ranks a replica; each other kind shows with one rank a host, in less time."""


@pytest.mark.parametrize(
    "kind", some_of([kind for kind in INSIDE if kind not in ("slow", *STAGED)], *SAMPLE, main=MAIN)
)
def test_an_injected_fault_is_found_and_only_its_rank_is_named(kind: str, field: Field) -> None:
    if not kind.startswith(SHARED):
        field = replace(field, ranks=1, tp=1)
    outcome = trial(field, INSIDE[kind], 0)
    assert outcome.right, (outcome.place, outcome.said)
    assert outcome.code == 1


def test_a_slow_rank_is_named_unless_nobody_computes_evenly(field: Field) -> None:
    """Beside other work, the steps of all ranks may differ as much: then the run reports that it missed the
    fault.
    """
    outcome = trial(field, INSIDE["slow"], 0)
    if outcome.right:
        assert outcome.code == 0
        return
    (said,), runs = outcome.said, read_recording(load(field.recording)).runs
    assert MISSED in said
    assert int(outcome.place) in perhaps_slow(runs[-1].result)

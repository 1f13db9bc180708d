"""`doctor preflight` on real hosts: the output for job scripts, and the hosts of its smoke run."""

import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from doctor.report.files.json import CheckReport
from tests.lab import Lab
from tests.support.cases import cases
from tests.support.faults import judged_again
from tests.support.packages import package
from tests.support.smoke.faults import no_new_connections
from tests.support.verified import assert_red

HOSTS = "node[1-4]"
OTHERS = ["node1", "node2", "node4"]
WITHOUT_TORCH = "/usr/bin/python3"
NET_LIMIT = 20.0
"""Seconds from the first connection between hosts to the message that one of them cannot be reached."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one run, and the files that a job script reads."""

    code: int
    report: dict[str, Any]
    text: str
    errors: str
    recording: Path
    healthy: list[str]

    @property
    def smoke(self) -> dict[str, Any]:
        smoke: dict[str, Any] = self.report["smoke"]
        return smoke

    @property
    def faults(self) -> dict[str, list[str]]:
        """Check -> hosts, for failed checks."""
        found = self.report["findings"]
        return {each["check"]: each["hosts"] for each in found if each["status"] in ("fail", "crash")}

    def phase(self, name: str) -> dict[str, Any]:
        phase: dict[str, Any]
        (phase,) = [each for each in self.smoke["phases"] if each["name"] == name]
        return phase


Runner = Callable[..., Outcome]


@pytest.fixture
def run(lab: Lab, tmp_path: Path) -> Runner:
    """`run(command, *arguments)` on the controller, with the interpreter that has torch."""
    files = {name: tmp_path / name for name in ("json", "save", "healthy-hosts")}
    options = [word for name, path in files.items() for word in (f"--{name}", str(path))]

    def start(
        command: str, *arguments: str, python: str | None = sys.executable, user: str | None = None
    ) -> Outcome:
        named = () if python is None else ("--python", python)
        done = lab.doctor(command, *arguments, *named, *options, user=user)
        assert files["json"].exists(), f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stdout + done.stderr
        report = files["json"].read_bytes()
        msgspec.json.decode(report, type=CheckReport, strict=True)
        healthy = files["healthy-hosts"].read_text().splitlines()
        return Outcome(done.returncode, json.loads(report), done.stdout, done.stderr, files["save"], healthy)

    return start


def again(outcome: Outcome, *arguments: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the report of the same recording."""
    return judged_again(outcome.recording, *arguments)


def assert_same_again(outcome: Outcome) -> None:
    code, report = again(outcome)
    assert (code, {**report, "run": None}) == (outcome.code, {**outcome.report, "run": None})


def assert_trained(outcome: Outcome, hosts: list[str]) -> None:
    """Assert that exactly these hosts trained to the end and may be used by a job."""
    assert outcome.smoke["status"] == "pass", outcome.text
    assert outcome.smoke["hosts"] == hosts
    assert {rank["host"] for rank in outcome.smoke["ranks"]} == set(hosts)
    assert outcome.healthy == hosts


@pytest.mark.main
def test_healthy_hosts_train_and_may_be_used_by_an_ordinary_user(run: Runner) -> None:
    outcome = run("preflight", HOSTS, user="trainee")
    assert (outcome.code, outcome.report["verdict"], outcome.faults) == (0, "healthy", {}), outcome.text
    assert_trained(outcome, ["node1", "node2", "node3", "node4"])
    assert outcome.report["run"]["command"] == outcome.report["run"]["exam"] == "preflight"
    assert outcome.smoke["backend"] == "gloo"
    assert outcome.smoke["layout"] == {"dp": 4, "tp": 2, "cells": 1}
    assert {each["name"]: each["status"] for each in outcome.smoke["phases"]} == dict.fromkeys(
        ("net", "start", "join", "collectives", "train", "audit", "bandwidth"), "pass"
    )
    assert [rank["host"] for rank in outcome.smoke["ranks"]] == [f"node{n // 2 + 1}" for n in range(8)]
    loss = outcome.smoke["loss"]
    assert loss["steps"] == len(loss["curve"]) == 30
    assert loss["curve"][-1] < loss["curve"][0]
    assert loss["drop"] > loss["limit"]
    assert len(outcome.smoke["bandwidth"]) >= 2
    assert outcome.smoke["versions"]["torch"]
    assert (outcome.smoke["injected"], outcome.smoke["left_out"], outcome.smoke["runs"]) == (None, {}, [])
    assert re.search(
        r"Smoke  8 ranks \(4 hosts × 2\), torch \S+ over gloo, dp 4 × tp 2: 30 steps", outcome.text
    )
    assert_same_again(outcome)


@pytest.mark.long
def test_a_host_that_fails_a_check_is_left_out_and_the_others_train(run: Runner, lab: Lab) -> None:
    lab["node3"].shm("16m")
    outcome = run("preflight", HOSTS)
    assert outcome.faults == {"shm-small": ["node3"]}
    assert outcome.code == 1
    assert_trained(outcome, OTHERS)
    assert outcome.smoke["left_out"] == {"node3": "faulty: shm-small"}
    assert "left out: node3 (faulty: shm-small)" in outcome.text
    assert_same_again(outcome)


def test_a_host_whose_interpreter_has_no_torch_is_named_before_anything_is_started(
    run: Runner, tmp_path: Path
) -> None:
    inventory = tmp_path / "inventory.yaml"
    inventory.write_text(
        f"hosts:\n  node1:\n  node2: {{python: {WITHOUT_TORCH}}}\n  node3:\n"
        f"defaults: {{python: {sys.executable}}}\n"
    )
    outcome = run("preflight", "--inventory", str(inventory), "--ranks-per-host", "1", python=None)
    assert outcome.faults == {"torch-missing": ["node2"]}
    assert outcome.code == 1
    assert_trained(outcome, ["node1", "node3"])
    assert outcome.smoke["left_out"] == {"node2": "faulty: torch-missing"}
    assert outcome.smoke["runs"] == [], "it was left out of the first run, not found by it"
    assert WITHOUT_TORCH in outcome.text
    assert "--python" in outcome.text


def test_hosts_without_a_framework_in_common_are_not_trained_and_none_is_accused(
    run: Runner, lab: Lab
) -> None:
    package("torch", "2.7.0", lab["node1"])
    for name in ("node2", "node3"):
        package("mindspore", "2.10.0", lab[name])
    outcome = run("preflight", "node[1-3]", python="/usr/bin/python3")
    assert (outcome.code, outcome.faults, outcome.healthy) == (3, {}, []), outcome.text
    assert outcome.smoke["status"] == "skipped"
    assert "no framework in common: torch on node1; MindSpore on node[2-3]" in outcome.smoke["reason"]
    assert "--framework" in outcome.smoke["reason"]
    assert outcome.text.count("differs from the other hosts'") == 1, outcome.text


def test_no_torch_anywhere(run: Runner, lab: Lab) -> None:
    outcome = run("preflight", HOSTS, python=WITHOUT_TORCH)
    assert set(outcome.faults) == {"torch-missing"}
    assert (outcome.code, outcome.healthy) == (1, [])
    assert outcome.smoke["status"] == "skipped"
    assert outcome.smoke["reason"] == "no host passed the checks"
    assert outcome.smoke["ranks"] == []
    assert "Smoke  not made: no host passed the checks" in outcome.text
    assert_same_again(outcome)
    assert_red(lab, outcome.report, outcome.text)


@cases
def test_torch_is_not_needed_without_a_smoke_run(command: tuple[str, ...], run: Runner) -> None:
    outcome = run(*command, HOSTS, python=WITHOUT_TORCH)
    assert (outcome.code, outcome.faults) == (0, {}), outcome.text
    assert outcome.report["smoke"] is None
    assert "Smoke" not in outcome.text
    assert json.loads(outcome.recording.read_bytes())["smoke"] == [], "nothing was started"
    torch = [each for each in outcome.report["results"] if each["check"] == "torch-missing"]
    assert {each["status"] for each in torch} == {"skip"}
    assert not [each for each in outcome.report["results"] if each["check"].startswith("smoke-")]


def test_a_host_that_hangs_is_named_and_the_others_are_seen_to_train(run: Runner) -> None:
    outcome = run(
        *("preflight", "node[1-3]", "--ranks-per-host", "1"), *("--inject", "stuck@2:12", "--need-hosts", "2")
    )
    assert outcome.faults == {"smoke-hang": ["node3"]}, outcome.text
    assert outcome.healthy == ["node1", "node2"]
    assert outcome.code == 0, "as many hosts as were asked for are healthy"
    assert outcome.smoke["status"] == "fail"
    assert outcome.smoke["injected"] == "stuck@2:12"
    (second,) = outcome.smoke["runs"]
    assert (second["status"], second["hosts"], second["injected"]) == ("pass", ["node1", "node2"], None)
    assert second["left_out"] == {"node3": "an earlier smoke run named it"}
    assert "repeated without node3: passed" in outcome.text
    assert "2 healthy hosts remain, 2 are needed: go." in outcome.text
    assert again(outcome, "--need-hosts", "2")[0] == 0
    assert again(outcome, "--need-hosts", "3")[0] == 1
    assert again(outcome)[0] == 0, "the recording keeps how many are needed"


def test_the_ranks_use_what_gloo_would_take_by_itself(run: Runner, lab: Lab) -> None:
    """Each host's own name is the address of Docker's bridge: `torchrun` dies there, and so must the
    rehearsal.
    """
    for name in ("node1", "node2"):
        lab[name].add_interface("docker0", "172.17.0.1/16")
        lab[name].names({name: "172.17.0.1"})
    outcome = run("preflight", "node[1-2]")
    assert outcome.faults == {"interface-wrong": ["node1", "node2"]}, outcome.text
    assert (outcome.code, outcome.healthy) == (1, [])
    outcome = run("preflight", "node[1-2]", "--skip", "interface-wrong")
    assert outcome.smoke["status"] == "fail", outcome.text
    assert outcome.code == 1
    assert len(outcome.healthy) < 2, "one of them may train alone"


@pytest.mark.main
def test_a_firewall_is_named_within_seconds(run: Runner, lab: Lab) -> None:
    """Torch would wait for minutes, but the hosts test their connections before any rank is started."""
    no_new_connections(lab["node3"])
    outcome = run("smoke", "node[1-3]", "--ranks-per-host", "1")
    assert outcome.faults == {"port-unreachable": ["node3"]}, outcome.text
    assert outcome.code == 1
    assert_trained(outcome, ["node1", "node2"])
    assert outcome.smoke["left_out"] == {"node3": "faulty: port-unreachable"}
    assert outcome.phase("net")["seconds"] < NET_LIMIT

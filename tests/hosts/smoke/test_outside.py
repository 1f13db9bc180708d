"""Real faults while ranks train: the host or rank is named, and slow is not mistaken for broken."""

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from doctor.report.page.smoke import MANY_RESENT
from tests.lab import Lab, missing
from tests.support.cases import from_cases
from tests.support.faults import some_of
from tests.support.slow_wire import slow_wire
from tests.support.smoke.faults import sitecustomize
from tests.support.verified import assert_green, assert_red
from tests.trials.kinds import DATA, OUTSIDE, Outside
from tests.trials.run import HOGS, Field, healthy, trial

# Runs `change(module)` on a module once it is imported, wherever that happens.
WHEN_IMPORTED = from_cases(__file__, "WHEN_IMPORTED", str)
# What a stage sends over an edge is off by one.
EDGES = from_cases(__file__, "EDGES", str)
# Check -> how a library of one host differs from those of the others.
TAMPERED = from_cases(__file__, "TAMPERED", dict[str, str])


@pytest.fixture(scope="module")
def field() -> Iterator[Field]:
    """Three hosts, whose ranks have a network of their own."""
    if reason := missing():
        pytest.skip(reason)
    with Lab(3, data=True) as lab:
        yield Field(lab, ranks=1, steps=20, tp=1)


SAMPLE = ("cable", "broken-torch", "shm")
"""`make test-long` tries the others and, many times, `make trials`."""


@pytest.mark.parametrize("kind", some_of(OUTSIDE, *SAMPLE))
def test_only_the_broken_host_is_named(kind: str, field: Field) -> None:
    outcome = trial(field, OUTSIDE[kind], 0)
    assert outcome.right, (outcome.place, outcome.said)


@pytest.mark.parametrize("check", some_of(TAMPERED, "smoke-desync"))
def test_one_host_has_a_modified_library(check: str, field: Field) -> None:
    code = TAMPERED[check] + WHEN_IMPORTED
    fault = Outside(check, frozenset({check}), before=lambda host, _: sitecustomize(host, code))
    outcome = trial(field, fault, 0)
    assert outcome.right, (outcome.place, outcome.said)


def test_a_stage_that_sends_wrong_data_to_its_neighbours_is_named(field: Field, tmp_path: Path) -> None:
    """The pipeline of the job's plan is tried edge by edge; the middle stage spoils both of its edges."""
    lab, then, report = field.lab, tmp_path / "then.json", tmp_path / "report.json"
    args = ("smoke", "node[1-3]", "--python", sys.executable, "--ranks-per-host", "1", "--plan", "dp=1,pp=3")
    sitecustomize(lab["node2"], EDGES + WHEN_IMPORTED)
    try:
        done = lab.doctor(*args, "--save", str(then), "--json", str(report))
        found = json.loads(report.read_bytes())
        named = [(finding["check"], finding["hosts"]) for finding in found["findings"]]
        assert (done.returncode, named) == (1, [("smoke-collective-wrong", ["node2"])]), done.stdout
        assert "Fix first: rank 1 on node2." in done.stdout
        assert_red(lab, found, done.stdout)
    finally:
        lab.reset()
    assert_green(lab, found, done.stdout, then)
    done = lab.doctor(*args, "--json", str(report))
    assert (done.returncode, json.loads(report.read_bytes())["smoke"]["layout"]["pp"]) == (0, 3), done.stdout
    assert "pp 3 × dp 1 × tp 1, 1F1B with 8 micro-batches" in " ".join(done.stdout.split())


@pytest.mark.long
def test_a_long_cable_is_not_a_fault(field: Field) -> None:
    """Every round trip with one host takes 20 ms longer: the run is slow, and nothing hangs."""
    host = field.lab["node2"]
    with slow_wire(field.lab, host, 0.01, cable=[each.interface for each in host.spec.cables].index(DATA)):
        outcome = healthy(field, 0)
    assert [said for said in outcome.said if "smoke-slow-link" not in said] == []
    assert all("node2" in said for said in outcome.said), outcome.said


@pytest.mark.alone
def test_one_direction_between_two_hosts_is_slow(field: Field) -> None:
    """It is unknown which end limits it; the other direction is not mentioned. So slow a link is a fault."""
    field.lab["node2"].slow_link("60mbit", DATA)
    try:
        outcome = healthy(replace(field, size=2, ranks=2, tp=2), 0)
    finally:
        field.lab.reset()
    (said,) = outcome.said
    assert said.startswith("fail smoke-slow-link node[1-2] ")
    assert "what node2 sends to node1 arrives at" in said


@pytest.mark.alone
def test_a_link_at_a_hundredth_one_way_is_no_go(field: Field, tmp_path: Path) -> None:
    lab, then, report = field.lab, tmp_path / "then.json", tmp_path / "report.json"
    files = ("--save", str(then), "--json", str(report))
    lab["node2"].slow_link("60mbit")
    try:
        done = lab.doctor("preflight", "node[1-2]", "--python", sys.executable, *files)
        found = json.loads(report.read_bytes())
        assert (done.returncode, found["findings"][0]["check"]) == (1, "smoke-slow-link"), done.stdout
        assert_red(lab, found, done.stdout)
    finally:
        lab.reset()
    assert_green(lab, found, done.stdout, then)


def test_packets_that_are_lost_show_in_what_was_sent_again(field: Field) -> None:
    """It is shown but accuses no host: if round trips are short, a link that loses 2 % is fast."""
    field.lab["node2"].nft(
        f"""table inet lossy {{ chain in {{ type filter hook input priority 0; policy accept;
        iif {DATA} numgen random mod 50 == 0 drop; }}
        }}"""
    )
    try:
        outcome = healthy(field, 0)
        report = json.loads((field.folder / "report.json").read_bytes())
    finally:
        field.lab.reset()
    again = {tuple(sorted(link["hosts"])): link["sent_again"] for link in report["smoke"]["bandwidth"]}
    assert again["node1", "node3"] < MANY_RESENT < min(again["node1", "node2"], again["node2", "node3"])
    assert [said for said in outcome.said if "smoke-slow-link" not in said] == []


def test_sharing_cores_is_not_a_fault(field: Field) -> None:
    outcome = healthy(field, 0, beside=HOGS)
    assert outcome.right, outcome.said


@pytest.mark.long
def test_a_training_that_failed_is_verified_by_another(field: Field, tmp_path: Path) -> None:
    lab, then, report = field.lab, tmp_path / "then.json", tmp_path / "report.json"
    files = ("--save", str(then), "--json", str(report))
    sitecustomize(lab["node2"], TAMPERED["smoke-desync"] + WHEN_IMPORTED)
    try:
        done = lab.doctor("preflight", "node[1-3]", "--python", sys.executable, *files)
        found = json.loads(report.read_bytes())
        assert (done.returncode, found["findings"][0]["check"]) == (1, "smoke-desync"), done.stdout
        assert_red(lab, found, done.stdout)
        seen = lab.doctor("check", "--again", str(then))
        assert (seen.returncode, "still there" in seen.stdout) == (1, True), seen.stdout
    finally:
        lab.reset()
    seen = lab.doctor("check", "--again", str(then))
    assert (seen.returncode, "Fixed: " in seen.stdout) == (0, True), seen.stdout


def test_a_module_that_all_logins_put_before_torch_is_no_fault_of_a_host(
    field: Field, tmp_path: Path
) -> None:
    """If only one host has it there, it is; beside a folder of sound modules, nothing is told."""
    lab, report = field.lab, tmp_path / "report.json"
    args = ("smoke", "node[1-3]", "--python", sys.executable, "--ranks-per-host", "1", "--json", str(report))

    def faults(having: tuple[str, ...], file: str) -> list[tuple[str, list[str]]]:
        for host in lab:
            host.write("/root/.bashrc", "export PYTHONPATH=/opt/mine\n")
            host.write(file if host.name in having else "/opt/mine/helpers.py", "raise ImportError('mine')\n")
        try:
            done = lab.doctor(*args)
            found = [each for each in json.loads(report.read_bytes())["findings"] if each["status"] == "fail"]
            assert done.returncode == bool(found), done.stdout
            for each in found:
                assert file in each["summary"]
            return [(each["check"], each["hosts"]) for each in found]
        finally:
            lab.reset()

    for file in ("/opt/mine/torch/__init__.py", "/opt/mine/typing_extensions.py"):
        assert faults(("node1", "node2", "node3"), file) == [("smoke-not-started", [])]
    assert faults(("node2",), "/opt/mine/torch/__init__.py") == [("smoke-not-started", ["node2"])]
    assert faults((), "/opt/mine/torch/__init__.py") == []

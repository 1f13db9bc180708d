"""What checks that run now prove about a cause that a log names."""

from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from doctor.judge.reading import read_recording
from doctor.judge.registry import find_checks
from doctor.judge.verdict import Report
from doctor.logs.explanation import Explanation, Proof, ProofState
from doctor.logs.model import Conclusion, LogCause, LogLine, LogOutcome, Party
from doctor.logs.prove import BLIND, ProofExam, hosts_of_addresses, proofs, same
from doctor.model import Confidence, Evidence, Host, Status, UnreachedHost, UnreachedKind
from tests.support.cases import cases, from_cases
from tests.support.recordings import recording
from tests.support.reports import reports


def proof(
    checks: tuple[str, ...],
    host: str | None,
    on: Report | None = None,
    addresses: Mapping[str, str] | None = None,
    **more: Any,
) -> Proof:
    """The proof on four hosts, one of which, node2, has a small /dev/shm."""
    charge = LogCause("x-y", "it fell", (Party(rank=1, host=host),), checks=checks, **more)
    found = Explanation(Conclusion(LogOutcome.NAMED, (charge,)))
    (made,) = proofs(found, ProofExam(on or reports()["sick-hosts"], addresses or {}))
    return made


def test_a_check_that_fails_on_the_host_that_the_log_names_proves_it() -> None:
    assert proof(("shm-small",), "node2").proved is ProofState.PROVED
    assert proof(("shm-small",), "node2.example.org").proved is ProofState.PROVED
    assert proof(("shm-small",), "node2").says.startswith("shm-small fails on node2: ")


def test_a_waived_fault_proves_it_as_well() -> None:
    on = reports()["sick-hosts"]
    known = tuple(replace(each, status=Status.WAIVED) for each in on.findings)
    waived = replace(on, findings=known)
    assert proof(("shm-small",), "node2", waived) == proof(("shm-small",), "node2", on)


def test_a_fault_of_another_host_proves_nothing() -> None:
    made = proof(("shm-small",), "node1")
    assert made.proved is ProofState.GONE
    assert made.says == "shm-small passes on node1; shm-small fails on node2"


def test_an_address_is_that_of_an_examined_host() -> None:
    at = {"10.0.0.2": "node2"}
    assert proof(("shm-small",), "10.0.0.2", addresses=at).says.startswith("shm-small fails on node2: ")
    assert proof(("shm-small",), "10.0.0.3", addresses=at).proved is ProofState.OPEN


@pytest.mark.parametrize("transport", ["ssh", "openssh"])
def test_the_address_of_a_host_that_did_not_answer_is_that_of_ssh_config(
    transport: str, tmp_path: Path
) -> None:
    config = tmp_path / "config"
    config.write_text("Host node2\n  HostName 192.0.2.7\n")
    lost = UnreachedHost("node2", UnreachedKind.TIMEOUT, "No answer.", "", (), "")
    hosts = (Host("node1", "node1"), Host("node2", "node2"))
    made = recording(["node1"], hosts=hosts, unreached={"node2": lost}, transport=transport)
    reading = read_recording(made)
    assert hosts_of_addresses(reading, str(config))["192.0.2.7"] == "node2"


def test_a_log_that_names_no_host() -> None:
    made = proof(("shm-small",), None)
    assert made.proved is ProofState.PROVED
    assert made.says.endswith("(no log names the host)")


@cases
def test_what_was_not_examined(checks: tuple[str, ...], host: str, says: str) -> None:
    assert proof(checks, host) == Proof(0, ProofState.OPEN, says)


def test_a_single_host_has_no_connections_to_other_hosts() -> None:
    alone = reports()["one-host"]
    made = proof(("port-unreachable",), None, on=alone)
    assert made == Proof(0, ProofState.OPEN, "no check of a single host can show it")
    found = Conclusion(LogOutcome.NAMED, checks=("port-unreachable", "smoke-hang"))
    assert Explanation(found, proofs=(made,)).proves() == ("doctor smoke HOSTS",)
    assert len(Explanation(found).proves()) == 2
    assert "port-unreachable" not in proof(("port-unreachable", "shm-small"), None, on=alone).says
    assert "port-unreachable" in proof(("port-unreachable",), None).says


def test_a_check_that_does_not_look_there_says_nothing_when_it_passes() -> None:
    unseen = "the folder that it wrote to"
    made = proof(("shm-small",), "node1", unseen=unseen)
    assert made.proved is ProofState.OPEN
    assert made.says.startswith(f"shm-small passes on node1, but does not look at {unseen}")
    assert proof(("shm-small",), "node2", unseen=unseen).proved is ProofState.PROVED
    assert proof(("shm-small",), "node1").proved is ProofState.GONE


@pytest.mark.parametrize("first", ["kernel-log", "disk-full"])
def test_what_may_last_though_the_likeliest_check_passes(first: str) -> None:
    """The kernel's log is short, and a job may write to another folder."""
    made = proof((first, "shm-small"), "node1")
    assert made.proved is ProofState.OPEN
    assert f"pass on node1, but do not look at {BLIND[first]}" in made.says


def test_each_blind_check_is_one() -> None:
    ids = [check.id for check in find_checks(()).checks]
    assert all(any(fnmatchcase(id, glob) for id in ids) for glob in BLIND)


def test_the_likeliest_check_was_not_made() -> None:
    made = proof(("launch-ranks", "shm-small"), "node1")
    assert made.proved is ProofState.OPEN
    assert made.says.startswith("launch-ranks could not be decided: no host shows how that job was started; ")


def test_what_a_training_shows_first_is_not_gone() -> None:
    made = proof(("smoke-loss-nan", "shm-small"), "node1")
    assert made.proved is ProofState.OPEN
    assert made.says.startswith("shm-small passes on node1; a training run shows the rest: doctor smoke")


def test_where_the_guilty_one_is_not_certain_nothing_is_gone() -> None:
    made = proof(("shm-small",), "node1", confidence=Confidence.SUSPECT)
    assert made.proved is ProofState.OPEN


def test_what_was_not_decided_is_not_gone() -> None:
    """The kernel's log cannot be read without root."""
    made = proof(("kernel-log", "shm-small"), "node1", on=reports()["no-root"])
    assert made == Proof(0, ProofState.OPEN, "kernel-log could not be decided; shm-small passes on node1")


KILL = from_cases(__file__, "KILL", str)


@cases
def test_a_kill_is_proved_only_by_what_the_kernel_did_to_the_job(
    told: str, line: str, proved: ProofState
) -> None:
    """Its log holds a day: what another job lost in the morning does not prove what this one died of."""
    report = reports()["sick-hosts"]
    found = replace(
        report.findings[0],
        check="kernel-log",
        status=Status.WARN,
        hosts=("node1",),
        summary=f"kernel log: {told}",
        evidence=(Evidence("dmesg", f"0.2 h ago: {KILL}"),),
    )
    results = tuple(each for each in report.results if each.check != "kernel-log")
    made = proof(
        ("kernel-log", "memory-low", "disk-full"),
        "node1",
        on=replace(report, findings=(found,), results=results),
        lines=(LogLine("job.log", 7, line),),
    )
    assert made.proved is proved
    assert told in made.says


def test_a_port_that_the_kernel_may_give_away_does_not_prove_that_it_did() -> None:
    report = reports()["sick-hosts"]
    risk = "the planned ports lie in the range that the kernel assigns"
    found = replace(
        report.findings[0], check="ports-not-reserved", status=Status.WARN, hosts=("node1",), summary=risk
    )
    made = proof(("port-in-use", "ports-not-reserved"), "node1", on=replace(report, findings=(found,)))
    assert made == Proof(0, ProofState.OPEN, f"ports-not-reserved shows how it may come about: {risk}")


def test_without_a_report_nothing_was_examined() -> None:
    found = Explanation(Conclusion(LogOutcome.NAMED, (LogCause("x-y", "it fell", checks=("shm-small",)),)))
    assert proofs(found, None)[0].proved is ProofState.OPEN


@cases
def test_names_of_one_host(one: str, other: str, are: bool) -> None:
    assert same(one, other) is are

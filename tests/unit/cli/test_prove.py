"""What checks that were made now prove of a cause that a log names."""

from __future__ import annotations

import pytest

from doctor.cli.prove import proofs, same
from doctor.logs.explained import Explained, Proof, Proved
from doctor.logs.model import Charge, Conclusion, Line, Logs, Outcome, Party, Role, Sighting, Symptom
from tests.support.reports import reports


def proof(checks: tuple[str, ...], host: str | None) -> Proof:
    """On four hosts, of which node2 has a small /dev/shm."""
    charge = Charge("x-y", "it fell", (Party(rank=1, host=host),), checks=checks)
    found = Explained(Conclusion(Outcome.NAMED, (charge,)))
    (made,) = proofs(found, reports()["sick-hosts"])
    return made


def test_a_check_that_fails_on_the_host_that_the_log_names_proves_it() -> None:
    assert proof(("shm-small",), "node2").proved is Proved.PROVED
    assert proof(("shm-small",), "node2.example.org").proved is Proved.PROVED
    assert proof(("shm-small",), "node2").says.startswith("shm-small fails on node2: ")


def test_a_fault_of_another_host_proves_nothing() -> None:
    made = proof(("shm-small",), "node1")
    assert made.proved is Proved.GONE
    assert made.says == "shm-small passes on node1; shm-small fails on node2"


def test_an_address_is_that_of_an_examined_host() -> None:
    report = reports()["sick-hosts"]
    address = next(each.data.value for each in report.plan.hosts if each.name == "node2" and each.data)
    for party in (Party(host=address), Party(address=f"{address}:29500")):
        charge = Charge("x-y", "it fell", (party,), checks=("shm-small",))
        (made,) = proofs(Explained(Conclusion(Outcome.NAMED, (charge,))), report)
        assert made.says.startswith("shm-small fails on node2: ")


def test_a_log_that_names_no_host() -> None:
    made = proof(("shm-small",), None)
    assert made.proved is Proved.PROVED
    assert made.says.endswith("(no log names the host)")


@pytest.mark.parametrize(
    ("checks", "host", "says"),
    [
        ((), "node2", "no check of hosts can show it"),
        (("smoke-hang",), "node2", "only a training shows it: doctor smoke"),
        (("shm-small",), "node9", "node9 is not among the hosts that were examined"),
        (("no-such-check",), "node2", "no-such-check could not be decided"),
    ],
)
def test_what_was_not_examined(checks: tuple[str, ...], host: str, says: str) -> None:
    assert proof(checks, host) == Proof(0, Proved.OPEN, says)


def test_a_check_that_does_not_look_there_says_nothing_when_it_passes() -> None:
    symptom = Symptom("x-y", "it fell", "x", Role.ROOT, (), unseen="the folder that it wrote to")
    line = Line("a.log", 1, "it fell")
    for host, proved in (("node1", Proved.OPEN), ("node2", Proved.PROVED)):
        charge = Charge("x-y", "it fell", (Party(host=host),), checks=("shm-small",))
        logs = Logs(sightings=(Sighting(symptom, line, line),))
        found = Explained(Conclusion(Outcome.NAMED, (charge,)), logs)
        (made,) = proofs(found, reports()["sick-hosts"])
        assert made.proved is proved
    assert proof(("shm-small",), "node1").proved is Proved.GONE


def test_what_was_not_decided_is_not_gone() -> None:
    """The kernel's log cannot be read without root."""
    charge = Charge("x-y", "it fell", (Party(host="node1"),), checks=("kernel-log", "shm-small"))
    (made,) = proofs(Explained(Conclusion(Outcome.NAMED, (charge,))), reports()["no-root"])
    assert made.proved is Proved.OPEN
    assert made.says == "kernel-log could not be decided; shm-small passes on node1"


def test_without_a_report_nothing_was_examined() -> None:
    found = Explained(Conclusion(Outcome.NAMED, (Charge("x-y", "it fell", checks=("shm-small",)),)))
    assert proofs(found, None)[0].proved is Proved.OPEN


@pytest.mark.parametrize(
    ("one", "other", "are"),
    [
        ("node3", "node3", True),
        ("Node3", "node3.example.org", True),
        ("node3.a.org", "node3.b.org", False),
        ("node3", "node33", False),
        ("10.0.0.3", "10.0.0.3", True),
        ("10.0.0.3", "10.0.0.4", False),
    ],
)
def test_names_of_one_host(one: str, other: str, are: bool) -> None:
    assert same(one, other) is are

"""Hosts that cannot be examined, or only in part: each failure alone, with the real sshd."""

from collections.abc import Callable, Iterator

import pytest

from tests.lab import Host, Lab
from tests.support.cases import cases
from tests.support.faults import (
    ALONE,
    Examiner,
    Fault,
    assert_consistent,
    assert_healthy,
    assert_only,
    one_of_each,
    prove,
    victim,
    words,
)

HASTY = (*ALONE, "--connect-timeout", "3", "--timeout", "8")


def unreachable(inject: Callable[[Host], object], *says: str, args: tuple[str, ...] = ALONE) -> Fault:
    return Fault("host-unreachable", inject, says=says, args=args)


FAULTS = {
    "switched off": unreachable(lambda host: host.power_off(), "No route to host", "ip route get"),
    "sshd killed": unreachable(
        lambda host: host.kill_sshd(), "Connection refused", "nothing listens on port 22", "/dev/tcp/"
    ),
    "frozen": unreachable(lambda host: host.freeze(), "no SSH banner came within 3 s", args=HASTY),
    "packets dropped": unreachable(
        lambda host: host.blackhole(), "No answer from port 22 within 3 s", "ping -c 3", args=HASTY
    ),
    "no banner": unreachable(
        lambda host: host.no_banner(), "accepts connections, but no SSH banner", args=HASTY
    ),
    "silent shell": unreachable(
        lambda host: host.shell("silent"), "the login works, but its shell never answers", args=HASTY
    ),
    "flooding shell": unreachable(
        lambda host: host.shell("flood"), "prints without end", "a shell that never stops talking"
    ),
    "login shell that refuses": unreachable(lambda host: host.shell("nologin"), "no POSIX shell ran there"),
    "shell that does not exist": unreachable(lambda host: host.shell("none"), "Login as root refused"),
    "key not accepted": unreachable(
        lambda host: host.refuse_login(), "Login as root refused: offered .*id_ed25519", "authorized_keys"
    ),
    "host key changed": unreachable(
        lambda host: host.change_key(), "host key has changed", "SHA256:", "ssh-keygen .*-R "
    ),
    "host key changed, new ones welcome": unreachable(
        lambda host: host.change_key(), "host key has changed", args=(*ALONE, "--accept-new")
    ),
    "connection cut before the first word": unreachable(
        lambda host: host.shell("cut", after=0), "connection was lost before the host answered"
    ),
}


@pytest.mark.parametrize("name", one_of_each(FAULTS))
def test_found(name: str, examine: Examiner) -> None:
    outcome = prove(FAULTS[name], name, examine)
    (found,) = outcome.trouble
    assert outcome.hosts("unexamined") == set(found["hosts"])
    (host,) = (each for each in outcome.report["hosts"] if each["name"] in found["hosts"])
    assert host["reason"] == found["summary"]
    assert f"everything on {host['name']}" in outcome.text or f"{host['name']}  everything" in outcome.text


@pytest.mark.parametrize("name", ["switched off", "sshd killed"])
def test_the_other_hosts_connect_without_the_faulty_one(name: str, examine: Examiner) -> None:
    fault = FAULTS[name]
    prove(Fault(fault.check, fault.inject, says=fault.says, args=(), user="trainee"), name, examine)


def test_a_shell_that_prints_a_greeting_is_healthy(lab: Lab, examine: Examiner) -> None:
    lab["node2"].shell("garbage")
    assert_healthy(examine())


def test_a_dead_host_is_reported_whatever_checks_are_selected(lab: Lab, examine: Examiner) -> None:
    lab["node3"].kill_sshd()
    outcome = examine("--only", "shm-small")
    assert outcome.code == 1
    assert outcome.hosts("unexamined") == {"node3"}


def test_a_name_that_cannot_be_resolved(examine: Examiner) -> None:
    outcome = examine(*ALONE, hosts="node[1-4] nosuch")
    (found,) = assert_only(outcome, "host-unreachable", ["nosuch"])
    assert "name cannot be resolved" in found["summary"]


@pytest.fixture
def forgotten(lab: Lab) -> Iterator[Host]:
    """A host that is missing from the controller's known_hosts."""
    known = lab.known_hosts.read_text()
    host = victim(lab, "any", "unknown key")
    lab.known_hosts.write_text("".join(x for x in known.splitlines(True) if not x.startswith(host.name)))
    yield host
    lab.known_hosts.write_text(known)


def test_an_unknown_host_key(lab: Lab, examine: Examiner, forgotten: Host) -> None:
    (found,) = assert_only(examine(*ALONE), "host-unreachable", [forgotten.name])
    assert "host key is not known" in found["summary"]
    assert "--accept-new" in words(found)
    assert f"\n{forgotten.name}" not in lab.known_hosts.read_text()


def test_an_unknown_host_key_is_accepted_once(examine: Examiner, forgotten: Host) -> None:
    assert_healthy(examine(*ALONE, "--accept-new"))
    assert_healthy(examine(*ALONE))
    forgotten.change_key()
    (found,) = assert_only(examine(*ALONE, "--accept-new"), "host-unreachable", [forgotten.name])
    assert "host key has changed" in found["summary"]


def test_when_all_fail_alike_no_host_is_blamed(lab: Lab, examine: Examiner) -> None:
    for host in lab:
        host.kill_sshd()
    outcome = examine()
    (found,) = outcome.trouble
    assert (found["check"], found["status"], found["hosts"]) == ("host-unreachable", "fail", [])
    assert found["summary"].startswith("4 of 4 hosts fail alike: Connection refused")
    assert {place["host"] for place in found["where"]} == set(lab.names)
    assert outcome.code == 1
    assert outcome.hosts("unexamined") == set(lab.names)
    assert_consistent(outcome)


def test_three_unreachable_hosts_of_four_are_one_finding(lab: Lab, examine: Examiner) -> None:
    for name in ("node1", "node2", "node4"):
        lab[name].kill_sshd()
    outcome = examine(*ALONE)
    (found,) = outcome.trouble
    assert (found["check"], found["hosts"]) == ("host-unreachable", ["node1", "node2", "node4"])
    assert found["nodeset"] == "node[1-2,4]"
    assert (outcome.code, outcome.hosts("healthy")) == (1, {"node3"})


# The answer began and did not end. The missing facts, essential ones among them, were not examined.


@cases
def test_an_answer_that_is_cut_off(
    kind: str, args: tuple[str, ...], why: str, lab: Lab, examine: Examiner
) -> None:
    host = victim(lab, "any", kind)
    host.shell(kind, after=2000)
    outcome = examine(*args)
    (found,) = outcome.trouble
    assert (found["check"], found["status"], found["hosts"]) == ("probe-incomplete", "warn", [host.name])
    assert why in found["summary"]
    assert "spaces" in found["actual"]
    assert why in outcome.unknown["shm-small"]
    assert outcome.code == 3, "an essential check is undecided"
    assert outcome.report["verdict"] == "inconclusive"
    assert_consistent(outcome)

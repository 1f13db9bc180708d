"""Names and time, each fault alone on one host."""

import pytest

from tests.lab import Host, Lab
from tests.support.batches import batches, prove_each
from tests.support.faults import ALONE, Examiner, Fault, assert_healthy, assert_only, prove


def loopback(address: str) -> Fault:
    return Fault(
        "hostname-loopback",
        lambda host: host.names({host.name: address}),
        says=(f"{address}", "sed -i .*/etc/hosts"),
    )


def clock(offset: float, status: str, says: str) -> Fault:
    return Fault("clock-skew", lambda host: host.clock(offset), status, (says,))


def wrong_name(host: Host) -> None:
    """The host has a name that is not its own."""
    other = "node2" if host.name != "node2" else "node3"
    host.names({other: "198.18.0.99"})


def no_peer_known(host: Host) -> None:
    host.names({f"node{n}": None for n in range(1, 5) if host.name != f"node{n}"})


FAULTS = (
    {
        "own name is Debian's 127.0.1.1": loopback("127.0.1.1"),
        "own name is 127.0.0.1": loopback("127.0.0.1"),
    }
    | Fault.table(__file__, "FAULTS", wrong_name, no_peer_known)
    | {
        "five seconds ahead": clock(5, "warn", r"its clock is [45]\.\d s ahead"),
        "five seconds behind": clock(-5, "warn", r"its clock is [45]\.\d s behind"),
        "a minute ahead": clock(60, "fail", r"its clock is (59|60) s ahead"),
        "an hour behind": clock(-3600, "fail", r"its clock is (3599|3600) s behind"),
    }
)


@pytest.mark.parametrize("names", batches(FAULTS))
def test_found(names: list[str], examine: Examiner) -> None:
    prove_each({name: FAULTS[name] for name in names}, examine)


@pytest.mark.parametrize("name", ["own name is Debian's 127.0.1.1", "the head's name is unknown"])
def test_found_by_an_ordinary_user_while_hosts_connect(name: str, examine: Examiner) -> None:
    fault = FAULTS[name]
    prove(
        Fault(fault.check, fault.inject, says=fault.says, args=(), on=fault.on, user="trainee"), name, examine
    )


def test_two_hosts_with_one_name_are_both_named(lab: Lab, examine: Examiner) -> None:
    lab["node4"].hostname("node2")
    outcome = examine(*ALONE)
    (found,) = assert_only(outcome, "hostname-duplicate", ["node2", "node4"])
    assert found["subject"] == "hostname node2"


@pytest.mark.parametrize("second", ["198.18.0.12", "NODE2"])
def test_one_machine_under_two_names_is_a_mistake_of_the_list(
    second: str, lab: Lab, examine: Examiner
) -> None:
    """No host must be renamed or get another address; leaving out one of the names is the repair."""
    outcome = examine(hosts=f"node1 node2 {second} node3")
    (found,) = outcome.trouble
    assert (outcome.code, found["check"], found["hosts"]) == (1, "host-named-twice", [second])
    assert f"{second} and node2 are one machine" in found["summary"]
    again = f"doctor check 'node[1-3]' --ssh-config {lab.ssh_config}"
    assert found["remedy"]["commands"][-1] == again
    assert outcome.hosts("faulty") == {second}


def test_a_loopback_name_is_not_a_fault_where_the_job_names_its_interface(
    lab: Lab, examine: Examiner
) -> None:
    inventory = examine.folder / "inventory.yaml"
    inventory.write_text("launch: {GLOO_SOCKET_IFNAME: eth0}\n")
    host = lab["node2"]
    host.names({host.name: "127.0.1.1"})
    assert_healthy(examine(*ALONE, "--inventory", str(inventory)))


def test_a_clock_within_a_second_is_fine(lab: Lab, examine: Examiner) -> None:
    lab["node3"].clock(0.4)
    assert_healthy(examine(*ALONE))

"""Healthy hosts: nothing is found, nothing is left behind, and what was not examined is reported."""

import pytest

from tests.lab import Lab
from tests.support.faults import ALONE, Examiner, assert_healthy

UNREADABLE = {"kernel-log", "memory-errors", "firewall-blocks", "loopback-blocked"}
"""The facts that only root may read."""


def test_healthy_as_root(lab: Lab, examine: Examiner) -> None:
    before = {host.name: host.snapshot() for host in lab}
    outcome = examine()
    assert_healthy(outcome)
    assert "Healthy: node[1-4]." in outcome.text
    assert "Not examined" not in outcome.text
    for host in lab:
        host.await_that(lambda host=host: not host.leftovers(before[host.name]), "clean end")  # type: ignore[misc]


def test_healthy_as_an_ordinary_user(examine: Examiner) -> None:
    """Unreadable facts are listed and decide nothing."""
    outcome = examine(user="trainee")
    assert_healthy(outcome, UNREADABLE)
    assert all("needs root" in why for why in outcome.unknown.values())
    _, _, unexamined = outcome.text.partition("Not examined")
    assert all(check in unexamined for check in UNREADABLE)
    assert "--sudo" in unexamined


def test_sudo_reads_what_an_ordinary_user_may_not(lab: Lab, examine: Examiner) -> None:
    for host in lab:
        host.grant_sudo()
    assert_healthy(examine("--sudo", user="trainee"))


def test_one_host_refuses_sudo(lab: Lab, examine: Examiner) -> None:
    for name in ("node1", "node2", "node4"):
        lab[name].grant_sudo()
    outcome = examine("--sudo", user="trainee")
    assert_healthy(outcome, UNREADABLE)
    unknown = [found for found in outcome.report["findings"] if found["status"] == "unknown"]
    assert {host for found in unknown for host in found["hosts"]} == {"node3"}
    assert "sudo -n was refused on 1 of 4 hosts" in outcome.text


@pytest.mark.parametrize("hosts", ["node2", pytest.param("node[2-3]", marks=pytest.mark.long)])
def test_healthy_alone_and_in_pairs(hosts: str, examine: Examiner) -> None:
    assert_healthy(examine(hosts=hosts))


def test_healthy_where_the_hosts_have_no_python(lab: Lab, examine: Examiner) -> None:
    """Everything except the connections is examined with only a shell."""
    lab["node3"].no_tool("python3", "python")
    outcome = examine()
    assert not outcome.trouble
    assert set(outcome.unknown) <= {
        "port-unreachable",
        "version-drift",
        "version-incompatible",
        "torch-missing",
    }


def test_healthy_where_hosts_lack_optional_programs(lab: Lab, examine: Examiner) -> None:
    lab["node2"].no_tool("timeout", "pkill", "renice")
    before = lab["node2"].snapshot()
    assert_healthy(examine(*ALONE))
    lab["node2"].await_that(lambda: not lab["node2"].leftovers(before), "clean end")

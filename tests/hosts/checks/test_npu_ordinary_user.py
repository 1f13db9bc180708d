"""An ordinary user on Ascend hosts: the NPU network, which only root can read, is not called healthy."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.npus import Rack
from tests.support.faults import assert_consistent, assert_healthy, assert_only
from tests.support.npu_faults import ALL, NpuExaminer, npu_examiner

UNREAD = "the NPU network was not examined"


examine = npu_examiner


@pytest.mark.parametrize(
    "up", [pytest.param(True, marks=pytest.mark.long, id="up"), pytest.param(False, id="down")]
)
def test_a_network_that_only_root_may_read(up: bool, examine: NpuExaminer) -> None:
    """The same whether or not a link is down: what was not looked at is unknown."""
    rack = examine.rack
    rack["node2"][3].link_up = up
    outcome = examine(user="trainee")
    assert (outcome.code, outcome.report["verdict"]) == (3, "inconclusive")
    said = " ".join(outcome.text.split())
    assert f"Inconclusive: {UNREAD} on {ALL} (12 checks need root): add --sudo." in said
    assert not outcome.trouble
    reasons = {host["reason"] for host in outcome.report["hosts"]}
    assert reasons == {f"{UNREAD} (12 checks need root): add --sudo"}
    assert outcome.hosts("unexamined") == set(rack.lab.names)
    assert_consistent(outcome)

    for host in rack.lab:
        host.grant_sudo()
    outcome = examine("--sudo", user="trainee")
    if up:
        assert_healthy(outcome)
    else:
        assert_only(outcome, "device-link-down", ["node2"], devices=[("node2", 3)])


def test_a_network_that_the_job_does_not_use(examine: NpuExaminer) -> None:
    """Inside one Atlas A2 server, and on CPUs: an ordinary user gets a verdict."""
    one = examine("--skip", "kernel-log,firewall-blocks,loopback-blocked", hosts="node1", user="trainee")
    assert (one.code, one.report["verdict"]) == (0, "healthy")
    on_cpus = examine("--backend", "gloo", user="trainee")
    assert (on_cpus.code, on_cpus.report["verdict"]) == (0, "healthy")


@pytest.mark.long
def test_one_server_of_atlas_training(make_rack: Callable[..., Rack], tmp_path: Path) -> None:
    """Its two rings are connected over the network, but a job of four devices needs only one of them."""
    examine = NpuExaminer(make_rack("atlas-training", hosts=1), tmp_path)
    assert examine(hosts="node1", user="trainee").code == 3
    assert examine("--ranks-per-host", "4", hosts="node1", user="trainee").code == 0

"""nvidia-smi in every condition: hung, missing, only for root. In none of them is a GPU blamed."""

import pytest

from tests.support.faults import ALONE, assert_healthy, assert_only, assert_unexamined, prove, some_of, words
from tests.support.gpu_faults import GpuExaminer, GpuFault, gpu_examiner, left_out, undecided_on, victim

OF_SMI = {
    *("gpu-unhealthy", "gpu-busy", "gpu-ecc", "gpu-split", "nvlink-down"),
    *("gpu-throttled", "gpu-power-low", "gpu-ecc-off"),
}
OF_ROOT = {"firewall-blocks", "loopback-blocked", "kernel-log", "memory-errors", "gpu-xid"}


examine = gpu_examiner


def test_it_hangs(examine: GpuExaminer) -> None:
    """On one host every call hangs, on the others only some. Faults in the remaining answers are found."""
    whole, links, apps = examine.gpus
    before = {host.host.name: host.host.snapshot() for host in examine.gpus}
    whole.hang()
    links.hang("nvlink")
    apps.hang("apps")
    apps.hang("topo")
    apps[3].memory(9000)
    outcome = examine(*ALONE)
    assert {(each["check"], each["status"], *each["hosts"]) for each in outcome.trouble} == {
        ("gpu-unhealthy", "fail", "node1"),
        ("gpu-unhealthy", "fail", "node3"),
        ("gpu-busy", "fail", "node3"),
    }
    for found in outcome.trouble:
        if found["check"] == "gpu-unhealthy":
            assert "its driver does not answer: nvidia-smi hangs" in words(found)
    (busy,) = (found for found in outcome.trouble if found["check"] == "gpu-busy")
    assert busy["where"][0]["device"] == 3
    told = {name: undecided_on(outcome, name) for name in examine.gpus.lab.names}
    assert told["node1"].keys() == OF_SMI - {"gpu-unhealthy"}
    assert told["node1"]["gpu-busy"] == "gpus: nvidia-smi did not answer within 18 s"
    assert told["node1"]["nvlink-down"] == "nvlinks: not asked: nvidia-smi had hung before"
    assert told["node2"] == {"nvlink-down": "nvlinks: nvidia-smi did not answer within 6 s"}
    assert told["node3"] == {}
    assert outcome.hosts("healthy") == {"node2"}
    for each in examine.gpus:
        host = each.host
        host.await_that(lambda host=host: not host.leftovers(before[host.name]), "clean end")  # type: ignore[misc]


def test_it_is_not_installed(examine: GpuExaminer) -> None:
    """The device files exist, and so do the facts that do not need nvidia-smi."""
    host = examine.gpus["node2"]
    host.do("rm /usr/bin/nvidia-smi")
    outcome = examine(*ALONE)
    assert_unexamined(outcome, ["node2"], OF_SMI, "nvidia-smi is not installed there")
    told = undecided_on(outcome, "node2")
    del told["probe-incomplete"]
    assert {why.partition(": ")[2] for why in told.values()} == {"its command is not installed there"}
    assert told.keys() == OF_SMI
    host.stop_fabric_manager()
    found = {(each["check"], *each["hosts"]) for each in examine(*ALONE).trouble}
    assert found == {("probe-incomplete", "node2"), ("fabric-manager-down", "node2")}


def test_it_may_not_be_executed(examine: GpuExaminer) -> None:
    """It is there: installing it would not help."""
    examine.gpus["node2"].do("chmod 644 /usr/bin/nvidia-smi")
    why = "its command is a directory, or may not be executed there"
    assert_unexamined(examine(*ALONE), ["node2"], OF_SMI, why)


def test_an_old_driver_reports_fewer_fields(examine: GpuExaminer) -> None:
    examine.gpus["node1"].driver_lacks("gpu_recovery_action", "fabric.health.summary", "fabric.state")
    examine.gpus["node3"].driver_lacks("remapped_rows.pending", "remapped_rows.failure", "mig.mode.current")
    assert_healthy(examine(*ALONE))


def test_hosts_without_gpus_and_a_job_without_gpus(examine: GpuExaminer) -> None:
    """If no GPUs are expected, neither GPUs nor their links are reported as missing."""
    for host in examine.gpus:
        host.without_gpus()
    outcome = examine(*ALONE)
    assert_healthy(outcome)
    for check in ("gpu-missing", "gpu-unhealthy", "nvlink-down", "fabric-manager-down", "ib-port-down"):
        assert left_out(outcome, check).keys() == set(examine.gpus.lab.names), check


# Ordinary users.


def test_what_an_ordinary_user_cannot_read_is_unknown(examine: GpuExaminer) -> None:
    outcome = examine(user="trainee")
    assert_healthy(outcome, OF_ROOT)
    for name in examine.gpus.lab.names:
        assert all("needs root (--sudo uses sudo -n)" in why for why in undecided_on(outcome, name).values())


ORDINARY = GpuFault.table(__file__, "ORDINARY")


@pytest.mark.parametrize("name", some_of(ORDINARY, "a lost GPU", "no fabric manager"))
def test_an_ordinary_user_finds_a_fault(name: str, examine: GpuExaminer) -> None:
    fault = ORDINARY[name]
    ordinary = GpuFault(fault.check, fault.inject, fault.devices, unknown=tuple(OF_ROOT), user="trainee")
    prove(ordinary, name, examine)


def test_gpus_that_only_root_may_use_are_missing_for_an_ordinary_user(examine: GpuExaminer) -> None:
    host = victim(examine.gpus, "not handed out")
    host.only_for_root()
    name = host.host.name
    (found,) = assert_only(examine(*ALONE, user="trainee"), "gpu-missing", [name], devices=())
    assert "this login has access to none of the GPUs" in words(found)
    assert_healthy(examine(*ALONE))


def test_sudo_reads_what_needs_root(examine: GpuExaminer) -> None:
    for host in examine.gpus.lab:
        host.grant_sudo()
    assert_healthy(examine("--sudo", user="trainee"))

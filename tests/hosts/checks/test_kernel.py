"""Kernel settings and limits, each fault alone on one host."""

import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.lab import Host, Lab
from tests.support.batches import batches, prove_each
from tests.support.cases import from_cases
from tests.support.faults import (
    ALONE,
    HCCL,
    HEAD,
    Examiner,
    Fault,
    assert_healthy,
    assert_only,
    prove,
    victim,
)

MANY = (
    *ALONE,
    "--backend",
    "gloo",
    "--ranks-per-host",
    "64",
    "--expect",
    "shm_mb=1",
    "--expect",
    "memory_mb_per_rank=1",
)
"""A job of 256 ranks; the hosts need not really hold them."""
NODES = "/sys/devices/system/node"


def queue(name: str, setting: str, value: int, on: str, args: tuple[str, ...], ranks: int) -> Fault:
    """A kernel queue that is shorter than the number of ranks: a fault on the head if somebody said it."""
    return Fault(
        name,
        lambda host: host.sysctl(setting, value),
        "fail" if on == HEAD and args is MANY else "warn",
        (
            rf"{setting} of {ranks} or more, for {ranks} ranks \(on the examined hosts\) \| {value}\b",
            rf"sysctl -w {setting}=65535",
        ),
        args,
        on=on,
    )


def governors(host: Host) -> None:
    """Two CPUs, one of them saving power."""
    pace = {"performance": "cpu0", "powersave": "cpu1"}
    tree = {cpu: {"cpufreq": {"scaling_governor": f"{name}\n"}} for name, cpu in pace.items()}
    host.shadow_dir("/sys/devices/system/cpu", tree)


def two_numa_nodes(host: Host) -> None:
    host.shadow(f"{NODES}/online", "0-1\n")
    host.shadow_dir("/proc/sys/kernel", {"numa_balancing": "1\n"})


def swapping(host: Host) -> None:
    rows = "Filename\tType\tSize\tUsed\tPriority\n/dev/sda3 partition 8388604 2097152 -2\n"
    host.shadow("/proc/swaps", rows)


def locked_memory(host: Host) -> None:
    host.sysfs_class("infiniband", {"mlx5_0": {"node_type": "1: CA\n"}})
    host.limits(memlock=65536)


FAULTS = {
    "somaxconn, head": queue("somaxconn-low", "net.core.somaxconn", 4, HEAD, ALONE, 8),
    "somaxconn, other": queue("somaxconn-low", "net.core.somaxconn", 4, "peer", ALONE, 8),
    "somaxconn, head, many ranks": queue("somaxconn-low", "net.core.somaxconn", 128, HEAD, MANY, 256),
    "somaxconn, other, many ranks": queue("somaxconn-low", "net.core.somaxconn", 128, "peer", MANY, 256),
    "backlog, head": queue("syn-backlog-low", "net.ipv4.tcp_max_syn_backlog", 255, HEAD, MANY, 256),
    "backlog, other": queue("syn-backlog-low", "net.ipv4.tcp_max_syn_backlog", 255, "peer", MANY, 256),
} | Fault.table(__file__, "FAULTS", locked_memory, governors, two_numa_nodes, swapping)


@pytest.mark.parametrize("names", batches(FAULTS))
def test_found(names: list[str], examine: Examiner) -> None:
    prove_each({name: FAULTS[name] for name in names}, examine)


@pytest.mark.parametrize("name", ["somaxconn, head", "somaxconn, other"])
def test_found_by_an_ordinary_user_while_hosts_connect(name: str, examine: Examiner) -> None:
    fault = FAULTS[name]
    prove(
        Fault(fault.check, fault.inject, fault.status, fault.says, (), on=fault.on, user="trainee"),
        name,
        examine,
    )


def test_a_taken_master_port_does_not_disturb_the_connections(examine: Examiner) -> None:
    fault = FAULTS["master port taken, chosen"]
    prove(Fault(fault.check, fault.inject, says=fault.says, args=fault.args[2:], on=HEAD), "", examine)


def test_only_the_head_binds_the_master_port(lab: Lab, examine: Examiner) -> None:
    lab["node2"].listen(29500)
    assert_healthy(examine(*ALONE))


ASCEND = (*ALONE, *HCCL)


def reserve_ports(lab: Lab) -> None:
    for host in lab:
        host.sysctl("net.ipv4.ip_local_reserved_ports", "60000-60031")


@pytest.fixture
def ascend(lab: Lab, tmp_path: Path) -> Examiner:
    """Every host is prepared for a job over HCCL."""
    reserve_ports(lab)
    return Examiner(lab, tmp_path, reserve_ports)


def test_healthy_for_hccl(ascend: Examiner) -> None:
    assert_healthy(ascend(*ASCEND))


HCCL_FAULTS = Fault.table(__file__, "HCCL_FAULTS")


@pytest.mark.parametrize("names", batches(HCCL_FAULTS))
def test_found_for_hccl(names: list[str], ascend: Examiner) -> None:
    prove_each({name: replace(HCCL_FAULTS[name], args=ASCEND) for name in names}, ascend)


def test_other_ports_of_hccl_are_known_from_the_launch(lab: Lab, examine: Examiner) -> None:
    inventory = examine.folder / "inventory.yaml"
    inventory.write_text("launch: {HCCL_IF_BASE_PORT: 50000}\n")
    for host in lab:
        host.sysctl("net.ipv4.ip_local_reserved_ports", "50000-50031")
    host = victim(lab, "any", "base port")
    host.listen(50031)
    outcome = examine(*ASCEND, "--inventory", str(inventory))
    (found,) = assert_only(outcome, "port-in-use", [host.name])
    assert found["where"] == [
        {"host": host.name, "rank": None, "pid": None, "device": None, "port": 50031, "peer": None}
    ]


CLIENT = from_cases(__file__, "CLIENT", str)


@pytest.mark.parametrize("closed", [(), ("closed",)])
def test_a_connection_from_the_master_port_holds_it(
    closed: tuple[str, ...], lab: Lab, examine: Examiner
) -> None:
    """Its other end may be anything: bind fails, as that of torch would."""
    lab["node2"].listen(22222)
    client = lab[HEAD].spawn([sys.executable, "-c", CLIENT, lab["node2"].address, *closed], "root")
    time.sleep(1)
    (found,) = assert_only(examine("--master-port", "29511", hosts="node[1-2]"), "port-in-use", [HEAD])
    assert "port 29511, which the job will bind, is taken" in found["summary"]
    assert ("connected to" in found["actual"]) != bool(closed)
    assert_healthy(examine("--master-port", "29512", hosts="node[1-2]"))
    del client


def test_a_port_that_only_root_may_bind(examine: Examiner) -> None:
    (found,) = examine("--master-port", "800", hosts="node[1-2]", user="trainee").trouble
    assert (found["check"], found["status"], found["hosts"]) == ("port-in-use", "fail", [HEAD])
    assert found["summary"] == "port 800, which the job will bind, is for root only"
    assert_healthy(examine("--master-port", "800", hosts="node[1-2]"))


def test_stock_values_suffice_for_a_small_job(lab: Lab, examine: Examiner) -> None:
    lab[HEAD].sysctl("net.core.somaxconn", 128)
    lab[HEAD].sysctl("net.ipv4.tcp_max_syn_backlog", 128)
    lab["node3"].limits(nofile=1024)
    assert_healthy(examine(*ALONE))

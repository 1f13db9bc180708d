"""Interfaces, routes and links, each fault alone on one host."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab import Host, Lab
from tests.support.batches import batches, prove_each
from tests.support.faults import (
    ALONE,
    Examiner,
    Fault,
    apply_remedy,
    assert_healthy,
    assert_only,
    one_of_each,
    prove,
    words,
)
from tests.support.smoke.faults import swallow_large

STATISTICS = "/sys/class/net/eth0/statistics"


def detour_to_head(host: Host) -> None:
    """A route to the head alone, through another interface."""
    host.add_interface("mgmt0", "10.9.9.1/24")
    host.do("ip route add 198.18.0.11/32 dev mgmt0")


def detour_by_rule(host: Host) -> None:
    """The same through a table of its own: the main table still has the right route."""
    host.add_interface("mgmt0", "10.9.9.1/24")
    host.do("ip route add 198.18.0.11/32 dev mgmt0 table 100; ip rule add to 198.18.0.11 lookup 100")


def errors(count: int) -> Callable[[Host], object]:
    return lambda host: host.shadow_dir(STATISTICS, {"rx_crc_errors": f"{count}\n"})


FAULTS = Fault.table(__file__, "FAULTS", detour_to_head, errors, detour_by_rule)


def route(given: str) -> Callable[[Host], object]:
    """A host's route to another host of the job, which is on the same network."""
    return lambda host: host.do(f"ip route add {given}")


LOST = Fault.table(__file__, "LOST", route)


@pytest.mark.long
@pytest.mark.parametrize("hosts", ["node[1-2]", "node[1-4]"])
@pytest.mark.parametrize("name", LOST)
def test_the_host_whose_way_leads_nowhere_is_named_and_not_the_other(
    name: str, hosts: str, lab: Lab, examine: Examiner
) -> None:
    """Both directions fail; if there are two hosts, only their own facts show which one is at fault."""
    fault = LOST[name]
    fault.inject(lab["node2"])
    outcome = examine(hosts=hosts)
    (found,) = assert_only(outcome, fault.check, ["node2"])
    for pattern in fault.says:
        assert re.search(pattern, words(found)), words(found)
    assert not any("undecided" in each["summary"] for each in outcome.report["findings"])
    apply_remedy(lab, found)
    assert_healthy(examine(hosts=hosts))


def test_a_bridge_that_holds_the_address_of_another_host(lab: Lab, examine: Examiner) -> None:
    """A wider network of another interface takes nothing, and is not to blame for a host that is down."""
    wider = "ip link add br-9 type bridge; ip link set br-9 up; ip addr add 198.19.0.1/15 dev br-9"
    lab["node3"].do(wider)
    lab["node2"].do(
        "ip link add br-5f2c type bridge; ip link set br-5f2c up; ip addr add 198.18.0.10/31 dev br-5f2c"
    )
    (found,) = assert_only(examine(hosts="node[1-3]"), "route-leads-nowhere", ["node2"])
    assert "a network on br-5f2c holds the addresses" in found["summary"]
    lab["node2"].do("ip link del br-5f2c")
    assert_healthy(examine(hosts="node[1-3]"))


def test_a_host_that_nobody_reaches_is_not_blamed_for_the_ways_of_the_others(
    lab: Lab, examine: Examiner
) -> None:
    """Every connection with node1 fails, so node1 alone would explain all failures."""
    names = ("blackhole", "gateway that nobody has", "neighbour entered by hand")
    for host, name in zip(("node2", "node3", "node4"), names, strict=True):
        LOST[name].inject(lab[host])
    outcome = examine()
    found = {(each["check"], *each["hosts"]) for each in outcome.trouble if not each["because"]}
    assert found == {
        ("route-leads-nowhere", "node2"),
        ("route-leads-nowhere", "node3"),
        ("neighbour-fixed-wrong", "node4"),
    }
    assert all("node1" not in each["hosts"] for each in outcome.trouble)
    assert (outcome.code, outcome.hosts("healthy")) == (1, {"node1"})


HOLES = Fault.table(__file__, "HOLES", swallow_large)


@pytest.mark.parametrize("name", one_of_each(HOLES))
def test_small_packets_and_ssh_pass_and_large_ones_do_not(name: str, examine: Examiner) -> None:
    outcome = prove(HOLES[name], name, examine)
    assert "port-unreachable" not in outcome.text


@pytest.mark.parametrize("names", batches(FAULTS))
def test_found(names: list[str], examine: Examiner) -> None:
    prove_each({name: FAULTS[name] for name in names}, examine)


def test_a_few_errors_are_not_a_fault(lab: Lab, examine: Examiner) -> None:
    errors(900)(lab["node2"])
    assert_healthy(examine(*ALONE))


def without_iproute2(lab: Lab) -> None:
    """As in most images of trainings; node3 has no Perl either, but Python."""
    for host in lab:
        host.no_tool("ip", "ss")
    lab["node3"].no_tool("perl")


def test_healthy_where_hosts_lack_iproute2(lab: Lab, examine: Examiner) -> None:
    without_iproute2(lab)
    outcome = examine()
    assert_healthy(outcome)
    assert "Not examined" not in outcome.text


def test_the_same_is_found_where_hosts_lack_iproute2(lab: Lab, examine: Examiner) -> None:
    args = inventory(examine, "launch: {GLOO_SOCKET_IFNAME: eth0}\n")
    lab["node2"].link_down("lo")
    renamed(lab["node3"])
    errors(4096)(lab["node4"])
    lab["node1"].do("ip addr del 127.0.0.1/8 dev lo")

    def found() -> tuple[int, set[tuple[str, ...]]]:
        outcome = examine(*args)
        said = {(each["check"], each["status"], each["summary"], *each["hosts"]) for each in outcome.trouble}
        return outcome.code, said

    with_ip = found()
    assert with_ip[0] == 1
    assert {(check, status, *hosts) for check, status, _, *hosts in with_ip[1]} == {
        ("loopback-down", "fail", "node1"),
        ("loopback-down", "fail", "node2"),
        ("interface-missing", "fail", "node3"),
        ("nic-errors", "warn", "node4"),
    }
    without_iproute2(lab)
    assert found() == with_ip


def test_rules_of_a_host_without_iproute2_are_unknown(lab: Lab, examine: Examiner) -> None:
    """The kernel shows that there was a rule, and not which one."""
    several_networks(lab["node4"])
    without_iproute2(lab)
    outcome = examine()
    assert_healthy(outcome, {"rule-diverts-traffic"})
    (unknown,) = [each for each in outcome.report["findings"] if each["status"] == "unknown"]
    assert unknown["hosts"] == ["node4"]


def several_networks(host: Host) -> None:
    """A table for each network, as on hosts with several networks."""
    host.add_interface("mgmt0", "10.9.9.1/24")
    host.do("ip route add 198.18.0.0/24 dev eth0 table 7; ip rule add from $1 lookup 7", host.address)


def test_a_copied_machine_has_the_mac_address_of_the_original(lab: Lab, examine: Examiner) -> None:
    """The addresses are shadows: with real ones, it is random which of the two hosts answers."""
    several_networks(lab["node4"])
    mac = lab["node2"].do("cat /sys/class/net/eth0/address")
    lab["node3"].shadow("/sys/class/net/eth0/address", mac)
    (found,) = assert_only(examine(*ALONE), "mac-address-twice", ["node2", "node3"])
    assert mac.strip() in found["actual"]


def inventory(examine: Examiner, text: str) -> tuple[str, ...]:
    path = examine.folder / "inventory.yaml"
    path.write_text(text)
    return (*ALONE, "--inventory", str(path))


def renamed(host: Host) -> None:
    """The interface has another name than on the other hosts, as after a hardware change."""
    host.do(
        """
        ip link set eth0 down; ip link set eth0 name ens5; ip link set ens5 up
        ip route add default via 198.18.0.1
        """
    )


@pytest.mark.parametrize("variable", ["GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "HCCL_SOCKET_IFNAME"])
def test_one_host_lacks_an_interface(variable: str, examine: Examiner) -> None:
    args = inventory(examine, f"launch: {{{variable}: eth0}}\n")
    fault = Fault("interface-missing", renamed, says=(f"{variable}=eth0", "ens5"), args=args)
    prove(fault, variable, examine)


def test_no_host_has_the_interface(examine: Examiner) -> None:
    outcome = examine(*inventory(examine, "launch: {GLOO_SOCKET_IFNAME: nosuch0}\n"))
    (found,) = assert_only(outcome, "interface-missing", [])
    assert found["subject"] == "GLOO_SOCKET_IFNAME=nosuch0"
    assert "there are eth0, lo" in found["actual"]


@pytest.mark.main
def test_a_launch_with_an_interface_of_no_host_is_told_once(examine: Examiner) -> None:
    """Its line is the culprit; nothing is rehearsed with it, and the mended launch passes."""
    script = examine.folder / "run.sh"
    start = "torchrun --nnodes=2 --node_rank=$N --nproc_per_node=2 --master_addr=node1 train.py"
    script.write_text(f"set -e\nexport GLOO_SOCKET_IFNAME=eth9\n{start}\n")
    argv = ("--launch", str(script))
    outcome = examine(*argv, hosts="node[1-2]")
    (found,) = assert_only(outcome, "interface-missing", [])
    assert found["summary"] == "GLOO_SOCKET_IFNAME names eth9, which no host has"
    assert found["evidence"][0]["source"] == "run.sh:2"
    assert (outcome.hosts("faulty"), outcome.code) == (set(), 1)
    path = examine.folder / "preflight.json"
    assert examine.lab.doctor("preflight", "node[1-2]", *argv, "--json", str(path)).returncode == 1
    report = json.loads(path.read_text())
    assert [each["check"] for each in report["findings"] if each["status"] == "fail"] == ["interface-missing"]
    assert report["smoke"]["status"] == "skipped"
    script.write_text(f"export GLOO_SOCKET_IFNAME=eth0\n{start}\n")
    assert_healthy(examine(*argv, hosts="node[1-2]"))


@pytest.mark.parametrize(
    "variable",
    [
        "GLOO_SOCKET_IFNAME",
        *(pytest.param(f"{name}_SOCKET_IFNAME", marks=pytest.mark.long) for name in ("NCCL", "HCCL")),
    ],
)
def test_every_login_names_an_interface_that_no_host_has(variable: str, lab: Lab, examine: Examiner) -> None:
    """The same on all hosts, and repaired by what the launch sets."""
    for host in lab:
        host.sshd(SetEnv=f"{variable}=nosuch0")
    (found,) = assert_only(examine(*ALONE), "interface-missing", [])
    assert found["summary"] == f"{variable} of the login's environment names nosuch0, which no host has"
    assert_healthy(examine(*inventory(examine, f"launch: {{{variable}: eth0}}\n")))


def at_docker(host: Host) -> None:
    """Its own name has the address of Docker's bridge, which every host with Docker has."""
    host.add_interface("docker0", "172.17.0.1/16")
    host.names({host.name: "172.17.0.1"})


WRONG = Fault(
    "interface-wrong",
    at_docker,
    says=(r"172\.17\.0\.1 on docker0 \(its own name resolves to it\)", "export GLOO_SOCKET_IFNAME=eth0"),
    args=(),
)


def test_every_own_name_is_the_bridge_of_docker(lab: Lab, examine: Examiner) -> None:
    for host in lab:
        at_docker(host)
    (found,) = assert_only(examine(), "interface-wrong", lab.names)
    assert all(re.search(pattern, words(found)) for pattern in WRONG.says)
    assert examine("--only", "interface-wrong").code == 1, "what says whether it is repaired"
    launch = examine.folder / "train.sh"
    start = "torchrun --nnodes 4 --nproc-per-node 2 --rdzv-backend c10d --rdzv-endpoint node1:29500 train.py"
    launch.write_text(f"{found['remedy']['commands'][0]}\n{start}\n")
    assert_healthy(examine("--launch", str(launch)))
    apply_remedy(lab, found)
    assert_healthy(examine())


def test_the_bridge_comes_first_in_the_order_of_hccl(lab: Lab, examine: Examiner) -> None:
    """The bridge comes first by name. NCCL takes the first interface that the kernel lists, which is the
    right one here.
    """
    for host in lab:
        host.add_interface("br-1", "172.18.0.1/16")
    only = ("--only", "interface-*", "--backend")
    (found,) = examine(*only, "hccl").trouble
    assert (found["check"], found["status"], found["hosts"]) == ("interface-wrong", "fail", [*lab.names])
    assert "HCCL's own order; emulated, HCCL was not asked" in found["actual"]
    assert found["remedy"]["commands"][0].startswith("export HCCL_SOCKET_IFNAME=eth0 ")
    assert examine(*only, "nccl").trouble == []


@pytest.mark.long
def test_one_own_name_is_the_bridge_of_docker(examine: Examiner) -> None:
    prove(WRONG, "docker0", examine)


@pytest.mark.long
def test_a_bridge_and_a_second_network_that_the_others_reach_are_silent(
    make_lab: Callable[..., Lab], tmp_path: Path
) -> None:
    lab = make_lab(3, data=True)
    for host in lab:
        host.add_interface("docker0", "172.17.0.1/16")
        host.names({host.name: host.data_address})
    assert_healthy(Examiner(lab, tmp_path)(hosts="node[1-3]"))


def test_a_data_address_that_is_not_on_the_host(examine: Examiner) -> None:
    args = inventory(examine, "hosts:\n  node[1-2]:\n  node3: {data: 198.18.0.77}\n  node4:\n")
    outcome = examine(*args, hosts="")
    (found,) = assert_only(outcome, "interface-missing", ["node3"])
    assert "198.18.0.77" in found["summary"]


def test_an_address_may_have_the_name_of_an_interface(lab: Lab, examine: Examiner) -> None:
    for number, host in enumerate(lab, 1):
        host.do(f"ip addr add 198.18.9.{number}/24 dev eth0 label eth0:1")
        host.sshd(SetEnv="GLOO_SOCKET_IFNAME=eth0:1")
    assert_healthy(examine())


def test_a_pattern_of_interface_names_matches_on_every_host(examine: Examiner) -> None:
    renamed(examine.lab["node3"])
    assert_healthy(examine(*inventory(examine, "launch: {NCCL_SOCKET_IFNAME: '^lo,docker'}\n")))

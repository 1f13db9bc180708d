"""The wires below the job's interface and the heat of processors, as emulated files of the kernel show it."""

import pytest

from tests.lab import Host, Lab
from tests.lab.shadow import Tree
from tests.support.faults import ALONE, Examiner, Fault, assert_healthy, assert_only, prove

ETH0 = "/sys/class/net/eth0"
LACP = "802.3ad 4\n"
HOT = """
new=$(mktemp -d); mount -t tmpfs shadow "$new"
at=$new/upper/cpu/cpu0/thermal_throttle; mkdir -p "$at" "$new/work"
echo "$1" >"$at/package_throttle_count"
mount -t overlay -o "lowerdir=/sys/devices/system,upperdir=$new/upper,workdir=$new/work" s /sys/devices/system
umount -l "$new"
"""


def bond(host: Host, mode: str = LACP, active: str = "2\n", **members: tuple[str, str]) -> None:
    """The job's interface is a bond of these members, each with its state and its aggregator."""
    tree: dict[str, Tree] = {"bonding": {"mode": mode, "ad_aggregator": active}}
    for name, (state, number) in members.items():
        own = {"mii_status": f"{state}\n", "ad_aggregator_id": f"{number}\n"}
        tree[f"slave_{name}"] = {"bonding_slave": own}
    host.shadow_dir(ETH0, tree)


def lost_a_cable(host: Host) -> None:
    bond(host, "active-backup 1\n", "\n", ens1=("up", ""), ens2=("down", ""))


def is_not_joined(host: Host) -> None:
    bond(host, ens1=("up", "1"), ens2=("up", "2"))


def speaks_no_lacp(host: Host) -> None:
    bond(host, active="\n", ens1=("up", "1"))


def half(host: Host) -> None:
    host.shadow(f"{ETH0}/duplex", "half\n")


FAULTS = {
    "a cable of a bond": Fault(
        "link-bond-broken",
        lost_a_cable,
        "warn",
        ("a link of eth0 carries nothing", "ens2", "down", "ethtool ens2"),
    ),
    "a port that is in no channel": Fault(
        "link-bond-broken", is_not_joined, "warn", ("ens1", "has not joined")
    ),
    "a switch without LACP": Fault("link-bond-broken", speaks_no_lacp, "warn", ("ens1", "has not joined")),
    "half duplex": Fault("link-half-duplex", half, "warn", ("eth0 runs at half duplex",)),
}


@pytest.mark.parametrize("name", FAULTS)
def test_found(name: str, examine: Examiner) -> None:
    prove(FAULTS[name], name, examine)


def counted(lab: Lab, days: float, changes: dict[str, int], usual: int = 2) -> None:
    """How often each link came and went since its host started."""
    for host in lab:
        host.shadow("/proc/uptime", f"{days * 86400:.2f} 4000.00\n")
        host.shadow(f"{ETH0}/carrier_changes", f"{changes.get(host.name, usual)}\n")


def test_a_link_that_is_lost_again_and_again(lab: Lab, examine: Examiner) -> None:
    counted(lab, 10, {"node3": 162})
    (found,) = assert_only(examine(*ALONE), "link-flapping", ["node3"], "warn")
    assert (found["actual"], found["subject"]) == ("81 times, 8.1 a day", "interface eth0")


def test_processors_that_are_too_hot(lab: Lab, examine: Examiner) -> None:
    for host in lab:
        host.shadow("/proc/uptime", "36000.00 4000.00\n")
        host.do(HOT, "34818" if host.name == "node2" else "12")
    (found,) = assert_only(examine(*ALONE), "cpu-throttled", ["node2"], "warn")
    assert found["actual"] == "3482 times an hour"


def test_what_looks_like_it_and_is_sound(lab: Lab, examine: Examiner) -> None:
    """A bond that is whole, links that all were lost when the switch was restarted, a host that was moved to
    another port some times in a year, and processors that were warm once.
    """
    counted(lab, 365, {"node1": 38, "node2": 60}, usual=30)
    for host in lab:
        if host.name == "node4":
            bond(host, ens1=("up", "2"), ens2=("up", "2"))
        host.do(HOT, "9000" if host.name == "node2" else "0")
    assert_healthy(examine(*ALONE))

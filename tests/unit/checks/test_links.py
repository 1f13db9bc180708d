"""The wires below an interface, from the kernel's files; what cannot be read is unknown."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checks.links import link_flapping
from tests.support.captures import every_fact, held, printed
from tests.support.number_rows.network import made, wires

WIRES, HEAT, FIRMWARE, KEYS = (every_fact()[name] for name in ("wires", "heat", "gpu-firmware", "ib-keys"))
NET = "/sys/class/net"
BOND = {
    f"{NET}/bond0/bonding/mode": "802.3ad 4",
    f"{NET}/bond0/bonding/ad_aggregator": "2",
    f"{NET}/bond0/slave_ens1/bonding_slave/mii_status": "up",
    f"{NET}/bond0/slave_ens1/bonding_slave/ad_aggregator_id": "2",
    f"{NET}/bond0/slave_ens2/bonding_slave/mii_status": "up",
    f"{NET}/bond0/slave_ens2/bonding_slave/ad_aggregator_id": "2",
    f"{NET}/bond0/duplex": "full",
    f"{NET}/bond0/carrier_changes": "4",
    "/proc/uptime": "86400.10 90.00",
}
JOINED = f"{NET}/bond0/slave_ens2/bonding_slave/ad_aggregator_id"
STATE = f"{NET}/bond0/slave_ens2/bonding_slave/mii_status"
APART = "up, but the switch has not joined it to the others (LACP)"


@pytest.mark.parametrize(
    ("changed", "lost"),
    [
        ({}, {}),
        ({STATE: "down"}, {"ens2": "down"}),
        ({STATE: "fail"}, {"ens2": "fail"}),
        ({JOINED: "1"}, {"ens2": APART}),
        ({f"{NET}/bond0/bonding/mode": "balance-rr 0", JOINED: "1"}, {}),
        ({f"{NET}/bond0/bonding/ad_aggregator": ""}, {"ens1": APART, "ens2": APART}),
        ({JOINED: ""}, {}),
    ],
)
def test_the_members_of_a_bond(changed: Mapping[str, str], lost: Mapping[str, str]) -> None:
    wires = held(WIRES, {**BOND, **changed})
    assert wires.bonds == {"bond0": lost}
    assert (wires.duplex, wires.changes, wires.hours) == ({"bond0": "full"}, {"bond0": 4}, 24)


def test_nothing_is_known_of_a_host_without_the_files() -> None:
    wires = held(WIRES, {"/proc/uptime": "garbage"})
    assert (wires.bonds, wires.duplex, wires.changes, wires.hours) == ({}, {}, {}, 0)
    assert (held(HEAT, {}).heat, held(HEAT, {}).hours) == (None, 0)


@given(st.dictionaries(st.sampled_from([*BOND]), st.text(max_size=40)))
def test_anything_may_stand_in_the_files(changed: Mapping[str, str]) -> None:
    held(WIRES, {**BOND, **changed})


def test_the_highest_count_of_a_processor_is_taken() -> None:
    at = "/sys/devices/system/cpu/cpu{}/thermal_throttle/package_throttle_count"
    heat = held(HEAT, {at.format(0): "12", at.format(40): "34818", "/proc/uptime": "7200.00 1.00"})
    assert (heat.heat, heat.hours) == (34818, 2)


AT = "/proc/driver/nvidia/gpus/0000"
GPUS = f"""\
{AT}:19:00.0/information:Model: \t\t NVIDIA H100 80GB HBM3
{AT}:19:00.0/information:GPU Firmware: \t 535.54.03
{AT}:29:00.0/information:Model: \t\t NVIDIA H100 80GB HBM3
{AT}:29:00.0/information:GPU Firmware: \t N/A
"""


@pytest.mark.parametrize(
    ("version", "driver"),
    [
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun  6 22:20:39 UTC 2023",
            "535.54.03",
        ),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build", "580.95.05"),
        ("garbage", ""),
    ],
)
def test_the_firmware_of_gpus(version: str, driver: str) -> None:
    found = printed(FIRMWARE, f"/proc/driver/nvidia/version:{version}\n" + GPUS)
    model = "NVIDIA H100 80GB HBM3"
    assert found.driver == driver
    assert found.gpus == {"0000:19:00.0": (model, "535.54.03"), "0000:29:00.0": (model, "")}


def test_the_keys_of_ports_of_infiniband_only() -> None:
    at = "/sys/class/infiniband/{}/ports/1/{}"
    files = {
        at.format("mlx5_0", "pkeys/0"): "0xffff",
        at.format("mlx5_0", "pkeys/1"): "0x8012",
        at.format("mlx5_0", "link_layer"): "InfiniBand",
        at.format("mlx5_1", "pkeys/0"): "0xffff",
        at.format("mlx5_1", "link_layer"): "Ethernet",
        at.format("mlx5_2", "pkeys/0"): "Invalid argument",
        at.format("mlx5_2", "link_layer"): "InfiniBand",
    }
    assert held(KEYS, files) == {("mlx5_0", 1): {0: 0xFFFF, 1: 0x8012}}


@pytest.mark.parametrize(
    ("changes", "usual", "named"),
    [(800, 20, ["h1"]), (800, 800, []), (18, 0, []), (0, 0, []), (40, 0, ["h1"])],
    ids=["often", "as all", "nine times", "never", "twice a day"],
)
def test_whose_link_is_lost_again_and_again(changes: int, usual: int, named: list[str]) -> None:
    """The hosts are up for ten days."""
    plan, held_by = made(8)
    seen = {host: wires(changes if host == "h1" else usual) for host in held_by}
    assert [host for each in link_flapping.run(seen, held_by, plan) for host in each.hosts] == named

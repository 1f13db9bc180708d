"""Ascend devices themselves: each fault alone on one of three hosts, Atlas A2 with eight NPUs each."""

import time

import pytest

from tests.lab.npus import NpuHost
from tests.support.batches import batches, prove_each
from tests.support.cases import from_cases
from tests.support.faults import ALONE, assert_healthy, assert_only
from tests.support.npu_faults import FULL, NpuExaminer, NpuFault, assert_says, npu_examiner, victim

EIGHT = tuple(range(8))
DAY = 24 * 3600
OF_HCCN = from_cases(__file__, "OF_HCCN", tuple[str, ...])
"""The checks that cannot decide about a device that hccn_tool no longer lists."""


examine = npu_examiner


@pytest.mark.parametrize("exam", [(), FULL], ids=["preflight", "full"])
def test_healthy(exam: tuple[str, ...], examine: NpuExaminer) -> None:
    before = {host.host.name: host.host.snapshot() for host in examine.rack}
    began = time.monotonic()
    outcome = examine(*exam)
    print(f"examined in {time.monotonic() - began:.1f} s")
    assert_healthy(outcome)
    assert "3 hosts · 24 ranks (8 a host, devices found) · backend hccl" in outcome.text
    assert {host["product"] for host in outcome.report["hosts"]} == {"atlas-a2"}
    assert not examine.rack.refused
    for each in examine.rack:
        host = each.host
        host.await_that(lambda host=host: not host.leftovers(before[host.name]), "clean end")  # type: ignore[misc]


def no_driver(host: NpuHost) -> None:
    host.do("rm -f /dev/davinci*")


def mtus(host: NpuHost) -> None:
    for device in EIGHT:
        host.configure(device, mtu="1500" if device == 4 else "4200")


def flapping(host: NpuHost) -> None:
    host[2].link_changes(*[(60.0 * n, n % 2 == 1) for n in range(1, 8)])


def sent_again(host: NpuHost) -> None:
    host[2].counters["roce_new_pkt_rty_num"] = "50000"


def damaged(host: NpuHost) -> None:
    """All the time: its counter is greater each time it is read."""
    host[4].counters["mac_rx_fcs_err_pkt_num"] = "@"


FAULTS = NpuFault.table(__file__, "FAULTS", no_driver, mtus, flapping, sent_again, damaged)


@pytest.mark.parametrize("names", batches(FAULTS, size=2))
def test_found(names: list[str], examine: NpuExaminer) -> None:
    prove_each({name: FAULTS[name] for name in names}, examine)
    assert not examine.rack.refused


@pytest.mark.long
def test_fewer_cards_than_the_inventory_says(examine: NpuExaminer) -> None:
    """If all hosts lack a card, none differs from the others."""
    rack = examine.rack
    for host in rack:
        host.drop(0)
    inventory = examine.folder / "inventory.yaml"
    inventory.write_text("defaults: {devices: 8}\n")
    outcome = examine(*ALONE, "--inventory", str(inventory))
    seats = [(name, 0) for name in rack.lab.names]
    found = assert_only(outcome, "device-missing", rack.lab.names, devices=seats)
    assert_says(found, r"\| 8, .* \| 7: devices 1-7")


def test_the_same_card_gone_from_every_host(examine: NpuExaminer) -> None:
    """Only the product shows that there were eight; no launch line is printed."""
    rack = examine.rack
    for host in rack:
        host.drop(5)
    outcome = examine(*ALONE)
    found = assert_only(
        outcome, "device-missing", rack.lab.names, devices=[(name, 5) for name in rack.lab.names]
    )
    assert_says(found, "8, as servers of atlas-a2 have; if it is to have 7: --expect devices=7")
    done = rack.lab.doctor("check", "node[1-3]", *ALONE, "--print", "launch")
    assert done.returncode == 1
    assert "torchrun" not in done.stdout
    assert_healthy(examine(*ALONE, "--expect", "devices=7"))


def test_a_container_to_which_a_card_is_lost(examine: NpuExaminer) -> None:
    """The container's own devices are those that it may open; the others are not counted as faulty."""
    host = examine.rack["node2"]
    host.drop(5, node=True)
    host.do("touch /run/.containerenv")
    try:
        found = assert_only(examine(*ALONE), "device-unhealthy", ["node2"], devices=[("node2", 5)])
        assert_says(found, "npu-smi does not show it although its device file is there", "npu-smi shows 7")
        host.do("chmod 600 /dev/davinci5")
        outcome = examine(*ALONE, user="trainee")
        assert not outcome.trouble
        assert outcome.unknown["device-unhealthy"] == "npu-smi does not show device 5"
    finally:
        host.do("rm -f /run/.containerenv; chmod 666 /dev/davinci5")


def test_every_fault_of_an_optical_module(examine: NpuExaminer) -> None:
    """One fault on each device of a host."""
    host = victim(examine.rack, "optical")
    host[0].optical["Rx Power2"] = "0.0100 mW"
    host[1].optical["temperature"] = "75 C"
    host[2].optical["Tx Power1"] = "0.0000 mW"
    host[3].optical["Rx Los Flag"] = "0x4"
    host[4].without_module()
    found = assert_only(examine(*FULL), "device-optical", [host.host.name], "warn")
    assert {each["actual"]: [place["device"] for place in each["where"]] for each in found} == {
        "too low: Rx Power2": [0],
        "too high: temperature": [1],
        "no light: Tx Power1": [2],
        "raised: Rx Los Flag": [3],
        "the module is not present": [4],
    }
    assert_says(found, r"hccn_tool -i \d -optical -g")


def test_a_certificate_that_has_expired(examine: NpuExaminer) -> None:
    for host in examine.rack:
        for npu in host:
            npu.tls = True
    examine.rack["node2"][4].certificate(days_left=-2)
    outcome = examine(*ALONE)
    found = assert_only(outcome, "device-tls-mismatch", ["node2"], devices=[("node2", 4)])
    assert_says(found, "its certificate has expired", "ended ", "Replace the certificate")


def test_odd_values_that_are_not_faults(examine: NpuExaminer) -> None:
    host = victim(examine.rack, "odd")
    host[0].tls = None
    host[1].net_health = "Init"
    host[2].link_changes(*[(2 * DAY + 60.0 * n, n % 2 == 1) for n in range(1, 12)])
    host[3].ecc(single_bit_error_count=4)
    host[4].counters.update({"mac_rx_fcs_err_pkt_num": "900", "roce_rx_cnp_pkt_num": "70000"})
    host[5].certificate(days_left=-2)
    host[6].neighbour("400GE9/9/9:9", "another switch")
    assert_healthy(examine(*FULL))


@pytest.mark.long
def test_unreadable_memory_errors_are_unknown_rather_than_none(examine: NpuExaminer) -> None:
    """The tool answers everything else that the fact asks."""
    examine.rack["node2"].hang_smi("ecc")
    assert_healthy(examine(*ALONE), {"device-unhealthy"})

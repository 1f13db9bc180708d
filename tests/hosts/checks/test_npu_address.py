"""Addresses of Ascend devices and their consequences, each fault alone on one host of three."""

import pytest

from tests.lab.npus import NpuHost
from tests.support.batches import batches, prove_each
from tests.support.cases import from_cases
from tests.support.faults import (
    ALONE,
    Found,
    apply_remedy,
    assert_healthy,
    assert_only,
    words,
)
from tests.support.npu_faults import NpuExaminer, NpuFault, assert_says, npu_examiner

examine = npu_examiner


def same_host(host: NpuHost) -> None:
    host[3].address = host[4].address


def narrow(host: NpuHost) -> None:
    host[2].netmask = "255.255.255.0"


FAULTS = NpuFault.table(__file__, "FAULTS", same_host, narrow)


@pytest.mark.parametrize("names", batches(FAULTS, size=2))
def test_found(names: list[str], examine: NpuExaminer) -> None:
    prove_each({name: FAULTS[name] for name in names}, examine)
    assert not examine.rack.refused


def test_the_remedy_fixes_a_device_that_lost_its_settings(examine: NpuExaminer) -> None:
    rack = examine.rack
    npu = rack["node3"][3]
    fine = npu.address
    npu.unconfigured()
    found = assert_only(examine(*ALONE), "device-ip-not-applied", ["node3"], devices=[("node3", 3)])
    assert_says(
        found,
        r"device 3: address 10\.20\.3\.13 \(/etc/hccn\.conf\)",
        r"device 3: address none \(hccn_tool\)",
        r"-ip -s address 10\.20\.3\.13 netmask 255\.255\.0\.0",
    )
    for each in found:
        apply_remedy(rack.lab, each)
    assert npu.address == fine
    assert rack.setters == (("node3", "-i 3 -cfg recovery"),)
    npu.host.forget_calls()
    assert_healthy(examine(*ALONE))


@pytest.mark.long
def test_settings_that_the_file_leaves_out_are_not_a_fault(examine: NpuExaminer) -> None:
    host = examine.rack["node2"]
    host.configure(3, address=None, netmask=None, gateway=None, netdetect=None)
    assert_healthy(examine(*ALONE))


def test_two_hosts_share_one_address(examine: NpuExaminer) -> None:
    rack = examine.rack
    rack["node3"][2].address = rack["node1"][2].address
    found = assert_only(examine(), "device-ip-duplicate", ["node3"], devices=[("node3", 2)])
    assert_says(found, r"10\.20\.1\.12 on node\[1,3\] device 2", "-i 2 -ip -g")
    assert [each["confidence"] for each in found] == ["strong"]


@pytest.mark.long
def test_an_address_outside_the_segment_without_gateways(examine: NpuExaminer) -> None:
    rack = examine.rack
    for host in rack:
        for npu in host:
            npu.gateway = None
    rack["node2"][5].address = "10.77.0.15"
    found = assert_only(examine(*ALONE), "device-ip-subnet", ["node2"], devices=[("node2", 5)])
    assert_says(found, r"10\.20\.0\.0/16, as on 23 other devices \| 10\.77\.0\.0/16")


UNHEALTHY = from_cases(__file__, "UNHEALTHY", tuple[str, ...])


def test_every_word_for_an_unhealthy_network(examine: NpuExaminer) -> None:
    """One on each device of a host; Init on another host is healthy."""
    host = examine.rack["node1"]
    for npu, words_of_it in zip(host, UNHEALTHY, strict=True):
        npu.net_health = words_of_it
    examine.rack["node2"][0].net_health = "Init"
    found = assert_only(examine(*ALONE), "device-net-unhealthy", ["node1"])
    said = {each["actual"]: places(each) for each in found}
    assert said == {
        f"net health status: {text}": [("node1", device)] for device, text in enumerate(UNHEALTHY)
    }
    assert all("detect address 10.20.0.1" in words(each) for each in found)


def places(found: Found) -> list[tuple[str, int]]:
    return [(place["host"], place["device"]) for place in found["where"]]

"""Pings between NPUs over the fabric: which devices are blamed if pings are lost although links are up."""

import pytest

from tests.lab.npus import NpuHost, Rack
from tests.support.faults import assert_consistent, assert_healthy, assert_only
from tests.support.npu_faults import FABRIC, NpuExaminer, assert_says, npu_examiner, victim

examine = npu_examiner


def cut_off(rack: Rack, host: NpuHost, *devices: int) -> None:
    """No pings pass in either direction, but the switch still answers the device's own test."""
    for device in devices:
        host[device].net_health = "Success"
        rack.cut(host[device])


def pinged(host: NpuHost) -> bool:
    return any(" -ping " in call for call in host.calls)


def test_one_device_is_cut_off_from_all_others(examine: NpuExaminer) -> None:
    host = victim(examine.rack, "one device")
    cut_off(examine.rack, host, 2)
    name = host.host.name
    found = assert_only(examine(*FABRIC), "device-unreachable", [name], devices=[(name, 2)])
    others = ", ".join(other for other in examine.rack.lab.names if other != name)
    assert_says(
        found,
        rf"device 2 cannot be reached from any of {others}, although its link is UP",
        r"4 of 6 pings between devices of this number were lost",
        r"hccn_tool -i 2 -ping -g address 10\.20\.\d\.12    # on node\d",
    )


@pytest.mark.long
def test_a_device_that_reports_its_broken_network_is_the_cause(examine: NpuExaminer) -> None:
    """Its report is the cause, and the lost pings are the consequence."""
    host = victim(examine.rack, "noticed")
    examine.rack.cut(host[2])
    name = host.host.name
    outcome = examine(*FABRIC)
    assert_only(outcome, "device-net-unhealthy", [name], devices=[(name, 2)])
    assert "device-unreachable" in outcome.text


@pytest.mark.long
def test_a_host_is_cut_on_all_rails(examine: NpuExaminer) -> None:
    host = victim(examine.rack, "all rails")
    cut_off(examine.rack, host, *range(8))
    name = host.host.name
    seats = [(name, device) for device in range(8)]
    (found,) = assert_only(examine(*FABRIC), "device-unreachable", [name], devices=seats)
    assert_says([found], "devices 0-7 cannot be reached", "32 of 48 pings", "their links are UP")


def test_a_whole_dead_rail_blames_no_host(examine: NpuExaminer) -> None:
    rack = examine.rack
    for host in rack:
        cut_off(rack, host, 5)
    outcome = examine(*FABRIC)
    (found,) = outcome.trouble
    assert (found["check"], found["status"], found["hosts"]) == ("device-unreachable", "fail", [])
    assert_says([found], "device 5: no host reaches any other's; look at the switch", "6 of 6 pings")
    assert {place["device"] for place in found["where"]} == {5}
    assert_consistent(outcome)
    assert outcome.hosts("healthy") == set(rack.lab.names)
    assert (outcome.code, outcome.report["verdict"]) == (1, "faulty")


@pytest.mark.long
def test_a_dead_switch_blames_no_host(examine: NpuExaminer) -> None:
    """The switch does not answer the devices' own tests either."""
    examine.rack.cut_rail(5)
    outcome = examine(*FABRIC)
    assert {found["check"] for found in outcome.trouble} >= {"device-unreachable"}
    assert not [found["hosts"] for found in outcome.trouble if found["hosts"]]
    assert all("look at the switch" in found["summary"] for found in outcome.trouble)
    assert outcome.hosts("healthy") == set(examine.rack.lab.names)


@pytest.mark.long
def test_both_devices_of_a_cut_pair_are_suspects(examine: NpuExaminer) -> None:
    rack = examine.rack
    rack.cut(rack["node1"][4], rack["node3"][4])
    seats = [("node1", 4), ("node3", 4)]
    (found,) = assert_only(examine(*FABRIC), "device-unreachable", ["node1", "node3"], devices=seats)
    assert found["confidence"] == "suspect"
    assert_says([found], r"node\[1,3\] cannot reach each other's device 4.*undecided", "2 of 6 pings")
    assert_says([found], "100.00% packet loss")  # the tool's output


def test_a_device_that_loses_packets(examine: NpuExaminer) -> None:
    host = victim(examine.rack, "lossy")
    host[6].says(
        "ping",
        "device 6 PING\nrecv seq=0,time=0.034000ms\nrecv time out seq=1\nrecv seq=2,time=0.036000ms\n"
        "3 packets transmitted, 2 received, 33.33% packet loss\n",
    )
    name = host.host.name
    found = assert_only(examine(*FABRIC), "device-unreachable", [name], "warn", devices=[(name, 6)])
    assert_says(found, "pings to and from device 6 lose packets", "lost packets", "33.33% packet loss")


def test_busy_devices_are_not_pinged(examine: NpuExaminer) -> None:
    rack = examine.rack
    host = victim(rack, "at work")
    host[1].processes(("python", 4711, 30000))
    name = host.host.name
    outcome = examine(*FABRIC)
    assert_only(outcome, "device-busy", [name], devices=[(name, 1)])
    assert set(outcome.unknown) == {"device-unreachable"}
    assert "its NPUs are busy (--on-busy run" in outcome.unknown["device-unreachable"]
    (unknown,) = (found for found in outcome.report["findings"] if found["status"] == "unknown")
    assert unknown["hosts"] == [name]
    assert {each.host.name for each in rack if pinged(each)} == set(rack.lab.names) - {name}
    address = host[1].address
    assert not [call for each in rack for call in each.calls if f"address {address} " in f"{call} "]


@pytest.mark.long
def test_busy_devices_are_pinged_on_request(examine: NpuExaminer) -> None:
    rack = examine.rack
    host = victim(rack, "at work")
    host[1].processes(("python", 4711, 30000))
    cut_off(rack, host, 7)
    outcome = examine(*FABRIC, "--on-busy", "run")
    assert all(pinged(each) for each in rack)
    assert not outcome.unknown
    blamed = {each["check"]: each for each in outcome.trouble}
    assert set(blamed) == {"device-busy", "device-unreachable"}
    assert all(each["hosts"] == [host.host.name] for each in blamed.values())
    assert {place["device"] for place in blamed["device-unreachable"]["where"]} == {7}


def test_a_single_host_pings_no_device(examine: NpuExaminer) -> None:
    cut_off(examine.rack, examine.rack["node2"], 3)
    assert_healthy(examine(*FABRIC, hosts="node2"))
    assert not any(pinged(host) for host in examine.rack)


def of_half_of_the_devices(examine: NpuExaminer) -> tuple[str, ...]:
    """The arguments of a job that uses devices 0 to 3."""
    inventory = examine.folder / "inventory.yaml"
    inventory.write_text("launch: {ASCEND_RT_VISIBLE_DEVICES: '0,1,2,3'}\n")
    return "--inventory", str(inventory)


@pytest.mark.long
def test_devices_that_the_job_does_not_use(examine: NpuExaminer) -> None:
    """They may be in any state, and are not pinged."""
    host = victim(examine.rack, "not used")
    host[4].processes(("python", 4711, 30000))
    host[5].link_up = False
    host[6].address = None
    host[7].health("Alarm", "80E18400")
    cut_off(examine.rack, examine.rack["node2"], 5)
    outcome = examine(*of_half_of_the_devices(examine))
    assert not outcome.trouble
    assert outcome.code == 0
    unused = tuple(f"-i {device} -ping" for device in range(4, 8))
    assert any(pinged(each) for each in examine.rack)
    assert not [call for each in examine.rack for call in each.calls if call.startswith(unused)]


def route(rack: Rack, host: NpuHost) -> None:
    """Put a host into a segment of its own, which a router connects to that of the others."""
    rack.router("10.40.0.1")
    for npu in host:
        npu.address, npu.gateway, npu.detect = f"10.40.0.{10 + npu.device}", "10.40.0.1", "10.40.0.1"


def test_routed_segments_are_healthy(examine: NpuExaminer) -> None:
    route(examine.rack, examine.rack["node3"])
    assert_healthy(examine(*FABRIC))


def test_a_gateway_is_missing_where_segments_are_routed(examine: NpuExaminer) -> None:
    rack = examine.rack
    route(rack, rack["node3"])
    rack["node3"][6].gateway = None
    outcome = examine(*FABRIC)
    found = assert_only(outcome, "device-gateway-missing", ["node3"], devices=[("node3", 6)])
    assert_says(found, "it has no gateway", "as 23 other devices have")
    assert "device-unreachable" in outcome.text

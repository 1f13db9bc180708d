"""Segments, netmasks and gateways of NPUs: facts in, problems out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from doctor.api import Confidence, Severity
from doctor.facts.hccn import Address
from tests.npu_cluster import (
    EIGHT,
    FLAT,
    RAILS,
    ROUTED,
    SILENT,
    Judgement,
    Network,
    devices,
    each,
    everywhere,
    judge,
    plan,
)

NO_GATEWAYS = everywhere(each(None))
A2, TRAINING = "atlas-a2", "atlas-training"
ALL = {(f"node{host}", n) for host in (1, 2, 3) for n in EIGHT}


def subnet(
    network: Network, product: str = A2, hosts: int = 3, gateways: Any = NO_GATEWAYS, numbers: Any = EIGHT
) -> Judgement:
    names = [f"node{n}" for n in range(1, hosts + 1)]
    found = everywhere(devices(product), *names)
    return judge("device-ip-subnet", network.of(hosts, numbers), found, plan(*names), gateways)


@pytest.mark.parametrize("hosts", [1, 2, 3])
@pytest.mark.parametrize(
    ("network", "product", "gateways"),
    [
        (FLAT, A2, NO_GATEWAYS),
        (FLAT, "atlas-a3", {}),
        (FLAT, "ascend", {}),
        (RAILS, TRAINING, NO_GATEWAYS),
        (ROUTED, A2, {**NO_GATEWAYS, "node1": each("10.1.0.1")}),
    ],
)
def test_plans_that_work(network: Network, product: str, gateways: Any, hosts: int) -> None:
    assert subnet(network, product, hosts, gateways).passed


@pytest.mark.parametrize("product", [A2, "atlas-a3", "ascend"])
def test_outside_the_segment_of_the_others(product: str) -> None:
    found = subnet(FLAT.but({(2, 3): Address("10.99.0.3", 24)}), product)
    assert found.places == {("node2", 3)}
    assert found.only.actual == "10.99.0.0/24"
    assert found.only.expected == "10.20.0.0/24, as on 23 other devices"


def test_a_wrong_netmask_is_no_other_segment() -> None:
    assert subnet(FLAT.but({(2, 3): Address(FLAT.address(2, 3), 28)})).passed
    assert subnet(RAILS.but({(2, 3): Address(RAILS.address(2, 3), 16)}), TRAINING).passed


def test_two_hosts_that_differ_are_both_suspects() -> None:
    found = subnet(FLAT.but({(2, n): Address(f"10.99.0.{n}", 24) for n in EIGHT}), hosts=2)
    assert found.only.hosts == ("node1", "node2")
    assert found.only.confidence is Confidence.SUSPECT
    assert "10.20.0.0/24: node1 devices 0-7" in found.only.actual


def test_whether_it_is_routed_must_be_known() -> None:
    broken = FLAT.but({(2, 3): Address("10.99.0.3", 24)})
    found = subnet(broken, gateways={**NO_GATEWAYS, "node2": each(None, {3: SILENT})})
    assert (found.problems, found.unknown_hosts) == ((), ("node2",))
    assert "gateways" in found.unknown
    assert subnet(broken, gateways={}).unknown_hosts == ("node1", "node2", "node3")


@pytest.mark.parametrize(
    ("way", "found"), [("10.20.0.254", {("node2", 3)}), ("10.99.0.254", set()), (None, set()), ("x", set())]
)
def test_a_stranger_with_the_gateway_of_the_others(way: str | None, found: set[Any]) -> None:
    """Its gateway tells that the address is what is wrong."""
    gateways = {**everywhere(each("10.20.0.254")), "node2": each("10.20.0.254", {3: way})}
    judged = subnet(FLAT.but({(2, 3): Address("10.99.0.3", 24)}), gateways=gateways)
    assert judged.places == found
    half = FLAT.but({(2, n): Address(f"10.99.0.{n}", 24) for n in EIGHT})
    assert subnet(half, hosts=2, gateways=everywhere(each("10.20.0.254"))).passed, "which half is strange?"
    wrong_way = {**everywhere(each("10.1.0.1")), "node2": each("10.1.0.1", {3: "10.1.1.1"})}
    assert subnet(ROUTED, gateways=wrong_way).passed, "device-gateway-missing says that"


def test_a_segment_for_each_number_warns() -> None:
    striped = Network(lambda host, device: f"10.20.{device}.{host}")
    for hosts in (1, 3):
        problem = subnet(striped, hosts=hosts).only
        assert problem.severity is Severity.WARN
        assert problem.actual == "8 segments, one for each device number"


def test_two_devices_in_two_segments_are_both_suspects() -> None:
    striped = Network(lambda host, device: f"10.20.{device}.{host}")
    problem = subnet(striped, hosts=2, numbers=(0, 1)).only
    assert (problem.confidence, problem.severity) == (Confidence.SUSPECT, None)


@pytest.mark.parametrize(("host", "device"), [(2, 3), (2, 7), (1, 0)])
def test_the_device_that_breaks_its_rail(host: int, device: int) -> None:
    moved = RAILS.but({(host, device): Address(f"192.168.{100 + (device + 1) % 4}.77", 24)})
    found = subnet(moved, TRAINING)
    assert found.places == {(f"node{host}", device)}
    assert "as on 5 other devices" in found.only.expected


def test_a_host_that_breaks_all_rails_is_one_problem() -> None:
    turned = {(2, n): Address(f"192.168.{100 + (n + 1) % 4}.{50 + n}", 24) for n in EIGHT}
    problem = subnet(RAILS.but(turned), TRAINING).only
    assert problem.hosts == ("node2",)
    assert problem.subject == "devices 0-7"
    assert "devices 0,4: 192.168.100.0/24, as on 4 other devices" in problem.expected


def test_on_one_host_the_pair_is_suspect() -> None:
    found = subnet(RAILS.but({(1, 4): Address("192.168.77.1", 24)}), TRAINING, hosts=1)
    assert found.places == {("node1", 0), ("node1", 4)}
    assert found.only.confidence is Confidence.SUSPECT
    assert subnet(RAILS, TRAINING, hosts=1, numbers=range(4)).passed, "no pair, no rule"


def test_a_pair_that_is_split_has_no_segment_to_share() -> None:
    found = subnet(RAILS.but({(1, 4): Address("192.168.101.77", 24)}), TRAINING, hosts=1)
    assert found.places == {("node1", 0), ("node1", 4)}


def test_rails_must_not_share_a_segment() -> None:
    assert subnet(FLAT, TRAINING).places == ALL
    merged = {(host, n): Address(f"192.168.100.{20 * host + n}", 24) for host in (1, 2, 3) for n in (1, 5)}
    problem = subnet(RAILS.but(merged), TRAINING).only
    assert {place.device for place in problem.where} == {0, 1, 4, 5}
    assert problem.actual == "192.168.100.0/24 for 0/4 and 1/5"
    assert problem.confidence is Confidence.SUSPECT


def test_other_products_and_devices_without_address() -> None:
    assert "950" in subnet(ROUTED, "atlas-950").skipped
    assert subnet(FLAT.but({(2, 3): None})).passed
    two = {"node1": devices(), "node2": devices(TRAINING), "node3": devices(TRAINING)}
    addresses = {**RAILS.of(), "node1": FLAT.of()["node1"]}
    assert judge("device-ip-subnet", addresses, two, plan(), NO_GATEWAYS).passed, "each product by itself"


def netmask(network: Network, hosts: int = 3) -> Judgement:
    names = [f"node{n}" for n in range(1, hosts + 1)]
    found = everywhere(devices(), *names)
    return judge("device-netmask-mismatch", network.of(hosts), found, plan(*names))


def test_the_netmask_that_differs() -> None:
    assert netmask(FLAT).passed
    wrong = {(2, n): Address(FLAT.address(2, n), 16) for n in (3, 4)}
    problem = netmask(FLAT.but(wrong)).only
    assert (problem.hosts, problem.subject) == (("node2",), "devices 3-4")
    assert problem.expected == "255.255.255.0 (/24), as on 22 other devices"
    assert problem.actual == "255.255.0.0 (/16)"


def test_netmasks_without_a_majority() -> None:
    problem = netmask(FLAT.but({(2, n): Address(FLAT.address(2, n), 16) for n in EIGHT}), hosts=2).only
    assert problem.hosts == ("node1", "node2")
    assert problem.confidence is Confidence.SUSPECT
    assert problem.actual.endswith("255.255.0.0 (/16): node2 devices 0-7")


def test_netmasks_of_two_families_are_not_compared() -> None:
    assert netmask(FLAT.but({(2, n): Address(f"fd00::{n}", 64) for n in EIGHT})).passed


def gateway(
    network: Network,
    changes: Mapping[tuple[int, int], Any],
    ways: str = "10.20.0.254",
    product: str = A2,
    conf: Any = None,
) -> Judgement:
    gateways = Network(lambda _host, _device: ways).but(changes)
    told = {
        host: {n: own.ip if isinstance(own, Address) else own for n, own in said.items()}
        for host, said in gateways.of().items()
    }
    found = everywhere(devices(product))
    return judge("device-gateway-missing", told, network.of(), found, plan(), conf or {})


def none_but(*seats: tuple[int, int]) -> dict[tuple[int, int], None]:
    return {(host, n): None for host in (1, 2, 3) for n in EIGHT if (host, n) not in seats}


def test_everybody_or_nobody_has_a_gateway() -> None:
    assert gateway(FLAT, {}).passed
    assert gateway(FLAT, none_but()).passed
    assert gateway(RAILS, none_but(), product=TRAINING).passed
    assert gateway(ROUTED, none_but()).passed, "device-ip-subnet says that"


def routed() -> dict[tuple[int, int], Any]:
    return {(host, n): Address(f"10.{host}.{n}.1", 24) for host in (1, 2, 3) for n in EIGHT}


@pytest.mark.parametrize(
    ("network", "ways", "severity"), [(FLAT, {}, Severity.WARN), (ROUTED, routed(), None)]
)
def test_one_has_none(network: Network, ways: dict[tuple[int, int], Any], severity: Severity | None) -> None:
    assert gateway(network, ways).passed
    problem = gateway(network, {**ways, (2, 3): None, (2, 4): None}).only
    assert (problem.hosts, problem.subject) == (("node2",), "devices 3-4")
    assert problem.severity is severity
    assert problem.expected == "a gateway, as 22 other devices have"
    assert problem.remedy is None


def test_rails_are_no_several_segments() -> None:
    ways: dict[tuple[int, int], Any]
    ways = {(h, n): Address(f"192.168.{100 + n % 4}.1", 24) for h in (1, 2, 3) for n in EIGHT}
    assert gateway(RAILS, {**ways, (2, 3): None}, product=TRAINING).only.severity is Severity.WARN
    moved = RAILS.but({(1, 0): Address("192.168.104.1", 24), (1, 4): Address("192.168.104.2", 24)})
    own = {(1, 0): Address("192.168.104.9", 24), (1, 4): Address("192.168.104.9", 24)}
    assert gateway(moved, {**ways, **own, (2, 3): None}, product=TRAINING).only.severity is None


def test_the_file_may_know_its_gateway() -> None:
    conf = {"node2": {3: {"gateway": "10.20.0.254"}}}
    assert gateway(FLAT, {(2, 3): None}, conf=conf).only.remedy == "apply-hccn-conf"


def test_few_have_one() -> None:
    assert gateway(FLAT, none_but((2, 3))).passed, "one segment needs none"
    lone = gateway(ROUTED, {**none_but((2, 3)), (2, 3): Address("10.2.3.1", 24)})
    assert lone.places == {("node2", 3)}
    assert lone.only.confidence is Confidence.SUSPECT
    half = {seat: None if seat[1] < 4 else way for seat, way in routed().items()}
    assert gateway(ROUTED, half).places == ALL


@pytest.mark.parametrize(
    ("address", "way", "wrong"),
    [
        ("10.20.0.19", "10.20.0.254", False),
        ("10.20.0.19", "10.20.1.254", True),
        ("10.20.0.19", "fd00::1", False),
        ("10.20.0.19", "gateway", True),
    ],
)
def test_a_gateway_outside_of_the_segment(address: str, way: str, wrong: bool) -> None:
    found = gateway(FLAT.but({(2, 3): Address(address, 24)}), {(2, 3): Address(way, 24)})
    assert found.places == ({("node2", 3)} if wrong else set())
    if wrong:
        assert found.only.severity is Severity.WARN
        assert found.only.actual == f"{way} for 10.20.0.0/24"


def test_devices_without_an_address_need_no_gateway() -> None:
    assert gateway(FLAT.but({(2, 3): None}), {(2, 3): None}).passed
    assert gateway(FLAT.but({(2, 3): SILENT}), {(2, 3): None}).places == {("node2", 3)}
    assert gateway(FLAT, {(2, 3): SILENT}).unknown_hosts == ("node2",)

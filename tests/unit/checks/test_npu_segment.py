"""Segments, netmasks and gateways of NPUs: facts in, problems out."""

from typing import Any

import pytest

from doctor.api import Confidence, Severity
from doctor.facts.ascend.network import Address
from tests.support.cases import cases_with
from tests.support.npu_cluster import (
    EIGHT,
    FLAT,
    HOSTS,
    ONE_HOST,
    RAILS,
    ROUTED,
    SILENT,
    SIX,
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
@cases_with(each, FLAT=FLAT, RAILS=RAILS, ROUTED=ROUTED, NO_GATEWAYS=NO_GATEWAYS)
def test_address_plans_that_work(network: Network, product: str, gateways: Any, hosts: int) -> None:
    assert subnet(network, product, hosts, gateways).passed


@pytest.mark.parametrize("product", [A2, "atlas-a3", "ascend"])
def test_one_device_is_outside_the_segment_of_the_others(product: str) -> None:
    found = subnet(FLAT.but({(2, 3): Address("10.99.0.3", 24)}), product)
    assert found.places == {("node2", 3)}
    assert found.only.actual == "10.99.0.0/24"
    assert found.only.expected == "10.20.0.0/24, as on 23 other devices"


def test_a_wrong_netmask_is_not_another_segment() -> None:
    assert subnet(FLAT.but({(2, 3): Address(FLAT.address(2, 3), 28)})).passed
    assert subnet(RAILS.but({(2, 3): Address(RAILS.address(2, 3), 16)}), TRAINING).passed


def test_two_hosts_that_differ_are_both_suspects() -> None:
    found = subnet(FLAT.but({(2, n): Address(f"10.99.0.{n}", 24) for n in EIGHT}), hosts=2)
    assert found.only.hosts == ("node1", "node2")
    assert found.only.confidence is Confidence.SUSPECT
    assert "10.20.0.0/24: node1 devices 0-7" in found.only.actual


def test_without_known_gateways_the_check_is_undecided() -> None:
    broken = FLAT.but({(2, 3): Address("10.99.0.3", 24)})
    found = subnet(broken, gateways={**NO_GATEWAYS, "node2": each(None, {3: SILENT})})
    assert (found.problems, found.unknown_hosts) == ((), ("node2",))
    assert "gateways" in found.unknown
    assert subnet(broken, gateways={}).unknown_hosts == ("node1", "node2", "node3")


@pytest.mark.parametrize(
    ("way", "found"), [("10.20.0.254", {("node2", 3)}), ("10.99.0.254", set()), (None, set()), ("x", set())]
)
def test_an_address_outside_the_segment_with_the_gateway_of_the_others(
    way: str | None, found: set[Any]
) -> None:
    """Its gateway shows that the address is wrong."""
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
        assert (problem.severity, problem.hosts, problem.where) == (Severity.WARN, (), ())
        assert problem.actual.startswith("8 segments: device 0 in 10.20.0.0/24; device 1 in")


def planes(of: int) -> Network:
    """On every host, this many neighbouring devices share a segment."""
    return Network(lambda host, device: f"10.20.{device // of}.{16 * host + device}")


@pytest.mark.parametrize("hosts", [1, 2, 3])
@cases_with(planes, RAILS=RAILS)
def test_separate_planes_are_one_warning_that_blames_no_host(
    network: Network, product: str, count: int, actual: str, hosts: int
) -> None:
    names = HOSTS[:hosts]
    gateways = everywhere(each(None, numbers=range(count)), *names)
    problem = subnet(network, product, hosts, gateways, range(count)).only
    assert problem.severity is Severity.WARN
    assert (problem.hosts, problem.where) == ((), ())
    assert problem.summary == "devices of different numbers cannot reach each other"
    assert problem.actual.startswith(actual)


def test_a_few_devices_apart_on_all_hosts_may_be_intended() -> None:
    apart = Network(lambda host, device: f"10.20.{device // 6}.{16 * host + device}")
    assert subnet(apart).only.severity is Severity.WARN
    half_done = {(1, n): Address(f"10.20.0.{16 + n}", 24) for n in (6, 7)}
    found = subnet(apart.but(half_done))
    assert found.places == {(f"node{host}", n) for host in (2, 3) for n in (6, 7)}, "most are in one segment"
    assert {problem.severity for problem in found.problems} == {None}


def test_a_device_outside_its_plane() -> None:
    broken = planes(4).but({(2, 3): Address("10.99.0.1", 24), (2, 5): Address("10.20.0.199", 24)})
    warning, problem = subnet(broken).problems
    assert (warning.severity, warning.hosts) == (Severity.WARN, ())
    assert (problem.severity, problem.hosts, problem.subject) == (None, ("node2",), "devices 3,5")
    assert problem.confidence is Confidence.CERTAIN
    assert "device 3: 10.20.0.0/24, as on 2 other devices" in problem.expected
    two = subnet(broken, hosts=2).problems
    assert [p.severity for p in two] == [Severity.WARN, None]
    assert two[1].confidence is Confidence.SUSPECT
    assert {(place.host, place.device) for place in two[1].where} == {
        ("node1", 3),
        ("node2", 3),
        ("node1", 5),
        ("node2", 5),
    }


def test_device_numbers_that_hosts_do_not_share_do_not_form_a_plane() -> None:
    said = {"node1": FLAT.of()["node1"], "node2": {n + 8: Address(f"10.99.0.{n}", 24) for n in EIGHT}}
    ways = {"node1": each(None), "node2": each(None, numbers=range(8, 16))}
    found = judge("device-ip-subnet", said, everywhere(devices()), plan("node1", "node2"), ways)
    assert (found.only.confidence, found.only.severity) == (Confidence.SUSPECT, None)


def test_gateways_of_ipv6_are_not_known() -> None:
    assert subnet(Network(lambda host, device: f"fd00::{8 * host + device}", 64)).passed, "one segment"
    found = subnet(SIX)
    assert (found.problems, found.unknown_hosts) == ((), HOSTS)
    assert "IPv6" in found.unknown
    odd = subnet(FLAT.but({(2, 3): Address("fd00::3", 64)}))
    assert (odd.problems, odd.unknown_hosts) == ((), ("node2",))


@ONE_HOST
def test_a_single_host_does_not_need_the_network(hosts: int, product: str, severity: Severity | None) -> None:
    names = HOSTS[:hosts]
    network, place = (RAILS, 4) if product == TRAINING else (FLAT, 3)
    moved = network.but({(1, place): Address("10.99.0.3", 24)})
    assert {p.severity for p in subnet(moved, product, hosts).problems} == {severity}
    ways = everywhere(each("10.20.0.254"))
    if product != TRAINING:
        assert subnet(moved, product, hosts, ways).only.severity is severity, "with gateways"
    found = everywhere(devices(product), *names)
    narrow = network.but({(1, 3): Address(network.address(1, 3), 28)}).of(hosts)
    assert judge("device-netmask-mismatch", narrow, found, plan(*names)).only.severity is severity


@pytest.mark.parametrize(("host", "device"), [(2, 3), (2, 7), (1, 0)])
def test_a_device_that_breaks_its_rail(host: int, device: int) -> None:
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


def test_a_pair_in_two_segments_has_no_common_segment() -> None:
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

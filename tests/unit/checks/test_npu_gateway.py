"""Netmasks and gateways of NPUs: facts in, problems out."""

from collections.abc import Mapping
from typing import Any

import pytest

from doctor.api import Confidence, Severity
from doctor.facts.ascend.network import Address
from tests.support.cases import cases, cases_with
from tests.support.npu_cluster import (
    EIGHT,
    FLAT,
    HOSTS,
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

A2, TRAINING = "atlas-a2", "atlas-training"
ALL = {(f"node{host}", n) for host in (1, 2, 3) for n in EIGHT}


def netmask(network: Network, hosts: int = 3) -> Judgement:
    names = [f"node{n}" for n in range(1, hosts + 1)]
    found = everywhere(devices(), *names)
    return judge("device-netmask-mismatch", network.of(hosts), found, plan(*names))


def test_one_netmask_differs() -> None:
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


def test_all_devices_or_none_have_a_gateway() -> None:
    assert gateway(FLAT, {}).passed
    assert gateway(FLAT, none_but()).passed
    assert gateway(RAILS, none_but(), product=TRAINING).passed
    assert gateway(ROUTED, none_but()).passed, "device-ip-subnet says that"


def routed() -> dict[tuple[int, int], Any]:
    return {(host, n): Address(f"10.{host}.{n}.1", 24) for host in (1, 2, 3) for n in EIGHT}


@cases_with(routed, FLAT=FLAT, ROUTED=ROUTED)
def test_one_host_lacks_gateways(
    network: Network, ways: dict[tuple[int, int], Any], severity: Severity | None
) -> None:
    assert gateway(network, ways).passed
    problem = gateway(network, {**ways, (2, 3): None, (2, 4): None}).only
    assert (problem.hosts, problem.subject) == (("node2",), "devices 3-4")
    assert problem.severity is severity
    assert problem.expected == "a gateway, as 22 other devices have"
    assert problem.remedy is None


def test_rails_are_not_several_segments() -> None:
    ways: dict[tuple[int, int], Any]
    ways = {(h, n): Address(f"192.168.{100 + n % 4}.1", 24) for h in (1, 2, 3) for n in EIGHT}
    assert gateway(RAILS, {**ways, (2, 3): None}, product=TRAINING).only.severity is Severity.WARN
    moved = RAILS.but({(1, 0): Address("192.168.104.1", 24), (1, 4): Address("192.168.104.2", 24)})
    own = {(1, 0): Address("192.168.104.9", 24), (1, 4): Address("192.168.104.9", 24)}
    assert gateway(moved, {**ways, **own, (2, 3): None}, product=TRAINING).only.severity is None


def test_the_file_may_hold_the_missing_gateway() -> None:
    conf = {"node2": {3: {"gateway": "10.20.0.254"}}}
    assert gateway(FLAT, {(2, 3): None}, conf=conf).only.remedy == "apply-hccn-conf"


def test_few_devices_have_a_gateway() -> None:
    assert gateway(FLAT, none_but((2, 3))).passed, "one segment needs none"
    lone = gateway(ROUTED, {**none_but((2, 3)), (2, 3): Address("10.2.3.1", 24)})
    assert lone.places == {("node2", 3)}
    assert lone.only.confidence is Confidence.SUSPECT
    half = {seat: None if seat[1] < 4 else way for seat, way in routed().items()}
    assert gateway(ROUTED, half).places == ALL


@cases
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


@pytest.mark.parametrize(("hosts", "severity"), [(2, None), (1, Severity.WARN)])
def test_a_single_host_does_not_need_gateways(hosts: int, severity: Severity | None) -> None:
    names = HOSTS[:hosts]
    found, held = everywhere(devices(), *names), ROUTED.of(hosts)
    told = {f"node{h}": {n: f"10.{h}.{n}.1" for n in EIGHT} for h in range(1, hosts + 1)}
    lacks = {**told, "node1": {**told["node1"], 3: None}}
    assert judge("device-gateway-missing", lacks, held, found, plan(*names), {}).only.severity is severity
    few: dict[str, Any] = {name: each(None) for name in names}
    few["node1"] = each(None, {3: "10.1.3.1"})
    judged = judge("device-gateway-missing", few, held, found, plan(*names), {})
    assert bool(judged.problems) is (hosts > 1)


def test_gateways_of_ipv6_are_not_known() -> None:
    one = Network(lambda host, device: f"fd00::{8 * host + device}", 64)
    assert gateway(one, none_but()).passed
    assert gateway(one, {(2, 3): Address("fd00::1", 64), (1, 1): None, (1, 2): None}).passed
    found = gateway(SIX, none_but())
    assert (found.problems, found.unknown_hosts) == ((), HOSTS)
    assert "IPv6" in found.unknown
    odd = FLAT.but({(2, 3): Address("fd00::3", 64)})
    assert not gateway(odd, {}).problems
    assert gateway(odd, {(2, 3): None}).unknown_hosts == ("node2",)


def test_a_single_host_does_not_need_a_gateway_of_ipv6() -> None:
    names, ways = HOSTS[:1], {"node1": each(None)}
    found = everywhere(devices(), *names)
    assert judge("device-gateway-missing", ways, SIX.of(1), found, plan(*names), {}).passed

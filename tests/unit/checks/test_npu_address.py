"""Addresses of NPUs: missing, not applied, used twice."""

from collections.abc import Mapping
from typing import Any

import pytest

from doctor.api import Confidence, Severity
from doctor.facts.ascend.network import Address
from doctor.rules.devices import named
from tests.support.cases import cases, cases_with
from tests.support.npu_cluster import (
    EIGHT,
    FLAT,
    HOSTS,
    NODE1,
    RAILS,
    SILENT,
    UNSUPPORTED,
    Judgement,
    Network,
    devices,
    each,
    judge,
    plan,
    tabled,
)

OWN = FLAT.of()["node1"]
CONF = {
    n: {
        "address": f"10.20.0.{8 + n}",
        "netmask": "255.255.255.0",
        "gateway": "10.20.0.254",
        "netdetect": "10.20.0.253",
    }
    for n in EIGHT
}


def without_address(*lost: int, product: str = "atlas-a2", hosts: int = 3) -> Judgement:
    names = [f"node{n}" for n in range(1, hosts + 1)]
    own = {n: None if n in lost else address for n, address in OWN.items()}
    return judge("device-ip-missing", own, devices(product), plan(*names), NODE1)


def test_devices_without_an_address() -> None:
    assert without_address().passed
    problem = without_address(3, 5).only
    assert problem.subject == "devices 3,5"
    assert [place.device for place in problem.where] == [3, 5]
    assert problem.severity is None


@cases
def test_where_a_job_does_not_need_addresses(
    product: str, hosts: int, lost: list[int], severity: Severity | None
) -> None:
    assert without_address(*lost, product=product, hosts=hosts).only.severity is severity


def test_addresses_that_are_not_known_are_not_judged() -> None:
    found = judge("device-ip-missing", each(None, {2: SILENT}, (1, 2)), devices(), plan(), NODE1)
    assert found.only.subject == "device 1"
    assert found.unknown == "device 2: hccn_tool did not answer within 4 s"
    deaf = judge("device-ip-missing", each(UNSUPPORTED), devices(), plan(), NODE1)
    assert deaf.skipped == UNSUPPORTED.reason
    visible = plan(env={"ASCEND_RT_VISIBLE_DEVICES": "0"})
    said = each(OWN[0], {2: SILENT, 3: None})
    assert judge("device-ip-missing", said, devices(), visible, NODE1).passed
    assert judge("device-ip-missing", said, devices(), tabled(plan(), {"node1": (0, 1)}), NODE1).passed


def test_a_table_of_several_hosts_makes_the_network_needed() -> None:
    """Even though only one of them is examined."""
    own = {**OWN, 3: None}
    for names, severity in (("node1",), Severity.WARN), (("node1", "node2"), None):
        job = tabled(plan("node1"), dict.fromkeys(names, EIGHT))
        assert judge("device-ip-missing", own, devices(), job, NODE1).only.severity is severity


def applied(
    addresses: Any,
    conf: Mapping[int, Mapping[str, str]],
    gateways: Any = None,
    detect: Any = None,
    hosts: int = 3,
    product: str = "atlas-a2",
) -> Judgement:
    """Judge one host, which is the culprit of every problem."""
    known = ({"node1": value} if value is not None else {} for value in (gateways, detect))
    job, found = plan(*HOSTS[:hosts]), {"node1": devices(product)}
    judged = judge("device-ip-not-applied", {"node1": addresses}, {"node1": conf}, job, *known, found)
    assert all(problem.hosts == ("node1",) for problem in judged.problems)
    return judged


def test_each_host_has_its_own_file() -> None:
    said = FLAT.of()
    confs = {"node1": CONF, "node3": CONF}
    found = judge("device-ip-not-applied", said, confs, plan(), {}, {}, {})
    assert found.places == {("node3", n) for n in EIGHT}, "node2 has none"
    deaf = judge("device-ip-not-applied", {**said, "node1": each(SILENT)}, confs, plan(), {}, {}, {})
    assert (deaf.unknown_hosts, deaf.places) == (("node1",), {("node3", n) for n in EIGHT})


@cases_with(each, SILENT=SILENT)
def test_the_file_was_applied(gateways: Any, detect: Any) -> None:
    assert applied(OWN, CONF, gateways, detect).passed
    assert applied(OWN, {}, gateways, detect).passed, "the file says nothing"


@cases_with(Address, each)
def test_the_values_of_the_file_and_of_the_device_are_named(
    told: Any, more: dict[str, Any], expected: str, actual: str
) -> None:
    problem = applied({**OWN, 3: told}, CONF, **more).only
    assert (problem.subject, problem.where[0].device) == ("device 3", 3)
    assert problem.expected == f"{expected} (/etc/hccn.conf)"
    assert problem.actual == f"{actual} (hccn_tool)"
    by_hand = {"ip": "10.20.0.11", "netmask": "255.255.255.0"} if not more else {}
    assert problem.values == {"device": ("3",), **by_hand}


def test_a_host_whose_file_was_never_applied() -> None:
    problem = applied(each(None), CONF).only
    assert problem.subject == "devices 0-7"
    assert problem.values == {"device": tuple("01234567")}, "one address for all would be wrong"
    broken = applied(OWN, {**CONF, 3: {"address": "10.20.0.300"}}).only
    assert "10.20.0.300" in broken.expected


@cases
def test_a_single_host_does_not_need_what_the_file_sets(
    hosts: int, product: str, severity: Severity | None
) -> None:
    found = applied({**OWN, 3: None}, CONF, hosts=hosts, product=product)
    assert found.only.severity is severity
    doubled = {"node1": {**OWN, 3: OWN[4]}}
    job = plan(*HOSTS[:hosts])
    found = judge("device-ip-duplicate", doubled, job, {}, {"node1": devices(product)})
    assert found.only.severity is severity


def duplicates(network: Network, conf: Mapping[str, Any] | None = None) -> Judgement:
    return judge("device-ip-duplicate", network.of(), plan(), conf or {}, {})


@pytest.mark.parametrize("network", [FLAT, RAILS])
def test_every_address_is_unique(network: Network) -> None:
    assert duplicates(network).passed


@cases_with(FLAT=FLAT, RAILS=RAILS)
def test_the_odd_one_by_sequence_or_rail(
    network: Network, changed: tuple[int, int], taken_from: tuple[int, int]
) -> None:
    ip = network.address(*taken_from)
    found = duplicates(network.but({changed: Address(ip, 24)}))
    assert found.places == {(f"node{changed[0]}", changed[1])}
    assert found.only.hosts == (f"node{changed[0]}",)
    assert found.only.confidence is Confidence.STRONG
    assert (
        found.only.actual
        == f"{ip} on {named((f'node{host}', n) for host, n in sorted([changed, taken_from]))}"
    )


def test_the_odd_one_by_its_own_file() -> None:
    unordered = Network(lambda host, device: f"10.20.{host}.{(3, 17, 5, 40, 9, 28, 33, 12)[device]}", 16)
    ip = unordered.address(1, 3)
    doubled = unordered.but({(2, 5): Address(ip, 16)})
    assert duplicates(doubled).places == {("node1", 3), ("node2", 5)}, "nothing tells"
    conf = {"node1": {3: {"address": ip}}, "node2": {5: {"address": unordered.address(2, 5)}}}
    assert duplicates(doubled, conf).places == {("node2", 5)}


SCATTERED = Network(
    lambda host, device: f"10.{20 + device}.0.{(0, 3, 17, 5)[host] + 40 * (device in (2, 5))}"
)
"""Each number has a segment of its own, and there is no sequence in it."""


def test_the_odd_one_by_the_segment_of_its_number() -> None:
    ip = SCATTERED.address(1, 2)
    assert duplicates(SCATTERED.but({(2, 5): Address(ip, 24)})).places == {("node2", 5)}
    both_there = duplicates(SCATTERED.but({(2, 2): Address(ip, 24)}))
    assert both_there.places == {("node1", 2), ("node2", 2)}
    split = {(2, 5): Address(ip, 24), (3, 5): Address("10.99.0.1", 24), (3, 2): Address("10.99.0.2", 24)}
    told = duplicates(SCATTERED.but(split))
    assert told.places == {("node1", 2), ("node2", 5)}, "the other hosts do not agree on the segment of 2"


def test_a_host_that_was_cloned() -> None:
    cloned = FLAT.but({(2, n): Address(FLAT.address(1, n), 24) for n in EIGHT})
    problem = duplicates(cloned).only
    assert problem.hosts == ("node1", "node2")
    assert problem.subject == "node[1-2] devices 0-7"
    assert problem.confidence is Confidence.SUSPECT
    assert len(problem.where) == 16


def test_two_spellings_of_one_address_are_equal() -> None:
    lone = {(host, n): None for host in (1, 2, 3) for n in EIGHT}
    spelled = {(1, 0): Address("fe80:0::1", 64), (2, 0): Address("fe80::1", 64)}
    assert duplicates(FLAT.but({**lone, **spelled})).places == {("node1", 0), ("node2", 0)}


def test_a_device_that_did_not_answer_may_have_the_same_address() -> None:
    found = duplicates(FLAT.but({(2, 3): SILENT, (3, 3): SILENT}))
    assert (found.problems, found.unknown) == ((), "device 3: hccn_tool did not answer within 4 s")
    assert found.unknown_hosts == ("node2", "node3")

"""Links of NPUs: down, unhealthy, unwatched, different from the others. Facts in, problems out."""

from typing import Any

import pytest

from doctor.api import Severity
from doctor.facts.ascend.ports import Neighbour
from tests.support.cases import cases, cases_with
from tests.support.npu_cluster import (
    FLAT,
    HOSTS,
    NODE1,
    ONE_HOST,
    SILENT,
    UNSUPPORTED,
    Judgement,
    devices,
    each,
    everywhere,
    judge,
    plan,
    tabled,
)

UP = each(True)
OWN = FLAT.of()["node1"]
LANES = (False, True)


def down(
    links: Any, product: str = "atlas-a2", hosts: int = 3, ports: Any = None, addresses: Any = OWN
) -> Judgement:
    job = plan(*HOSTS[:hosts])
    return judge("device-link-down", links, devices(product), job, NODE1, ports, addresses)


def test_links_that_are_down() -> None:
    assert down(UP).passed
    problem = down(each(True, {3: False, 4: False})).only
    assert (problem.subject, problem.severity) == ("devices 3-4", None)
    assert [place.device for place in problem.where] == [3, 4]
    assert problem.actual == "link status: DOWN"


@cases_with(each, SILENT=SILENT)
def test_a_job_on_one_host_does_not_need_links(
    product: str, hosts: int, links: Any, severity: Severity | None
) -> None:
    assert down(links, product, hosts).problems[0].severity is severity


@pytest.mark.parametrize(
    ("product", "links", "addresses", "severity"),
    [
        ("atlas-a3", each(False), each(None), Severity.WARN),
        ("atlas-a3", each(False), OWN, None),
        ("atlas-a3", each(False), each(None, {3: OWN[3]}), None),
        ("atlas-a3", each(False), each(None, {3: SILENT}), None),
        ("atlas-a3", each(False), None, None),
        ("atlas-a3", each(False, {3: True}), each(None), None),
        ("atlas-a3", each(False, {3: SILENT}), each(None), None),
        ("atlas-a2", each(False), each(None), None),
    ],
)
def test_a_super_pod_need_not_be_cabled(
    product: str, links: Any, addresses: Any, severity: Severity | None
) -> None:
    assert down(links, product, addresses=addresses).problems[0].severity is severity


def test_a_link_that_the_rank_table_does_not_use() -> None:
    links, used = each(True, {3: False}), tabled(plan(), {"node1": (0, 1, 2)})
    assert judge("device-link-down", links, devices(), used, NODE1, None, None).passed
    lanes = each(LANES, {3: LANES[:1]})
    assert judge("device-link-down", links, devices("atlas-950"), used, NODE1, lanes, None).passed
    other = tabled(plan(), {"node2": (0, 1, 2)})
    assert judge("device-link-down", links, devices(), other, NODE1, None, None).problems


def test_a_950_is_down_when_none_of_its_ports_is_up() -> None:
    links = each(UNSUPPORTED)
    assert down(links, "atlas-950", ports=each(LANES)).passed
    problem = down(links, "atlas-950", ports=each(LANES, {3: LANES[:1]})).only
    assert (problem.subject, problem.actual) == ("device 3", "no port is up")
    assert problem.remedy == "look-at-npu-ports"
    assert down(links, "atlas-950").unknown
    assert down(links, "atlas-950", ports=each(LANES, {3: SILENT})).unknown.startswith("device 3: ")
    assert down(links).skipped == UNSUPPORTED.reason, "not a 950"


def health(
    status: Any,
    links: Any = UP,
    addresses: Any = OWN,
    detect: Any = None,
    hosts: int = 3,
    product: str = "atlas-a2",
) -> Judgement:
    """Judge one host, which is the culprit of every problem."""
    found = judge(
        "device-net-unhealthy",
        {"node1": status},
        plan(*HOSTS[:hosts]),
        *({"node1": value} if value is not None else {} for value in (links, addresses, detect)),
        {"node1": devices(product)},
    )
    assert all(problem.hosts == ("node1",) for problem in found.problems)
    return found


@pytest.mark.parametrize(("dead", "culprits"), [(3, ()), (2, ("node1", "node2"))])
def test_a_device_number_that_fails_on_all_hosts_blames_the_switch(
    dead: int, culprits: tuple[str, ...]
) -> None:
    ill, well = each("Unreachable", dict.fromkeys((0, 1, 3, 4, 5, 6, 7), "Success")), each("Success")
    said = {host: ill if number < dead else well for number, host in enumerate(HOSTS)}
    found = judge("device-net-unhealthy", said, plan(), everywhere(UP), FLAT.of(), {}, {})
    assert tuple(host for problem in found.problems for host in problem.hosts) == culprits
    assert found.places == {(host, 2) for host in HOSTS[:dead]}
    assert ("look at the switch" in found.problems[0].summary) is (not culprits)


@pytest.mark.parametrize("status", ["Success", "Init", "success"])
def test_statuses_that_the_official_tools_call_healthy(status: str) -> None:
    assert health(each(status)).passed


@cases
def test_statuses_that_are_unhealthy(status: str) -> None:
    problem = health(each("Success", {3: status}), detect=each("10.20.0.254")).only
    assert (problem.subject, problem.severity) == ("device 3", None)
    assert problem.actual == f"net health status: {status}"
    assert problem.evidence[0].text == f"{status}; detect address 10.20.0.254"


@pytest.mark.parametrize(
    ("links", "addresses", "found"),
    [
        (each(True, {3: False}), OWN, []),
        (UP, {**OWN, 3: None}, []),
        (None, None, ["device 3"]),
        (each(SILENT), each(SILENT), ["device 3"]),
        (each(True, {4: False}), {**OWN, 5: None}, ["device 3"]),
    ],
)
def test_faults_that_another_check_reports_are_not_repeated(
    links: Any, addresses: Any, found: list[str]
) -> None:
    judged = health(each("Success", {3: "Receive timeout"}), links, addresses)
    assert [problem.subject for problem in judged.problems] == found


@cases
def test_a_detect_address_inside_the_server(address: str | None, inside: bool) -> None:
    found = health(each("Success", {3: "Receive timeout"}), detect=each("10.20.0.254", {3: address}))
    assert ("inside of the server" in found.only.summary) is inside


def test_statuses_are_distinguished() -> None:
    found = health(each("Fault", {3: "Unreachable", 4: "Success"}))
    assert [problem.subject for problem in found.problems] == ["devices 0-2,5-7", "device 3"]


@ONE_HOST
def test_a_single_host_does_not_need_a_healthy_network(
    hosts: int, product: str, severity: Severity | None
) -> None:
    found = health(each("Success", {3: "Fault"}), hosts=hosts, product=product)
    assert found.only.severity is severity


def detect(found: Any, addresses: Any = OWN, conf: Any = None) -> Judgement:
    return judge("device-detect-unset", found, plan(), NODE1, addresses, conf)


def test_no_detect_address() -> None:
    assert detect(each("10.20.0.254")).passed
    unset = each("10.20.0.254", {3: None, 4: None})
    assert detect(unset).only.subject == "devices 3-4"
    assert detect(unset, {**OWN, 3: None}).only.subject == "device 4"
    assert detect(each("10.20.0.254", {3: SILENT})).unknown


@cases
def test_the_remedy_sets_only_the_planned_value(conf: Any, known: str | None) -> None:
    assert detect(each("10.20.0.254", {3: None, 4: None}), conf=conf).only.values.get("detect") == known


def test_a_device_without_a_neighbour() -> None:
    def lldp(found: Any, links: Any = UP) -> Judgement:
        return judge("device-no-lldp", found, plan(), NODE1, links)

    switch = Neighbour("400GE1/1/20:2", "switch")
    assert lldp(each(switch)).passed
    assert lldp(each(switch, {3: None})).only.subject == "device 3"
    assert lldp(each(switch, {3: None}), each(True, {3: False})).passed
    assert lldp(each(switch, {3: SILENT})).unknown == "device 3: hccn_tool did not answer within 4 s"


@cases
def test_devices_of_others_are_not_judged(id: str, fine: Any, bad: Any, more: tuple[Any, ...]) -> None:
    product = (devices(),) if id == "device-link-down" else ()
    for job in (plan(env={"ASCEND_RT_VISIBLE_DEVICES": "0"}), tabled(plan(), {"node1": (0,)})):
        assert judge(id, each(bad, {0: fine}), *product, job, NODE1, *more).passed
    assert judge(id, each(bad, {0: fine}), *product, plan(), NODE1, *more).problems


def test_an_unhealthy_network_of_a_device_that_the_job_does_not_use() -> None:
    said = {"node1": each("Success", {3: "Fault"})}
    few = plan(env={"ASCEND_RT_VISIBLE_DEVICES": "0-2"})
    assert judge("device-net-unhealthy", said, plan(), {}, {}, {}, {}).problems
    assert judge("device-net-unhealthy", said, few, {}, {}, {}, {}).passed

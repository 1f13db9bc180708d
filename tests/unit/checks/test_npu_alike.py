"""What must be the same on all devices of a job: TLS and speed. Facts in, problems out."""

from typing import Any

import pytest

from doctor.api import Confidence, Severity
from doctor.facts.ascend.network import Tls
from tests.support.npu_cluster import (
    HOSTS,
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


@ONE_HOST
def test_tls_that_differs_on_one_host(hosts: int, product: str, severity: Severity | None) -> None:
    found = {"node1": devices(product)}
    for odd in (Tls(True), Tls(False, "May 5")):
        said = {"node1": each(Tls(not odd.on), {3: odd})}
        problems = judge("device-tls-mismatch", said, plan(*HOSTS[:hosts]), found).problems
        assert [problem.severity for problem in problems] == [severity]
    expired = {"node1": each(Tls(True, "May 5"))}
    assert judge("device-tls-mismatch", expired, plan(*HOSTS[:hosts]), found).only.severity is severity


def tls(said: dict[str, Any]) -> Judgement:
    return judge("device-tls-mismatch", said, plan(), {})


@pytest.mark.parametrize("on", [True, False])
def test_one_tls_switch_differs(on: bool) -> None:
    same = everywhere(each(Tls(on)))
    assert tls(same).passed
    problem = tls({**same, "node2": each(Tls(on), {3: Tls(not on)})}).only
    assert [(p.host, p.device) for p in problem.where] == [("node2", 3)]
    assert problem.actual == f"TLS {'off' if on else 'on'}"
    whole = tls({**same, "node2": each(Tls(not on))}).only
    assert (whole.hosts, whole.subject) == (("node2",), "devices 0-7")


def test_half_of_the_hosts_have_tls() -> None:
    problem = tls({"node1": each(Tls(True)), "node2": each(Tls(False))}).only
    assert problem.hosts == ("node1", "node2")
    assert problem.confidence is Confidence.SUSPECT
    assert problem.actual == "TLS on: node1 devices 0-7; TLS off: node2 devices 0-7"


@pytest.mark.parametrize(("on", "expired", "found"), [(True, "May 5", 1), (False, "May 5", 0), (True, "", 0)])
def test_an_expired_certificate(on: bool, expired: str, found: int) -> None:
    said = everywhere(each(Tls(on)))
    said["node2"] = each(Tls(on), {3: Tls(on, expired)})
    judged = tls(said)
    assert len(judged.problems) == found
    if found:
        assert (judged.only.actual, judged.places) == ("ended May 5", {("node2", 3)})


def test_tls_that_is_not_known() -> None:
    found = tls({"node1": each(Tls(False)), "node2": each(UNSUPPORTED), "node3": each(SILENT)})
    assert (found.unknown_hosts, found.problems) == (("node3",), ())
    assert tls(everywhere(each(UNSUPPORTED))).skipped == UNSUPPORTED.reason
    both = tls({"node1": each(SILENT), "node2": each(Tls(False), {3: SILENT})})
    assert both.unknown == (
        "node1: devices 0-7: hccn_tool did not answer within 4 s; "
        "node2: device 3: hccn_tool did not answer within 4 s"
    )


def speed(said: dict[str, Any], links: Any = None, found: Any = None) -> Judgement:
    return judge("device-speed-mismatch", said, found or everywhere(devices()), plan(), links or {})


def test_one_speed_differs() -> None:
    same = everywhere(each(200000))
    slow = {**same, "node2": each(200000, {3: 100000})}
    assert speed(same).passed
    assert speed(slow).only.actual == "100000 Mb/s"
    assert speed(slow).places == {("node2", 3)}
    assert speed(slow, {"node2": each(True, {3: False})}).passed, "a link that is down has no speed"
    assert speed({**same, "node2": each(200000, {3: None, 4: 0})}).passed, "not known"
    mixed = everywhere(devices()) | {"node2": devices("atlas-training")}
    assert speed({**same, "node2": each(100000)}, found=mixed).passed, "another product"


def test_speeds_that_are_not_known() -> None:
    assert speed(everywhere(each(None))).unknown == "hccn_tool does not know the speed of any link"
    assert speed(everywhere(each(None)), everywhere(each(False))).passed


def test_devices_of_others_are_not_compared() -> None:
    mine = plan(env={"ASCEND_RT_VISIBLE_DEVICES": "0,1"})
    said = everywhere(each(Tls(True), {0: Tls(False), 1: Tls(False), 5: SILENT}))
    assert judge("device-tls-mismatch", said, mine, {}).passed
    assert judge("device-tls-mismatch", said, tabled(plan(), dict.fromkeys(HOSTS, (0, 1))), {}).passed


@pytest.mark.parametrize(("product", "odd"), [("atlas-a2", {3: "1500"}), ("atlas-950", {})])
def test_the_mtus_of_npus(product: str, odd: dict[int, str]) -> None:
    """What the file does not name is the default of the driver; Atlas 950 joins its NPUs in another way."""

    def told(**own: dict[int, str]) -> Judgement:
        said = {
            host: {n: {"mtu": mtu} if mtu else {} for n, mtu in npus.items()} for host, npus in own.items()
        }
        return judge("mtu-mismatch", {}, {}, plan(), said, dict.fromkeys(HOSTS, devices(product)))

    same = dict.fromkeys(range(8), "4200")
    assert told(node1=same, node2=same | {7: ""}, node3={}).passed
    found = told(node1=same, node2=same | {3: "1500"}).problems
    assert [(p.subject, p.actual, p.hosts) for p in found] == [("device 3", "1500", ("node2",)) for _ in odd]

"""What the routes and neighbours of a host show about failed connections: facts in, findings out."""

from dataclasses import replace

import pytest

from doctor.mesh import MeshResult
from doctor.model import Confidence, Finding, Host, Status
from tests.support.cases import cases
from tests.support.recordings import FILES, heard, mesh, recording, report

NAMES = ["a", "b"]
BOTH = (("a", "b"), ("b", "a"))
HEAD = FILES["routes"]["/proc/net/route"]
ARP = "IP address       HW type     Flags       HW address            Mask     Device\n"
CARDS = {f"/sys/class/net/eth0/{name}": text for name, text in (("mtu", "1500"), ("speed", "10000"))}
WAYS = ("route-leads-nowhere", "neighbour-fixed-wrong", "port-unreachable")

BLACKHOLE = "*\t0200000A\t00000000\t0005\t0\t0\t0\tFFFFFFFF\t0\t0\t0"
UNREACHABLE = "*\t0200000A\t00000000\t0205\t0\t0\t0\tFFFFFFFF\t0\t0\t0"
BY_GATEWAY = "eth0\t0200000A\tFA00000A\t0007\t0\t0\t0\tFFFFFFFF\t0\t0\t0"
LAST_RESORT = "*\t00000000\t00000000\t0201\t0\t0\t4278198\t00000000\t0\t0\t0"


def examined(
    seen: MeshResult | None, route: str = "", neighbour: str = "", *, only: str = ""
) -> dict[str, Finding]:
    """The findings if `a` has one more route and neighbour, or `only` this route."""
    table = f"{HEAD.splitlines()[0]}\n{only}" if only else f"{HEAD}\n{route}"
    answers = {
        name: heard(n, NAMES, links={**CARDS, "/sys/class/net/eth0/address": f"02:00:00:00:00:0{n}"})
        for n, name in enumerate(NAMES, 1)
    }
    changed = {"routes": {"/proc/net/route": table}, "fixed-neighbours": {"/proc/net/arp": ARP + neighbour}}
    own = heard(1, NAMES, **changed).captures
    answers["a"] = replace(answers["a"], captures={**answers["a"].captures, **{n: own[n] for n in changed}})
    hosts = tuple(Host(name, f"10.0.0.{n}") for n, name in enumerate(NAMES, 1))
    of = report(recording(NAMES, heard=answers, hosts=hosts, mesh=seen))
    return {found.check: found for found in of.findings if found.check in WAYS}


def unanswered(gateway: str, seen: MeshResult) -> MeshResult:
    """The same, if `a` got no ARP answer for this address."""
    links = (replace(one, unresolved=(gateway,) if one.source == "a" else ()) for one in seen.links)
    return replace(seen, links=tuple(links))


def neighbour(address: str, mac: str, flags: str = "0x6") -> str:
    return f"{address}         0x1         {flags}         {mac}     *        eth0\n"


def assert_guilty(found: dict[str, Finding], cause: str) -> None:
    assert found[cause].status is Status.FAIL
    assert found[cause].hosts == ("a",)
    symptom = found["port-unreachable"]
    assert (symptom.hosts, symptom.because) == (("a",), found[cause].id)
    assert symptom.confidence is Confidence.CERTAIN


def test_without_such_facts_the_pair_is_undecided() -> None:
    found = examined(mesh(NAMES, *BOTH))
    assert found.keys() == {"port-unreachable"}
    assert found["port-unreachable"].hosts == ("a", "b")


@pytest.mark.parametrize("route", [BLACKHOLE, UNREACHABLE])
def test_a_route_that_throws_packets_away_decides_the_pair(route: str) -> None:
    assert_guilty(examined(mesh(NAMES, *BOTH), route), "route-leads-nowhere")


def test_a_gateway_that_nobody_has_decides_the_pair() -> None:
    seen = mesh(NAMES, *BOTH)
    assert_guilty(examined(unanswered("10.0.0.250", seen), BY_GATEWAY), "route-leads-nowhere")
    assert examined(seen, BY_GATEWAY).keys() == {"port-unreachable"}
    assert examined(unanswered("10.0.0.251", seen), BY_GATEWAY).keys() == {"port-unreachable"}


def test_a_host_without_any_route_to_the_other_is_guilty() -> None:
    seen = mesh(NAMES, *BOTH)
    links = tuple(replace(one, outcome="no-route", detail="Network is unreachable") for one in seen.links)
    found = examined(replace(seen, links=links), only="eth1\t0001A8C0\t0\t0001\t0\t0\t0\t00FFFFFF")
    assert_guilty(found, "route-leads-nowhere")
    assert found["route-leads-nowhere"].summary == "it has no route to other hosts of the job"


def test_a_neighbour_entered_by_hand_decides_the_pair() -> None:
    wrong = neighbour("10.0.0.2", "02:00:00:00:00:99")
    found = examined(mesh(NAMES, *BOTH), neighbour=wrong)
    assert_guilty(found, "neighbour-fixed-wrong")
    assert found["neighbour-fixed-wrong"].expected == "10.0.0.2 at 02:00:00:00:00:02"


@cases
def test_right_learned_and_foreign_neighbours_decide_nothing(row: str) -> None:
    assert examined(mesh(NAMES, *BOTH), neighbour=row).keys() == {"port-unreachable"}


@pytest.mark.parametrize("seen", [mesh(NAMES), mesh(NAMES, BOTH[1])])
def test_a_connection_that_succeeds_clears_routes_and_neighbours(seen: MeshResult) -> None:
    """Another table routes it, or a router answers for the other host."""
    found = examined(seen, BLACKHOLE, neighbour("10.0.0.2", "02:00:00:00:00:99"))
    assert found.keys() <= {"port-unreachable"}


def test_a_route_of_last_resort_is_not_a_fault() -> None:
    assert examined(mesh(NAMES, *BOTH), LAST_RESORT).keys() == {"port-unreachable"}
    assert examined(None, LAST_RESORT).keys() == {"port-unreachable"}, "nothing was tried"


def test_where_nothing_was_tried_a_neighbour_is_a_warning_and_a_blackhole_is_a_fault() -> None:
    found = examined(None, BLACKHOLE, neighbour("10.0.0.2", "02:00:00:00:00:99"))
    states = {check: one.status for check, one in found.items() if check != "port-unreachable"}
    assert states == {"route-leads-nowhere": Status.FAIL, "neighbour-fixed-wrong": Status.WARN}

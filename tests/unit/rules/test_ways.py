"""The hosts that a host cannot reach: a few by name, many as a count, since each of thousands of hosts may
have some.
"""

import pytest

from doctor.facts.network import ROUTES
from doctor.job.plan import JobPlan, draft
from doctor.job.wishes import JobWishes
from doctor.mesh import MeshResult
from doctor.model import Capture, Host
from doctor.rules.ways import MANY, UnreachablePeers, lost_routes
from tests.support.recordings import mesh

HEAD = "/proc/net/route:Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
LOWER = "/proc/net/route:*\t0000000A\t00000000\t0005\t0\t0\t0\t80FFFFFF\t0\t0\t0\n"
"""10.0.0.0 to 10.0.0.127 are discarded."""


def plan(hosts: int) -> JobPlan:
    return draft([Host(f"n{n}", f"10.0.0.{n}", data=f"10.0.0.{n}") for n in range(1, hosts + 1)], JobWishes())


def lost(hosts: int, seen: MeshResult | None = None) -> UnreachablePeers:
    routes = ROUTES.parse(Capture("routes", 0, HEAD + LOWER))
    (peers,) = lost_routes("n1", routes, plan(hosts), seen).values()
    return peers


def test_few_are_named() -> None:
    peers = lost(5)
    assert (peers.number, str(peers)) == (4, "n[2-5]")
    assert [place.peer for place in peers.places("n1")] == ["n2", "n3", "n4", "n5"]


@pytest.mark.parametrize("hosts", [MANY + 1, 100, 200])
def test_many_are_counted(hosts: int) -> None:
    peers = lost(hosts)
    number = min(hosts, 127) - 1
    assert (peers.number, str(peers)) == (number, f"{number} other hosts")
    assert [(place.host, place.peer) for place in peers.places("n1")] == [("n1", None)]


def test_of_many_those_that_were_tried_are_named() -> None:
    """A connection that works takes another route, and one that was not tried cannot have failed."""
    names = [f"n{n}" for n in range(1, 6)]
    peers = lost(100, mesh(names, ("n1", "n2"), ("n2", "n1"), ("n1", "n4"), ("n4", "n1")))
    assert peers.number == 99 - 2
    assert peers.named == ("n2", "n4")


@pytest.mark.parametrize(
    ("rows", "works", "lost"),
    [
        (("eth0 0000000A 00FFFFFF", "ib0 0400000A FCFFFFFF"), "n4", []),
        (("eth0 0000000A 00FFFFFF", "br0 0400000A FCFFFFFF"), True, ["n5"]),
        (("eth0 0000000A 00FFFFFF", "br0 0400000A FCFFFFFF"), False, []),
        (("eth0 0000000A 00FFFFFF", "wide0 0000000A 0000FFFF"), True, []),
        (("eth0 0000000A 00FFFFFF",), True, []),
    ],
)
def test_a_network_of_another_interface_takes_a_peer(
    rows: tuple[str, ...], works: bool | str, lost: list[str]
) -> None:
    """A narrower one does, if other connections succeed by the interface of the wider one."""
    line = "/proc/net/route:{}\t{}\t00000000\t0001\t0\t0\t0\t{}\t0\t0\t0\n"
    routes = ROUTES.parse(Capture("routes", 0, HEAD + "".join(line.format(*row.split()) for row in rows)))
    failed = [("n1", "n5"), ("n5", "n1"), *([] if works else [("n1", "n2"), ("n2", "n1")])]
    found = lost_routes(
        "n1", routes, plan(6), mesh(["n1", "n2", *([works] if isinstance(works, str) else []), "n5"], *failed)
    )
    assert [peer for peers in found.values() for peer in peers.named] == lost
    assert [str(route) for route in found] == ["10.0.0.4/30 dev br0"] * len(lost)


def test_a_peer_without_a_known_address_is_on_no_route() -> None:
    """Its name is looked up on the hosts, so which route its packets take is unknown."""
    named = draft([Host("n1", "10.0.0.1", data="10.0.0.1"), Host("n2", "n2", data="n2-data")], JobWishes())
    routes = ROUTES.parse(Capture("routes", 0, HEAD))
    seen = mesh(["n1", "n2"], ("n1", "n2"), ("n2", "n1"))
    assert lost_routes("n1", routes, named, seen) == {}

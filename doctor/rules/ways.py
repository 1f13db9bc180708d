"""Whether a host has a way to another: what its own routes and neighbours decide about failed connections."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from doctor.api import JobPlan
from doctor.facts.network import Counters, Route, Routes
from doctor.mesh import Blame, Link, MeshResult
from doctor.mesh.result import Pairs


@dataclass(frozen=True, slots=True)
class WrongNeighbour:
    """An entry made by hand on `host`: `mac` is none of the cards of `peer`, whose address it is."""

    host: str
    peer: str
    address: str
    mac: str
    cards: tuple[str, ...]
    tried: bool


def lost_routes(
    host: str, routes: Routes, plan: JobPlan, mesh: MeshResult | None
) -> dict[Route | None, tuple[str, ...]]:
    """The routes of a host that lead nowhere, each with the hosts that are lost by it; None is "no route".

    Where a connection succeeded, another route takes it than those of the main table.
    """
    pairs = mesh.between if mesh else {}
    doubtful = {link.target for link in mesh.out_of.get(host, ()) if link.failed} if mesh else set()
    doubtful |= _thrown_away(host, routes, plan)
    lost: dict[Route | None, list[str]] = {}
    for peer in plan.holders.in_order(doubtful):
        address, tried = plan.data_address(peer), pairs.get(frozenset((host, peer)), ())
        if peer == host or address is None or ":" in address or any(not link.failed for link in tried):
            continue
        route = routes.route_to(address)
        if _leads_nowhere(route, [link for link in tried if link.source == host]):
            lost.setdefault(route, []).append(peer)
    return {route: tuple(peers) for route, peers in lost.items()}


def _thrown_away(host: str, routes: Routes, plan: JobPlan) -> set[str]:
    """The hosts whose packets a route throws away, whatever was tried."""
    if not any(route.kind for route in routes.routes):
        return set()
    found: set[str] = set()
    for stretch in plan.holders.stretches(4, routes.cuts):
        route = routes.route_to(str(plan.holders.address[stretch.first]))
        if route and route.kind:
            found.update(stretch.others(host))
    return found


def _leads_nowhere(route: Route | None, failed: Collection[Link]) -> bool:
    if route is None:
        return any("Network is unreachable" in link.detail for link in failed)
    return bool(route.kind) or any(route.gateway in link.unresolved for link in failed)


def wrong_neighbours(
    fixed: Mapping[str, Mapping[str, str]],
    links: Mapping[str, Mapping[str, Counters]],
    plan: JobPlan,
    pairs: Pairs,
) -> list[WrongNeighbour]:
    """Where a connection succeeded, a switch or router answers for that address, and nothing is wrong."""
    owners = {address: name for name in plan.names if (address := plan.data_address(name))}
    found = []
    for host, entries in fixed.items():
        for address in sorted(entries.keys() & owners.keys()):
            peer, mac = owners[address], entries[address]
            cards = {link.mac for name, link in links.get(peer, {}).items() if link.mac and name != "lo"}
            tried = pairs.get(frozenset((host, peer)), ())
            if peer != host and cards and mac not in cards and all(link.failed for link in tried):
                found.append(WrongNeighbour(host, peer, address, mac, tuple(sorted(cards)), bool(tried)))
    return found


def proved_blames(
    routes: Mapping[str, Routes],
    fixed: Mapping[str, Mapping[str, str]],
    links: Mapping[str, Mapping[str, Counters]],
    plan: JobPlan,
    mesh: MeshResult,
) -> list[Blame]:
    """The failed connections that the facts of one of the two hosts explain, by that host."""
    pairs = mesh.between
    guilty: dict[frozenset[str], str] = {}
    for host, own in routes.items():
        for peers in lost_routes(host, own, plan, mesh).values():
            guilty |= {frozenset((host, peer)): host for peer in peers}
    for wrong in wrong_neighbours(fixed, links, plan, pairs):
        guilty[frozenset((wrong.host, wrong.peer))] = wrong.host
    by_host: dict[str, list[Link]] = defaultdict(list)
    for pair, host in guilty.items():
        by_host[host] += pairs.get(pair, ())
    return [_blame(host, found) for host, found in by_host.items() if found]


def _blame(host: str, failed: Collection[Link]) -> Blame:
    out = sum(link.source == host for link in failed)
    return Blame(
        (host,),
        "both" if 0 < out < len(failed) else "outbound" if out else "inbound",
        tuple(dict.fromkeys(link.kind for link in failed)),
        tuple(failed),
        decided=True,
    )

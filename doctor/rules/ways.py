"""Whether a host has a way to another: what its own routes and neighbours decide about failed connections."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from doctor.api import JobPlan
from doctor.facts.network import Counters, Route, Routes
from doctor.mesh import Blame, Link, MeshResult

Pairs = Mapping[frozenset[str], Collection[Link]]
"""What was tried between two hosts, in either direction."""


@dataclass(frozen=True, slots=True)
class WrongNeighbour:
    """An entry made by hand on `host`: `mac` is none of the cards of `peer`, whose address it is."""

    host: str
    peer: str
    address: str
    mac: str
    cards: tuple[str, ...]
    tried: bool


def tried_pairs(mesh: MeshResult | None) -> Pairs:
    pairs: dict[frozenset[str], list[Link]] = defaultdict(list)
    for link in mesh.links if mesh else ():
        if link.tested:
            pairs[frozenset((link.source, link.target))].append(link)
    return pairs


def lost_routes(
    host: str, routes: Routes, plan: JobPlan, pairs: Pairs
) -> dict[Route | None, tuple[str, ...]]:
    """The routes of a host that lead nowhere, each with the hosts that are lost by it; None is "no route".

    Where a connection succeeded, another route takes it than those of the main table.
    """
    lost: dict[Route | None, tuple[str, ...]] = {}
    for peer in plan.names:
        address, tried = plan.data_address(peer), pairs.get(frozenset((host, peer)), ())
        if peer == host or address is None or ":" in address or any(not link.failed for link in tried):
            continue
        route = routes.route_to(address)
        if _leads_nowhere(route, [link for link in tried if link.source == host]):
            lost[route] = (*lost.get(route, ()), peer)
    return lost


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
    pairs = tried_pairs(mesh)
    guilty: dict[frozenset[str], str] = {}
    for host, own in routes.items():
        for peers in lost_routes(host, own, plan, pairs).values():
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

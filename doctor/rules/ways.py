"""Whether a host has a way to another: how routes, neighbours and firewalls explain failed connections."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

from doctor.api import GUESSES, JobPlan, Place, Stretch, fold, grouped
from doctor.facts.network import Counters, Route, Routes
from doctor.mesh import Link, MeshResult
from doctor.mesh.result import Pairs

MANY = 16
"""From this number on, other hosts are counted instead of named."""


@dataclass(frozen=True, slots=True)
class WrongNeighbour:
    """A manual entry on `host`: `mac` is not a network card of `peer`, although the address is `peer`'s."""

    host: str
    peer: str
    address: str
    mac: str
    cards: tuple[str, ...]
    tried: bool


@dataclass(frozen=True, slots=True)
class UnreachablePeers:
    """Other hosts that a host cannot reach. Thousands of hosts may have such a list, so it is shortened."""

    number: int
    named: tuple[str, ...]
    """All of them if they are few; if many, those that tried a connection with the host."""

    def __str__(self) -> str:
        return fold(self.named) if self.number < MANY else f"{self.number:,} other hosts"

    def places(self, host: str) -> tuple[Place, ...]:
        """The places whose failed connections this explains."""
        return tuple(Place(host=host, peer=peer) for peer in self.named) or (Place(host=host),)


def is_guessed(plan: JobPlan, host: str) -> bool:
    """Whether nobody chose the data address of the host."""
    data = plan.host(host).data
    return data is not None and data.source in GUESSES


def between(links: Collection[Link]) -> str:
    """ "node1 <-> node2", "node[1-3] -> node4" """
    sources, targets = ({link.source for link in links}, {link.target for link in links})
    if sources == targets and len(sources) == 2:
        return " <-> ".join(sorted(sources))
    return f"{fold(sources)} {'<->' if sources == targets else '->'} {fold(targets)}"


def peers_in(
    stretches: Collection[Stretch],
    host: str,
    plan: JobPlan,
    mesh: MeshResult | None,
    but: Set[str] = frozenset(),
) -> UnreachablePeers:
    """The hosts of these stretches, except those in `but`."""
    holders = plan.holders
    number = sum(map(len, stretches)) - sum(holders.within(each, stretches) for each in {*but, host})
    if number < MANY:
        known = {peer for stretch in stretches for peer in stretch.others(host)}
    else:
        known = {peer for peer in (mesh.met.get(host, ()) if mesh else ()) if holders.within(peer, stretches)}
    return UnreachablePeers(number, tuple(holders.in_order(known - but)))


def lost_routes(
    host: str, routes: Routes, plan: JobPlan, mesh: MeshResult | None
) -> dict[Route | None, UnreachablePeers]:
    """None means "no route". If a connection succeeded, it does not use these routes."""
    met, address = mesh.met.get(host, {}) if mesh else {}, plan.holders.address
    works = {peer for peer, tried in met.items() if any(not link.failed for link in tried)}
    ways = (routes.route_to(str(address[peer])) for peer in works & address.keys())
    used = {route.interface for route in ways if route}
    unanswered: dict[Route | None, list[str]] = defaultdict(list)
    for peer in plan.holders.in_order(peer for peer in met if peer not in works and peer in address):
        if address[peer].version == 4:
            route = routes.route_to(str(address[peer]))
            failed = [link for link in met[peer] if link.source == host]
            if _unanswered(route, failed) or (route and _is_taken(route, routes, address[peer], used)):
                unanswered[route].append(peer)
    lost = {route: UnreachablePeers(len(peers), tuple(peers)) for route, peers in unanswered.items()}
    for away, stretches in _discarding_routes(routes, plan).items():
        if (peers := peers_in(stretches, host, plan, mesh, works)).number:
            lost[away] = peers
    return lost


def _discarding_routes(routes: Routes, plan: JobPlan) -> dict[Route, list[Stretch]]:
    """Route -> the hosts whose packets it discards, whether or not a connection was tried."""
    stretches = plan.holders.stretches(4, routes.cuts) if any(r.kind for r in routes.routes) else ()
    ways = ((routes.route_to(str(plan.holders.address[each.first])), each) for each in stretches)
    return grouped((route, stretch) for route, stretch in ways if route and route.kind)


def _unanswered(route: Route | None, failed: Collection[Link]) -> bool:
    if route is None:
        return any("Network is unreachable" in link.detail for link in failed)
    return not route.kind and any(route.gateway in link.unresolved for link in failed)


def _is_taken(
    route: Route, routes: Routes, address: IPv4Address | IPv6Address, used: Collection[str | None]
) -> bool:
    """Whether a narrower network of an interface by which no connection succeeds takes the address out of the
    network by whose interface (one of those `used`) others do.
    """
    return not (route.gateway or route.kind or route.interface in used) and any(
        other.interface in used
        and address in other.target
        and 0 < other.target.prefixlen < route.target.prefixlen
        and not (other.gateway or other.kind)
        for other in routes.routes
    )


def wrong_neighbours(
    fixed: Mapping[str, Mapping[str, str]],
    links: Mapping[str, Mapping[str, Counters]],
    plan: JobPlan,
    pairs: Pairs,
) -> list[WrongNeighbour]:
    """If a connection succeeded, a switch or router answers for that address, and nothing is wrong."""
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

"""The way to other hosts: routes and rules that lead elsewhere, wrong neighbours, one MAC address twice."""

from collections.abc import Iterator, Mapping
from itertools import combinations
from shlex import quote

from doctor.api import (
    HERE,
    PLAN,
    Confidence,
    Damage,
    Evidence,
    Here,
    JobPlan,
    Place,
    Problem,
    Scope,
    Severity,
    Sphere,
    check,
    fold,
    grouped,
    maybe,
)
from doctor.facts.network import ADDRESSES, FIXED_NEIGHBOURS, LINKS, ROUTES, Counters, Route, Routes
from doctor.facts.routing import POLICY, Policy
from doctor.facts.run import MESH
from doctor.facts.system import MACHINE, Machine
from doctor.mesh import MeshResult
from doctor.rules.launch_names import remark
from doctor.rules.policy import Detour, detours, job_interface
from doctor.rules.ways import lost_routes, wrong_neighbours

NEAR = 32
"""So many hosts with one MAC address each of them is compared with, not with all of 10,000."""


@check(
    "route-leads-nowhere",
    ROUTES,
    PLAN,
    HERE,
    maybe(MESH),
    damage=Damage.BLOCKED,
    several_hosts=True,
    sphere=Sphere.NETWORK,
)
def route_leads_nowhere(
    routes: Routes, plan: JobPlan, here: Here, mesh: MeshResult | None
) -> Iterator[Problem]:
    """This host has no way to another host's data address.

    Why it matters: a blackhole, unreachable or prohibit route throws away what the job sends to other hosts,
    and the answers to what they send. Both directions fail, and from outside it cannot be seen which of the
    two hosts is the cause.

    How it is known: the routes of the main table. A route by a gateway leads nowhere if the gateway did not
    answer while a connection was tried, and a network of another interface (a bridge of Docker, a VPN) if it
    lies within the network of the job and connections succeed by the job's interface alone. If connections
    between the two hosts succeed, rules of policy routing take them (see rule-diverts-traffic), and nothing
    is wrong here.

    What to do: delete the route, or name a gateway that exists. Without any route, add one. Give the bridge
    other addresses (default-address-pools of Docker).
    """
    for route, peers in lost_routes(here.name, routes, plan, mesh).items():
        addresses = [held for peer in peers.named if (held := plan.data_address(peer))]
        example = addresses[0] if addresses else str(route.target) if route else ""
        yield Problem(
            _summary(route),
            expected="a route that reaches every host of the job",
            actual=f"{route or 'no route'}, for {peers}",
            subject=f"{here.name} -> {peers}",
            where=peers.places(here.name),
            confidence=Confidence.CERTAIN
            if mesh and not (route and not route.gateway and not route.kind)
            else Confidence.STRONG,
            evidence=(
                Evidence("/proc/net/route", f"{route or 'no route'}: {', '.join(addresses[:8]) or peers}"),
            ),
            commands=(
                f"ip route show match {quote(example)}",
                *((f"sudo ip route del {quote(str(route.target))}",) if route else ()),
                *(
                    (remark(NETWORK.format(route.interface)),)
                    if route and not (route.gateway or route.kind)
                    else ()
                ),
            ),
        )


NETWORK = "for good, give {} other addresses: of Docker, default-address-pools in daemon.json"


def _summary(route: Route | None) -> str:
    if route is None:
        return "it has no route to other hosts of the job"
    if route.kind:
        return f"its {route.kind} route throws away what it sends to other hosts of the job"
    if not route.gateway:
        return f"a network on {route.interface} holds the addresses of other hosts of the job"
    return f"its route to other hosts of the job is by {route.gateway}, which does not answer"


@check(
    "neighbour-fixed-wrong",
    FIXED_NEIGHBOURS,
    LINKS,
    PLAN,
    maybe(MESH),
    damage=Damage.BLOCKED,
    scope=Scope.CLUSTER,
    several_hosts=True,
    remedy="forget-neighbour",
    sphere=Sphere.NETWORK,
)
def neighbour_fixed_wrong(
    fixed: Mapping[str, Mapping[str, str]],
    links: Mapping[str, Mapping[str, Counters]],
    plan: JobPlan,
    mesh: MeshResult | None,
) -> Iterator[Problem]:
    """A host has a wrong permanent entry for the Ethernet address of another host.

    Why it matters: the kernel never asks again for a permanent neighbour. After a network card was changed,
    or after a typing mistake, packets go to a card that no host has, or to another host, and connections in
    both directions fail.

    How it is known: permanent entries of the neighbour table are compared with the cards of the host that has
    the address. If connections between the two hosts succeed, a switch or router answers for it, and nothing
    is wrong. If none was tried, this is a warning.

    What to do: delete the entry; the kernel then asks for the address by itself.
    """
    for wrong in wrong_neighbours(fixed, links, plan, mesh.between if mesh else {}):
        yield Problem(
            f"it has a wrong Ethernet address for {wrong.peer}",
            expected=f"{wrong.address} at {', '.join(wrong.cards[:4])}",
            actual=f"{wrong.address} at {wrong.mac}, permanently",
            hosts=(wrong.host,),
            subject=f"{wrong.host} -> {wrong.peer}",
            where=(Place(host=wrong.host, peer=wrong.peer),),
            severity=None if wrong.tried else Severity.WARN,
            evidence=(Evidence("/proc/net/arp", f"{wrong.address} is {wrong.mac}, permanent"),),
            values={"address": wrong.address},
        )


@check(
    "rule-diverts-traffic",
    POLICY,
    ADDRESSES,
    PLAN,
    HERE,
    maybe(MESH),
    several_hosts=True,
    sphere=Sphere.NETWORK,
    damage=Damage.BLOCKED,
)
def rule_diverts_traffic(
    policy: Policy,
    addresses: Mapping[str, tuple[str, ...]],
    plan: JobPlan,
    here: Here,
    mesh: MeshResult | None,
) -> Iterator[Problem]:
    """A rule of policy routing sends the job's packets to another interface, or throws them away.

    Why it matters: `ip route` shows the right way, and packets do not take it: rules (`ip rule`) come first,
    and their tables decide. Connections fail, or take a slow network that was not meant for them.

    How it is known: from the rules and their tables, for packets between the data addresses of two hosts.
    Rules for marked packets, single users or ports are left out, and so is a rule that leads to the interface
    of the data address, as hosts with several networks have them. It is a warning if connections succeed.

    What to do: delete the rule, or put the network of the job into its table.
    """
    interface = job_interface(addresses, plan.data_address(here.name))
    for detour in detours(here.name, policy, interface, plan, mesh):
        way, peers = detour.way, fold(detour.peers)
        yield Problem(
            _diverted(detour, interface),
            expected=f"packets to hosts of the job leave by {interface or 'the interface of its address'}",
            actual=f"{way}, for {peers}",
            subject=f"{here.name} -> {peers}",
            where=tuple(Place(host=here.name, peer=peer) for peer in detour.peers),
            severity=None
            if detour.sure and (detour.failed or (detour.failed is None and way.kind))
            else Severity.WARN,
            confidence=Confidence.CERTAIN if detour.sure and detour.failed else Confidence.STRONG,
            evidence=(
                Evidence("ip rule", way.rule.text),
                Evidence("ip route show table all", str(way.route)),
            ),
            commands=(_delete(way.rule.text),),
        )


def _delete(rule: str) -> str:
    """The command that deletes this rule, but no other rule with the same priority."""
    priority, _, words = rule.partition(":")
    return f"sudo ip rule del priority {' '.join(map(quote, (priority, *words.split())))}"


def _diverted(detour: Detour, interface: str | None) -> str:
    route = detour.way.route
    if detour.way.kind or route is None:
        return "a rule of policy routing throws away what it sends to other hosts of the job"
    if route.interface != interface:
        doubtful = ", and connections fail" if detour.failed and not detour.sure else ""
        ways = f"{route.interface}, not by {interface}{doubtful}"
        return f"a rule of policy routing sends the job's packets out by {ways}"
    how = "which does not answer" if detour.sure else "and connections fail"
    return f"a rule of policy routing sends the job's packets to {route.gateway}, {how}"


@check(
    "mac-address-twice",
    LINKS,
    ADDRESSES,
    ROUTES,
    PLAN,
    maybe(MACHINE),
    maybe(MESH),
    scope=Scope.CLUSTER,
    several_hosts=True,
    sphere=Sphere.NETWORK,
    damage=Damage.BLOCKED,
)
def mac_address_twice(
    links: Mapping[str, Mapping[str, Counters]],
    addresses: Mapping[str, Mapping[str, tuple[str, ...]]],
    routes: Mapping[str, Routes],
    plan: JobPlan,
    machines: Mapping[str, Machine],
    mesh: MeshResult | None,
) -> Iterator[Problem]:
    """Two hosts have the same MAC address on the job's network.

    Why it matters: the switch sends the packets for both to whichever of the two spoke last. Connections of
    both hosts, with each other and with the rest, stall and break at random. Virtual machines that were
    copied have the MAC address of the original.

    How it is known: from the interfaces with the data addresses, if these are on one network without a router
    between them. Containers of one machine that share an interface are left out. It is a warning if all
    connections of these hosts succeed.

    What to do: give one of them another MAC address; for a virtual machine, in its definition.
    """
    cards: dict[str, Counters] = {}
    for host, held in addresses.items():
        card = links.get(host, {}).get(job_interface(held, plan.data_address(host)) or "")
        if card is not None and card.mac.strip("0:"):
            cards[host] = card
    for mac, hosts in grouped((card.mac, host) for host, card in cards.items()).items():
        same: set[str] = set()
        for number, one in enumerate(hosts):
            for other in hosts[number + 1 : number + 1 + NEAR]:
                pair = (one, other)
                if same.issuperset(pair) or _is_shared(pair, machines, cards):
                    continue
                if _side_by_side(pair, routes, plan):
                    same.update(pair)
        if not same:
            continue
        named = tuple(host for host in hosts if host in same)
        tried = mesh.touching(named) if mesh else []
        works = bool(tried) and not any(link.failed for link in tried)
        pairs = combinations(named, 2) if len(named) <= NEAR else ()
        yield Problem(
            f"{len(named)} hosts have the same MAC address on the job's network",
            expected="a MAC address of its own for each host",
            actual=f"{mac} on {fold(named)}",
            hosts=named,
            subject=f"MAC address {mac}",
            where=tuple(Place(host=one, peer=other) for one, other in pairs),
            severity=Severity.WARN if works else None,
            evidence=(Evidence("/sys/class/net/*/address", f"{mac} on {fold(named)}"),),
            commands=("ip -br link", "# sudo ip link set dev INTERFACE address ANOTHER, on one of them"),
        )


def _side_by_side(pair: tuple[str, str], routes: Mapping[str, Routes], plan: JobPlan) -> bool:
    """Whether two hosts are on one network: no route to the other has a gateway."""
    ways = (
        routes[host].route_to(plan.data_address(peer) or "") if host in routes else None
        for host, peer in (pair, pair[::-1])
    )
    return all(way is not None and not way.gateway and not way.kind for way in ways)


def _is_shared(pair: tuple[str, str], machines: Mapping[str, Machine], cards: Mapping[str, Counters]) -> bool:
    """Whether two containers of one machine have one interface, or ipvlan interfaces over the same one."""
    (one, other), (first, second) = (machines.get(host) for host in pair), (cards[host] for host in pair)
    return one is not None and other is not None and one.boot == other.boot and first.lower == second.lower

"""The way to other hosts: routes that lead nowhere, and wrong permanent entries in the neighbour table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    maybe,
)
from doctor.facts.network import FIXED_NEIGHBOURS, LINKS, ROUTES, Counters, Route, Routes
from doctor.facts.run import MESH
from doctor.mesh import MeshResult
from doctor.rules.ways import lost_routes, wrong_neighbours


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
    answer while a connection was tried. If connections between the two hosts succeed, routes that are not
    read here (policy routing) take them, and nothing is wrong.

    What to do: delete the route, or name a gateway that exists. Without any route, add one.
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
            confidence=Confidence.CERTAIN if mesh else Confidence.STRONG,
            evidence=(
                Evidence("/proc/net/route", f"{route or 'no route'}: {', '.join(addresses[:8]) or peers}"),
            ),
            commands=(
                f"ip route show match {quote(example)}",
                *((f"sudo ip route del {quote(str(route.target))}",) if route else ()),
            ),
        )


def _summary(route: Route | None) -> str:
    if route is None:
        return "it has no route to other hosts of the job"
    if route.kind:
        return f"its {route.kind} route throws away what it sends to other hosts of the job"
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
            f"it was told a wrong Ethernet address of {wrong.peer}",
            expected=f"{wrong.address} at {', '.join(wrong.cards[:4])}",
            actual=f"{wrong.address} at {wrong.mac}, permanently",
            hosts=(wrong.host,),
            subject=f"{wrong.host} -> {wrong.peer}",
            where=(Place(host=wrong.host, peer=wrong.peer),),
            severity=None if wrong.tried else Severity.WARN,
            evidence=(Evidence("/proc/net/arp", f"{wrong.address} is {wrong.mac}, permanent"),),
            values={"address": wrong.address},
        )

"""Where rules of policy routing send what a host sends to the other hosts of the job."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from doctor.api import JobPlan
from doctor.facts.routing import Policy, TableWay
from doctor.mesh import MeshResult

MOST = 64
"""If there are more hosts, only those that tried to connect are looked at."""


@dataclass(frozen=True, slots=True)
class Detour:
    """`failed`: all connections with `peers` did; None if none was tried. Not `sure`: or another cause."""

    way: TableWay
    peers: tuple[str, ...]
    failed: bool | None
    sure: bool


def detours(
    host: str, policy: Policy, job: str | None, plan: JobPlan, mesh: MeshResult | None
) -> list[Detour]:
    """The rules that send packets out of a different interface from `job`, or lose them.

    A rule that discards packets does not affect the job if its connections succeed. A gateway on the way to a
    neighbour is at fault if it does not answer: the kernel then reports that there is no route. If the same
    way takes packets to one peer, it is not why another does not answer.
    """
    own = plan.data_address(host)
    if not policy.rules or own is None or ":" in own:
        return []
    met = mesh.met.get(host, {}) if mesh else {}
    found: dict[tuple[TableWay, bool | None, bool], list[str]] = defaultdict(list)
    for peer in plan.names if len(plan.names) <= MOST else met:
        address = plan.data_address(peer)
        if peer == host or address is None or ":" in address or (way := policy.way(own, address)) is None:
            continue
        tried = met.get(peer, ())
        failed = all(link.failed for link in tried) if tried else None
        route = way.route
        away = route is not None and not way.kind and job is not None and route.interface not in ("", job)
        around = bool(failed and route and route.gateway) and policy.is_near(address)
        unanswered = around and any(link.source == host and link.outcome == "no-route" for link in tried)
        lost = failed is not False and bool(way.kind or unanswered)
        if away or lost or around:
            found[way, failed, away or lost].append(peer)
    carry = {way for way, failed, _ in found if failed is False}
    return [
        Detour(way, tuple(some), failed, sure and not (failed and way in carry))
        for (way, failed, sure), some in found.items()
    ]


def job_interface(held: Mapping[str, Sequence[str]], address: str | None) -> str | None:
    """Hosts with BGP put the address on lo, which says nothing about the way."""
    return next((name for name, own in held.items() if address in own and name != "lo"), None)

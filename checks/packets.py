"""What connections between hosts carry, beyond the small packets of a handshake."""

from collections.abc import Iterator

from doctor.api import (
    PLAN,
    UNDECIDED,
    Confidence,
    Damage,
    Evidence,
    JobPlan,
    Place,
    Problem,
    Scope,
    Severity,
    Skip,
    Undecided,
    check,
)
from doctor.facts.run import MESH
from doctor.mesh import Link, MeshBlame, MeshResult, culprits
from doctor.model import MOST_PLACES
from doctor.rules.ways import between, is_guessed

SHOWN = 4
"""The most suspects for which the commands are shown."""


@check(
    "large-packets-lost",
    MESH,
    PLAN,
    scope=Scope.CLUSTER,
    several_hosts=True,
    remedy="find-lost-packets",
    causes=("mtu-mismatch", "firewall-blocks"),
    damage=Damage.BLOCKED,
)
def large_packets_lost(mesh: MeshResult, plan: JobPlan) -> Iterator[Problem]:
    """Connections between hosts are made, but packets of full size do not arrive.

    Why it matters: the job starts, every rank joins, and the first large collective never ends. SSH, ping and
    the start of a connection use small packets, so everything looks right by hand.

    How it is known: each connection between two hosts carried 64 KB, first one way and then the other. What
    was lost is tried again, alone and with more patience. The culprits are the fewest hosts that explain all
    losses; if two explanations are equally good, both hosts are named and the finding says undecided. Lost
    packets alone do not count: TCP sends them again, and the data arrive.

    Causes seen in practice: a switch port, a VLAN, a tunnel or an overlay network (VXLAN, WireGuard, IPsec)
    that passes smaller packets than the interfaces of the hosts send, while a firewall drops the ICMP
    messages that say so; an MTU of 9000 on hosts whose switch passes 1500; a packet filter with a rule about
    length.

    What to do: on the named host compare the MTU of the interface, its VLAN and its bridge with that of the
    switch port; let ICMP "fragmentation needed" and "packet too big" through; look for rules about length.
    `ping -M do -s SIZE` shows the largest packet that passes.
    """
    if not mesh.load or not any(link.outcome == "ok" and link.kind == "ephemeral" for link in mesh.links):
        raise Skip("no connection between hosts carried more than a handshake")
    for blame in culprits(mesh.ways) if any(link.lost for link in mesh.links) else ():
        yield _problem(blame, mesh, plan)
    if doubtful := not_carried(mesh):
        reasons = "; ".join(list(doubtful.values())[:SHOWN])
        raise Undecided(reasons, tuple(doubtful))


def not_carried(seen: MeshResult) -> dict[str, str]:
    """Host -> why, for hosts with a working connection that was not tried beyond its handshake."""
    tried = {(link.source, link.target) for link in seen.links if link.carried}
    tried |= {(link.target, link.source) for link in seen.links if link.carried in ("back", "both")}
    return {
        link.source: f"{link.source} -> {link.target}: not tried beyond the handshake"
        for link in seen.links
        if link.kind == "ephemeral" and link.outcome == "ok" and (link.source, link.target) not in tried
    }


def _problem(blame: MeshBlame, mesh: MeshResult, plan: JobPlan) -> Problem:
    decided = blame.decided or blame.common
    lost = {(way.source, way.target): way for way in sorted(blame.links, key=lambda way: bool(way.repeats))}
    touched = (way for way in mesh.ways if blame.common or {way.source, way.target} & {*blame.hosts})
    arrived = {(way.source, way.target) for way in touched if not way.failed} - lost.keys()
    guessed = all(is_guessed(plan, way.target) for way in blame.links)
    # The answer to a ping is as large as the ping, so it does not matter which of the two ends sends it.
    first = next((way for way in blame.links if blame.hosts[:1] == (way.source,)), blame.links[0])
    return Problem(
        _summary(blame),
        expected=f"{mesh.load // 1024} KB arrive, both ways between all hosts",
        actual=f"{len(lost)} of {len(lost) + len(arrived)} ways lost what they carried",
        hosts=blame.hosts,
        subject=between(blame.links),
        where=tuple(
            Place(host=way.target, port=way.port, peer=way.source) for way in blame.links[:MOST_PLACES]
        ),
        confidence=Confidence.CERTAIN if decided else Confidence.SUSPECT,
        severity=Severity.WARN if guessed else None,
        evidence=tuple(_evidence(way, mesh) for way in list(lost.values())[:8]),
        values={
            "host": blame.hosts[:SHOWN] or (first.source,),
            "from": first.source,
            "to": plan.data_address(first.target) or first.target,
        },
    )


def _summary(blame: MeshBlame) -> str:
    if blame.common:
        return "packets of full size are lost between nearly all hosts: the cause is common to them all"
    if blame.direction == "split":
        return "packets of full size are lost between these hosts and the rest, though connections are made"
    if not blame.decided:
        return f"packets of full size are lost between these hosts, though connections are made{UNDECIDED}"
    if blame.direction == "inbound":
        return "packets of full size do not reach it, though connections are made"
    if blame.direction == "outbound":
        return "packets of full size that it sends are lost, though connections are made"
    return "packets of full size from it and to it are lost, though connections are made"


def _evidence(way: Link, mesh: MeshResult) -> Evidence:
    again = f"; {way.repeats}" if way.repeats else ""
    return Evidence(
        f"{mesh.load // 1024} KB from {way.source}",
        f"{way.target}: connected, then lost on the way{again}",
    )

"""Which hosts try to reach which, and on which ports. Pure: no host is contacted.

Up to 32 hosts, every ordered pair is tried. Above that, each host tries those at ring distances 1, 2, 4, 8, …
in both directions, about 2·log2(N) hosts: enough to name a host that is cut off, at a cost that hardly grows.
"""

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Literal

from doctor.mesh.result import Kind, Listener, MeshShape, OmittedHost
from doctor.text.grouped import grouped

FULL_UP_TO = 32
Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class MeshNode:
    """A host that takes part. Agents identify each other by `number`, not by name."""

    number: int
    host: str
    address: str


@dataclass(frozen=True, slots=True)
class MeshPlan:
    """`pairs` are (source, target); in addition, every host connects to the head's master port."""

    shape: MeshShape
    nodes: tuple[MeshNode, ...]
    pairs: tuple[Pair, ...]
    head: str | None = None
    master_port: int | None = None
    hccl_port: int | None = None
    mccl_ports: Mapping[str, int] = field(default_factory=dict)
    """Host -> the port of its first rank."""
    left_out: tuple[OmittedHost, ...] = ()


@dataclass(frozen=True, slots=True)
class Attempt:
    """One connection to try."""

    source: str
    target: str
    address: str
    port: int
    kind: Kind


def plan_mesh(
    addresses: Mapping[str, str | None],
    *,
    shape: MeshShape | Literal["auto"] = "auto",
    head: str | None = None,
    master_port: int | None = None,
    hccl_port: int | None = None,
    mccl_ports: Mapping[str, int] | None = None,
) -> MeshPlan:
    """In rank order. A host without its own address is left out: its answer would prove nothing."""
    nodes, left_out = _nodes(addresses)
    names = [node.host for node in nodes]
    if shape == "auto":
        shape = "full" if len(names) <= FULL_UP_TO else "sparse"
    here = head if head in names else None
    return MeshPlan(
        shape=shape,
        nodes=nodes,
        pairs=tuple(pairs_of(names, shape)),
        head=here,
        master_port=master_port if here else None,
        hccl_port=hccl_port,
        mccl_ports=mccl_ports or {},
        left_out=left_out,
    )


def wanted_ports(plan: MeshPlan, node: MeshNode) -> tuple[tuple[Kind, int], ...]:
    """The ports for a host to listen on; job ports come first, so that none becomes an ephemeral one."""
    if plan.shape == "none" or len(plan.nodes) < 2:
        return ()
    wanted: dict[Kind, int | None] = {
        "master": plan.master_port if node.host == plan.head else None,
        "hccl": plan.hccl_port,
        "mccl": plan.mccl_ports.get(node.host),
        "ephemeral": 0,
    }
    first = {port: kind for kind, port in reversed(wanted.items())}
    return tuple((kind, port) for kind, port in wanted.items() if port is not None and first[port] == kind)


def attempts(
    plan: MeshPlan, pairs: Iterable[Pair], listeners: Iterable[Listener], *, master: bool = False
) -> tuple[Attempt, ...]:
    """The connections for these pairs. Only ports that our own agents bound are ever contacted."""
    address = {node.host: node.address for node in plan.nodes}
    bound = grouped((each.host, (each.kind, each.port)) for each in listeners if each.error is None)
    return tuple(
        Attempt(source, target, address[target], port, kind)
        for source, target in pairs
        for kind, port in bound.get(target, ())
        if port is not None and (kind == "master") is master
    )


def master_attempts(plan: MeshPlan, listeners: Iterable[Listener]) -> tuple[Attempt, ...]:
    """The connections of all hosts to the head's master port, if the head's agent could bind it."""
    head = plan.head or ""
    pairs = ((node.host, head) for node in plan.nodes if node.host != head)
    return attempts(plan, pairs, listeners, master=True)


def _nodes(addresses: Mapping[str, str | None]) -> tuple[tuple[MeshNode, ...], tuple[OmittedHost, ...]]:
    left_out: list[OmittedHost] = []
    sharers: dict[str, list[str]] = {}
    for host, text in addresses.items():
        if obstacle := _obstacle(text):
            left_out.append(OmittedHost(host, obstacle))
        else:
            sharers.setdefault(str(ipaddress.ip_address(text or "")), []).append(host)
    alone = {hosts[0]: address for address, hosts in sharers.items() if len(hosts) == 1}
    for address, hosts in sharers.items():
        for host in hosts if len(hosts) > 1 else ():
            others = ", ".join(h for h in hosts if h != host)
            left_out.append(OmittedHost(host, f"it shares the data address {address} with {others}"))
    taking_part = (host for host in addresses if host in alone)
    return tuple(MeshNode(n, host, alone[host]) for n, host in enumerate(taking_part)), tuple(left_out)


def _obstacle(text: str | None) -> str:
    """Why other hosts cannot connect to this data address; empty if they can."""
    if not text:
        return "no data address is known for it"
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return f"its data address {text!r} is not an IP address"
    if "%" in text:
        return f"its data address {text!r} has a scope: other hosts cannot dial it"
    if address.is_unspecified or address.is_multicast:
        return f"its data address {address} is not a host address"
    if address.version == 6 and address.is_link_local:
        return f"its data address {address} is link-local: other hosts cannot dial it"
    return ""


def pairs_of(names: Sequence[str], shape: MeshShape) -> Iterable[Pair]:
    """(source, target) of each connection to try."""
    if shape == "none":
        return ()
    if shape == "full":
        return permutations(names, 2)
    count = len(names)
    offsets = [2**n for n in range((count // 2).bit_length())] if shape == "sparse" else [1]
    steps = [step for offset in offsets for step in (offset, -offset)]
    pairs = ((name, names[(i + step) % count]) for i, name in enumerate(names) for step in steps)
    return dict.fromkeys(pair for pair in pairs if pair[0] != pair[1])

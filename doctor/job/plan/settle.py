"""The drafted plan with what only the hosts could tell: backend, ranks a host, data addresses, the head."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from doctor.job.plan.head import find_head
from doctor.job.plan.interfaces import VIRTUAL, is_loopback, matching_interfaces
from doctor.job.plan.job import JobPlan, PlannedHost, server_of
from doctor.model import Backend, Sourced

DEFAULT_CPU_RANKS = 2
MOST_DEVICES = 1024
VISIBLE = {Backend.HCCL: "ASCEND_RT_VISIBLE_DEVICES", Backend.NCCL: "CUDA_VISIBLE_DEVICES"}


@dataclass(frozen=True, slots=True)
class Sight:
    """What one host told that the plan depends on."""

    devices: Mapping[Backend, int] = field(default_factory=dict)
    plugged_in: frozenset[Backend] = frozenset()
    """Of whose devices there are some on the PCI bus, with or without a driver."""
    addresses: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Interface -> its addresses."""
    default_interface: str | None = None
    names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Name -> the addresses that this host resolves it to."""


def settle(plan: JobPlan, sights: Mapping[str, Sight]) -> JobPlan:
    """The same plan with what only the hosts could tell: backend, ranks a host, data addresses."""
    backend = plan.backend if plan.backend.source != "default" else _backend(sights)
    known = tuple(_known(host, plan, sights.get(host.name)) for host in plan.hosts)
    held = {
        name: ({a for own in sight.addresses.values() for a in own}, sight.names)
        for name, sight in sights.items()
    }
    hosts = tuple(
        replace(
            host,
            ranks=host.ranks or _ranks(host.name, plan, backend.value, sights),
            data=host.data or _data_address(host, plan, sights),
        )
        for host in known
    )
    return replace(
        plan, backend=backend, hosts=hosts, head=find_head(known, plan.master, plan.wished_head, held)
    )


def _known(host: PlannedHost, plan: JobPlan, sight: Sight | None) -> PlannedHost:
    """The host with its place in the rank table, which may call it by an address that only it knows."""
    server = host.server or (server_of(plan.servers, host, sight.addresses) if sight else None)
    if server is host.server or server is None:
        return host
    flagged = host.ranks and host.ranks.source.startswith("--")
    ranks = host.ranks if flagged or not server.entries else Sourced(len(server.entries), "rank table")
    return replace(host, server=server, ranks=ranks)


def _backend(sights: Mapping[str, Sight]) -> Sourced[Backend]:
    for backend in (Backend.HCCL, Backend.NCCL):
        if any(sight.devices.get(backend) for sight in sights.values()):
            return Sourced(backend, "devices found")
    if any(Backend.HCCL in sight.plugged_in for sight in sights.values()):
        return Sourced(Backend.HCCL, "on the PCI bus")
    return Sourced(Backend.GLOO, "no accelerator found" if sights else "default")


def _ranks(host: str, plan: JobPlan, backend: Backend, sights: Mapping[str, Sight]) -> Sourced[int]:
    """One for each device that the job may see; a host that did not answer is taken to be like the others."""
    if backend not in VISIBLE:
        return Sourced(DEFAULT_CPU_RANKS, "default")
    wanted = plan.env.get(VISIBLE[backend], "")
    most = len({word for word in wanted.split(",") if word.strip()}) or MOST_DEVICES
    counts = {name: min(sight.devices.get(backend, 0), most) for name, sight in sights.items()}
    if counts.get(host):
        return Sourced(counts[host], "devices found")
    others = Counter(count for count in counts.values() if count)
    if host not in sights and others:
        return Sourced(others.most_common(1)[0][0], "as the other hosts")
    return Sourced(DEFAULT_CPU_RANKS, "default")


def _data_address(host: PlannedHost, plan: JobPlan, sights: Mapping[str, Sight]) -> Sourced[str] | None:
    name, sight = host.name, sights.get(host.name)
    if sight is None:
        return None
    own = {address for addresses in sight.addresses.values() for address in addresses}
    wanted = plan.env.get("HCCL_IF_IP")
    if wanted and wanted in own:
        return Sourced(wanted, "HCCL_IF_IP")
    wish = plan.interface_wish()
    if wish:
        for interface in matching_interfaces(*wish, sight.addresses):
            for address in sight.addresses[interface]:
                return Sourced(address, wish[0])
    for said in (host.server.host_ip, host.server.id) if host.server else ():
        if said in own and not is_loopback(said):
            return Sourced(said, "rank table")
    resolved = Counter(
        address
        for peer, seen in sights.items()
        if peer != name
        for address in seen.names.get(name, ())[:1]
        if not is_loopback(address)
    )
    for address, _ in resolved.most_common():
        if address in own:
            return Sourced(address, "its name, as its peers resolve it")
    for given in (host.given, name):
        if given in own and not is_loopback(given):
            return Sourced(given, "the address given")
    for address in sight.addresses.get(sight.default_interface or "", ()):
        return Sourced(address, "default route")
    outward = [
        [a for a in addresses if not is_loopback(a) and not ipaddress.ip_address(a).is_link_local]
        for interface, addresses in sight.addresses.items()
        if not interface.startswith(VIRTUAL)
    ]
    reachable = [addresses[0] for addresses in outward if addresses]
    return Sourced(reachable[0], "only interface") if len(reachable) == 1 else None

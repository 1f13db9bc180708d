"""The drafted plan with what only the hosts could tell: backend, ranks a host, data addresses, the head."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from doctor.devices import VENDORS, Vendor
from doctor.job.plan.interfaces import VIRTUAL, is_loopback, matching_interfaces
from doctor.job.plan.job import MOST_RANKS, ON_BUS, JobPlan, PlannedHost, find_head, server_of
from doctor.model import Backend, Sourced

DEFAULT_CPU_RANKS = 2


@dataclass(frozen=True, slots=True)
class HostView:
    """What one host told that the plan depends on."""

    devices: Mapping[Vendor, int] = field(default_factory=dict)
    """Empty where they are not known."""
    plugged_in: Mapping[Vendor, int] = field(default_factory=dict)
    """How many there are on the PCI bus, with or without a driver."""
    screens: Mapping[Vendor, int] = field(default_factory=dict)
    """How many of them may only drive a screen."""
    addresses: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Interface -> its addresses."""
    default_interface: str | None = None
    names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Name -> the addresses that this host resolves it to."""


def settle(plan: JobPlan, sights: Mapping[str, HostView]) -> JobPlan:
    """The same plan with what only the hosts could tell: backend, ranks a host, data addresses."""
    vendor, why = _vendor(plan.backend, sights)
    backend = plan.backend
    if backend.source == "default":
        backend = Sourced(vendor.backend if vendor else Backend.GLOO, why)
    known = tuple(_known(host, plan, sights.get(host.name)) for host in plan.hosts)
    held = {
        name: ({a for own in sight.addresses.values() for a in own}, sight.names)
        for name, sight in sights.items()
    }
    hosts = tuple(
        replace(
            host,
            ranks=host.ranks or _ranks(host.name, plan, vendor, sights),
            data=host.data or _data_address(host, plan, sights),
        )
        for host in known
    )
    head = find_head(known, plan.master, plan.wished_head, held)
    return replace(plan, backend=backend, vendor=vendor, hosts=hosts, head=head)


def _known(host: PlannedHost, plan: JobPlan, sight: HostView | None) -> PlannedHost:
    """The host with its place in the rank table, which may call it by an address that only it knows."""
    server = host.server or (server_of(plan.servers, host, sight.addresses) if sight else None)
    if server is host.server or server is None:
        return host
    flagged = host.ranks and host.ranks.source.startswith("--")
    ranks = host.ranks if flagged or not server.entries else Sourced(len(server.entries), "rank table")
    return replace(host, server=server, ranks=ranks)


def _vendor(wished: Sourced[Backend], sights: Mapping[str, HostView]) -> tuple[Vendor | None, str]:
    """Whose devices the job uses, and where they were seen or that there are none."""
    vendors = [v for v in VENDORS if wished.source == "default" or v.backend is wished.value]
    for vendor in vendors:
        if any(sight.devices.get(vendor) for sight in sights.values()):
            return vendor, "devices found"
    plugged = {v: _plugged(v, sights) for v in vendors}
    most = max(plugged, key=plugged.__getitem__, default=None)
    if most and plugged[most]:
        return most, ON_BUS
    return None, "no accelerator found" if sights else "default"


def _plugged(vendor: Vendor, sights: Mapping[str, HostView]) -> int:
    """How many are on the bus. Those for a screen count only if most hosts have some."""
    counts = [sight.plugged_in.get(vendor, 0) for sight in sights.values()]
    if 2 * sum(count > 0 for count in counts) > len(counts):
        return sum(counts)
    return sum(counts) - sum(sight.screens.get(vendor, 0) for sight in sights.values())


def _ranks(host: str, plan: JobPlan, vendor: Vendor | None, sights: Mapping[str, HostView]) -> Sourced[int]:
    """One for each device that the job may see, or that could be seen if it had a driver. A host of which
    nothing is known is taken to be like the others.
    """
    if vendor is None:
        return Sourced(DEFAULT_CPU_RANKS, "default")
    wanted = ({word for word in plan.env.get(name, "").split(",") if word.strip()} for name in vendor.visible)
    most = min((len(words) for words in wanted if words), default=MOST_RANKS)
    counts = {
        name: min(sight.devices[vendor], most) for name, sight in sights.items() if vendor in sight.devices
    }
    if counts.get(host):
        return Sourced(counts[host], "devices found")
    others = Counter(count for count in counts.values() if count)
    if host not in counts and others:
        return Sourced(others.most_common(1)[0][0], "as the other hosts")
    plugged = min(sights[host].plugged_in.get(vendor, 0), most) if host in sights else 0
    return Sourced(plugged, ON_BUS) if plugged else Sourced(DEFAULT_CPU_RANKS, "default")


def _data_address(host: PlannedHost, plan: JobPlan, sights: Mapping[str, HostView]) -> Sourced[str] | None:
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

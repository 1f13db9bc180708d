"""Complete the drafted plan from the answers of the hosts: backend, ranks, data addresses, the head."""

import ipaddress
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from doctor.devices import VENDORS, Vendor
from doctor.job.framework import FOUND as FOUND_THERE
from doctor.job.framework import common_framework
from doctor.job.launch.launcher import LaunchNumber
from doctor.job.launch.process_env import Launch
from doctor.job.launch.rank_env import is_loopback_name, master_of
from doctor.job.plan.interfaces import INTERFACE_VARIABLES, VIRTUAL, is_loopback, matching_interfaces
from doctor.job.plan.job import (
    DEFAULT_RANKS,
    FOUND,
    LIKE_OTHERS,
    MOST_RANKS,
    NO_ACCELERATOR,
    OF_FLAG,
    ON_BUS,
    RUNNING,
    JobPlan,
    PlannedHost,
    ServersByName,
    find_head,
)
from doctor.job.plan.wanted import Wanted, wanted_devices
from doctor.job.wishes import THIS_NODE
from doctor.model import Backend, SourcedValue

DEFAULT = "default"
"""The source of a value that nobody gave."""
DEFAULT_CPU_RANKS = 2
MASTER_PORT = "MASTER_PORT"
BACKENDS = tuple(dict.fromkeys(vendor.backend for vendor in VENDORS))


@dataclass(frozen=True, slots=True)
class HostView:
    """The answers of one host that the plan depends on."""

    devices: Mapping[Vendor, int] = field(default_factory=dict)
    """Empty if they are unknown."""
    plugged_in: Mapping[Vendor, int] = field(default_factory=dict)
    """How many devices are on the PCI bus, with or without a driver."""
    screens: Mapping[Vendor, int] = field(default_factory=dict)
    """How many of them may only drive a screen."""
    addresses: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Interface -> its addresses."""
    default_interface: str | None = None
    frameworks: frozenset[str] = frozenset()
    """The packages of its interpreter."""
    names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Name -> the addresses that this host resolves it to."""
    env: Mapping[str, str] = field(default_factory=dict)
    """The variables that the job inherits there; empty if no job is examined."""
    built_for: SourcedValue[Backend] | None = None
    """The backend for which its software is built, and what shows that."""


def settle(plan: JobPlan, sights: Mapping[str, HostView], running: Sequence[Launch] = ()) -> JobPlan:
    """The plan, completed with what only the hosts know: backend, ranks per host, data addresses, and where
    the job meets if it is one of the `running` ones.
    """
    plan = replace(plan, **_port_of_logins(plan, sights), **_meeting(plan, running))
    vendor, why = _vendor(plan.backend, sights)
    backend, doubt = plan.backend, None
    if backend.source == DEFAULT:
        backend = SourcedValue(vendor.backend if vendor else Backend.GLOO, why)
    wanted = {each: _wanted(plan, sights, each) for each in BACKENDS}
    if backend.source == NO_ACCELERATOR:
        said = [(of, each) for of in BACKENDS for each in wanted[of].values()]
        of, most = max(said, key=lambda pair: pair[1].strength, default=(backend.value, None))
        if most is None or (most.value and not most.certain):
            doubt = _doubt(plan, sights) or (SourcedValue(of, f"{most.source} is set") if most else None)
        elif most.value:
            backend = SourcedValue(of, most.source)
    bare = backend.source in (NO_ACCELERATOR, ON_BUS)
    own = wanted.get(backend.value, {})
    given = {host: each for host, each in own.items() if each.value and (each.certain or not bare)}
    servers = ServersByName(plan.servers)
    known = tuple(_with_server(host, servers, sights.get(host.name)) for host in plan.hosts)
    held = {
        name: ({a for own in sight.addresses.values() for a in own}, sight.names)
        for name, sight in sights.items()
    }
    counts = _Counts(plan, vendor, sights)
    resolved = _addresses_by_peers(sights)
    hosts = tuple(
        replace(
            host,
            ranks=host.ranks or counts.ranks(sights.get(host.name)),
            data=host.data or _data_address(host, plan, sights.get(host.name), resolved.get(host.name)),
            devices=given.get(host.name),
        )
        for host in known
    )
    head = find_head(known, plan.master, plan.wished_head, held)
    return replace(
        plan, backend=backend, vendor=vendor, hosts=hosts, head=head, doubt=doubt, **_framework(plan, sights)
    )


def _framework(plan: JobPlan, sights: Mapping[str, HostView]) -> Mapping[str, Any]:
    """What no file says about the framework."""
    if plan.framework:
        return {}
    name, differ = common_framework({host: sight.frameworks for host, sight in sights.items()})
    return {"framework": SourcedValue(name, FOUND_THERE) if name else None, "frameworks_differ": differ}


def _port_of_logins(plan: JobPlan, sights: Mapping[str, HostView]) -> Mapping[str, Any]:
    """The port that the launch takes from the logins, if all of them have one."""
    said = {sights[name].env.get(MASTER_PORT, "") if name in sights else "" for name in plan.names}
    text = said.pop() if len(said) == 1 else ""
    if MASTER_PORT not in plan.inherited or plan.master_port.source.startswith("--m") or not text.isdecimal():
        return {}
    port = SourcedValue(int(text[:6]), f"{MASTER_PORT} of the logins")
    return {"master_port": port, "master_port_guessed": False} if 0 < port.value < 65536 else {}


def _meeting(plan: JobPlan, running: Sequence[Launch]) -> Mapping[str, Any]:
    """The rendezvous of the only job over several hosts that runs there, if no flag says where ranks meet."""
    if plan.master_port.source != DEFAULT or plan.master:
        return {}
    masters = [{each for told in job.told if (each := master_of(told)) is not None} for job in running]
    places = [{(each.address, each.port) for each in of} for of in masters]
    away = [of for of in places if of and not any(is_loopback_name(address) for address, _ in of)]
    if len(away) != 1 or len(ports := {port for _, port in away[0]}) != 1:
        return {}
    port = LaunchNumber("", ports.pop()).value
    if port is None or not 0 < port < 65536:
        return {}
    addresses = {address for address, _ in away[0]}
    master = SourcedValue(addresses.pop(), RUNNING) if len(addresses) == 1 else None
    return {"master_port": SourcedValue(port, RUNNING), "master_port_guessed": False, "master": master}


def _with_server(host: PlannedHost, servers: ServersByName, sight: HostView | None) -> PlannedHost:
    """The host with its place in the rank table, which may list it under an address that only it knows."""
    server = host.server or (servers.of(host, sight.addresses) if sight else None)
    if server is host.server or server is None:
        return host
    flagged = host.ranks and host.ranks.source.startswith("--")
    ranks = host.ranks if flagged or not server.entries else SourcedValue(len(server.entries), "rank table")
    return replace(host, server=server, ranks=ranks)


def _vendor(wished: SourcedValue[Backend], sights: Mapping[str, HostView]) -> tuple[Vendor | None, str]:
    """The vendor whose devices the job uses, and how they were found, or that none were."""
    vendors = [v for v in VENDORS if wished.source == "default" or v.backend is wished.value]
    for vendor in vendors:
        if any(sight.devices.get(vendor) for sight in sights.values()):
            return vendor, FOUND
    plugged = {v: _count_on_bus(v, sights) for v in vendors}
    most = max(plugged, key=plugged.__getitem__, default=None)
    if most and plugged[most]:
        return most, ON_BUS
    return None, NO_ACCELERATOR if sights else DEFAULT


def _wanted(plan: JobPlan, sights: Mapping[str, HostView], backend: Backend) -> Mapping[str, Wanted]:
    """Host -> how many devices the job is to have there, if something says so."""
    told, said = plan.allocated, {}
    for host, sight in sights.items():
        own = wanted_devices({**sight.env, **plan.env}, backend, plan.env)
        by_scheduler = wanted_devices(told, backend, told, here=host == told.get(THIS_NODE))
        said[host] = own if own and own.strength[0] else by_scheduler or own
    return {host: found for host, found in said.items() if found}


def _doubt(plan: JobPlan, sights: Mapping[str, HostView]) -> SourcedValue[Backend] | None:
    """Why the job may need devices although nothing says so."""
    built = next((sight.built_for for sight in sights.values() if sight.built_for), None)
    many = (each.ranks for each in plan.hosts if each.ranks and each.ranks.source == OF_FLAG)
    ranks = next((each.value for each in many if each.value > DEFAULT_CPU_RANKS), 0)
    return built or (SourcedValue(Backend.NCCL, f"{OF_FLAG} {ranks} is typed") if ranks else None)


def _count_on_bus(vendor: Vendor, sights: Mapping[str, HostView]) -> int:
    """How many devices are on the bus. Those that may drive a screen count only if most hosts have some."""
    counts = [sight.plugged_in.get(vendor, 0) for sight in sights.values()]
    if 2 * sum(count > 0 for count in counts) > len(counts):
        return sum(counts)
    return sum(counts) - sum(sight.screens.get(vendor, 0) for sight in sights.values())


class _Counts:
    """How many devices of the hosts the job may see."""

    def __init__(self, plan: JobPlan, vendor: Vendor | None, sights: Mapping[str, HostView]) -> None:
        self._vendor = vendor
        names = vendor.visible if vendor else ()
        wanted = ({word for word in plan.env.get(name, "").split(",") if word.strip()} for name in names)
        self._most = min((len(words) for words in wanted if words), default=MOST_RANKS)
        known = (sight.devices.get(vendor, 0) for sight in sights.values()) if vendor else iter(())
        others = Counter(min(count, self._most) for count in known if count).most_common(1)
        self._usual = others[0][0] if others else 0

    def ranks(self, sight: HostView | None) -> SourcedValue[int]:
        """One rank per device, or per device on the bus without a driver. An unknown host is assumed to be
        like the others.
        """
        if self._vendor is None:
            return SourcedValue(DEFAULT_CPU_RANKS, DEFAULT_RANKS)
        count = sight.devices.get(self._vendor) if sight else None
        if count:
            return SourcedValue(min(count, self._most), FOUND)
        if count is None and self._usual:
            return SourcedValue(self._usual, LIKE_OTHERS)
        plugged = min(sight.plugged_in.get(self._vendor, 0), self._most) if sight else 0
        return SourcedValue(plugged, ON_BUS) if plugged else SourcedValue(DEFAULT_CPU_RANKS, DEFAULT_RANKS)


def _addresses_by_peers(sights: Mapping[str, HostView]) -> Mapping[str, Counter[str]]:
    """Name of a host -> the addresses to which its peers resolve it, each with the number of peers."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for peer, seen in sights.items():
        for name, addresses in seen.names.items():
            if peer != name and addresses and not is_loopback(addresses[0]):
                found[name][addresses[0]] += 1
    return found


def _data_address(
    host: PlannedHost, plan: JobPlan, sight: HostView | None, resolved: Counter[str] | None
) -> SourcedValue[str] | None:
    if sight is None:
        return None
    own = {address for addresses in sight.addresses.values() for address in addresses}
    wanted = plan.env.get("HCCL_IF_IP")
    if wanted and wanted in own:
        return SourcedValue(wanted, "HCCL_IF_IP")
    wish = next(((name, plan.env[name]) for name in INTERFACE_VARIABLES if plan.env.get(name)), None)
    if wish:
        for interface in matching_interfaces(*wish, sight.addresses):
            for address in sight.addresses[interface]:
                return SourcedValue(address, wish[0])
    for said in (host.server.host_ip, host.server.id) if host.server else ():
        if said in own and not is_loopback(said):
            return SourcedValue(said, "rank table")
    for address, _ in resolved.most_common() if resolved else ():
        if address in own:
            return SourcedValue(address, "its name, as its peers resolve it")
    for given in (host.given, host.name):
        if given in own and not is_loopback(given):
            return SourcedValue(given, "the address given")
    for address in sight.addresses.get(sight.default_interface or "", ()):
        return SourcedValue(address, "default route")
    outward = [
        [a for a in addresses if not is_loopback(a) and not ipaddress.ip_address(a).is_link_local]
        for interface, addresses in sight.addresses.items()
        if not interface.startswith(VIRTUAL)
    ]
    reachable = [addresses[0] for addresses in outward if addresses]
    return SourcedValue(reachable[0], "only interface") if len(reachable) == 1 else None

"""The job that the cluster is examined for: who, how many, which ports, which addresses, and who said so.

A plan is drafted from what the person gave, before any host was asked, and settled once with what the hosts
say of themselves. Everything later reads the settled plan and nothing else.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from doctor.inventory import JobWishes
from doctor.model import Backend, Host, Sourced

DEFAULT_MASTER_PORT = 29500
DEFAULT_CPU_RANKS = 2
HCCL_BASE_PORT = 60000
HCCL_PORTS = 32
"""HCCL takes 32 ports from its base (16 in CANN 8.0)."""

INTERFACE_VARIABLES = ("HCCL_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME")
VIRTUAL = ("lo", "docker", "br-", "veth", "virbr", "cni", "cali", "flannel", "kube", "tunl", "lxc")
"""Beginnings of interface names that no other host can reach."""
GUESSES = ("default route", "only interface")
"""Sources of a data address that nobody chose: what rests on them alone is a warning."""


@dataclass(frozen=True, slots=True)
class PlannedHost:
    """One host of the job. `ranks` is None until the devices were counted; `given` is what SSH dials."""

    name: str
    given: str
    ranks: Sourced[int] | None
    data: Sourced[str] | None


@dataclass(frozen=True, slots=True)
class JobPlan:
    """Hosts are in rank order."""

    hosts: tuple[PlannedHost, ...]
    backend: Sourced[Backend]
    head: Sourced[str]
    master_port: Sourced[int]
    hccl_base_port: Sourced[int]
    env: Mapping[str, str]
    _by_name: Mapping[str, PlannedHost] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {host.name: host for host in self.hosts})

    @property
    def ranks(self) -> int:
        return sum(host.ranks.value for host in self.hosts if host.ranks)

    @property
    def several_hosts(self) -> bool:
        return len(self.hosts) > 1

    @property
    def hccl_ports(self) -> range:
        return range(self.hccl_base_port.value, self.hccl_base_port.value + HCCL_PORTS)

    def host(self, name: str) -> PlannedHost:
        return self._by_name[name]

    def ranks_on(self, name: str) -> int:
        ranks = self.host(name).ranks
        return ranks.value if ranks else 0

    def data_address(self, name: str) -> str | None:
        data = self.host(name).data
        return data.value if data else None

    def interface_wish(self) -> tuple[str, str] | None:
        """The variable that names the job's interface, and its value."""
        return next(((name, self.env[name]) for name in INTERFACE_VARIABLES if self.env.get(name)), None)


@dataclass(frozen=True, slots=True)
class Sight:
    """What one host told that the plan depends on."""

    devices: Mapping[Backend, int] = field(default_factory=dict)
    addresses: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Interface -> its addresses."""
    default_interface: str | None = None
    names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Name -> the addresses that this host resolves it to."""


def draft(hosts: Sequence[Host], wishes: JobWishes) -> JobPlan:
    """The plan as far as it can be known before the hosts were asked."""
    planned = tuple(
        PlannedHost(
            host.name,
            host.address,
            _said_ranks(host, wishes) or wishes.ranks_per_host,
            Sourced(host.data, "inventory") if host.data else None,
        )
        for host in hosts
    )
    base = wishes.env.get("HCCL_IF_BASE_PORT", "")
    return JobPlan(
        hosts=planned,
        backend=wishes.backend or Sourced(Backend.GLOO, "default"),
        head=wishes.head or Sourced(hosts[0].name, "first host"),
        master_port=wishes.master_port or Sourced(DEFAULT_MASTER_PORT, "default"),
        hccl_base_port=Sourced(int(base), "HCCL_IF_BASE_PORT")
        if re.fullmatch(r"[0-9]{4,5}", base) and 1024 <= int(base) <= 65520
        else Sourced(HCCL_BASE_PORT, "default"),
        env=wishes.env,
    )


def _said_ranks(host: Host, wishes: JobWishes) -> Sourced[int] | None:
    """What the hostfile or the inventory says: slots or ranks, else a rank for each device expected."""
    if host.ranks:
        return Sourced(host.ranks, "hosts file")
    devices = host.expected.get("devices") or wishes.expect.get("devices", "")
    return Sourced(int(devices), "devices expected") if re.fullmatch(r"0*[1-9][0-9]{0,5}", devices) else None


def settle(plan: JobPlan, sights: Mapping[str, Sight]) -> JobPlan:
    """The same plan with what only the hosts could tell: backend, ranks a host, data addresses."""
    backend = plan.backend if plan.backend.source != "default" else _backend(sights)
    hosts = tuple(
        replace(
            host,
            ranks=host.ranks or _ranks(sights.get(host.name), backend.value),
            data=host.data or _data_address(host, plan, sights),
        )
        for host in plan.hosts
    )
    return replace(plan, backend=backend, hosts=hosts)


def _backend(sights: Mapping[str, Sight]) -> Sourced[Backend]:
    for backend in (Backend.HCCL, Backend.NCCL):
        if any(sight.devices.get(backend) for sight in sights.values()):
            return Sourced(backend, "devices found")
    return Sourced(Backend.GLOO, "no accelerator found" if sights else "default")


def _ranks(sight: Sight | None, backend: Backend) -> Sourced[int]:
    devices = sight.devices.get(backend, 0) if sight else 0
    return Sourced(devices, "devices found") if devices else Sourced(DEFAULT_CPU_RANKS, "default")


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


def matching_interfaces(variable: str, wish: str, interfaces: Mapping[str, object]) -> list[str]:
    """Interfaces chosen by a *_SOCKET_IFNAME variable, in host order.

    HCCL and NCCL take prefixes, `=exact` and `^excluded`; gloo takes names as they are.
    """
    if variable.startswith("GLOO"):
        return [interface for interface in interfaces if interface in wish.split(",")]
    negated = wish.startswith("^")
    pattern = wish.removeprefix("^")
    exact = pattern.startswith("=")
    words = [word for word in pattern.removeprefix("=").split(",") if word]

    def named(interface: str) -> bool:
        return any(interface == word if exact else interface.startswith(word) for word in words)

    return [i for i in interfaces if named(i) != negated and not (negated and i == "lo")]


def is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False

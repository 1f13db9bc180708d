"""The plan itself: frozen values, each with its source; and the choice of the head."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from doctor.devices import Vendor
from doctor.job.launch.table_reference import TableReference
from doctor.job.needs import FolderNeed
from doctor.job.parallel import Layout
from doctor.job.plan.interfaces import is_loopback
from doctor.job.ranktable import Server
from doctor.model import Backend, Framework, SourcedValue
from doctor.text.addresses import Holders

HCCL_PORTS = 32
HCCL_PORTS_UP_TO_8_0 = 16
"""How many ports HCCL takes from its base: in the latest CANN, and in CANN up to 8.0."""
MCCL_PORT, MCCL_STEP = 8118, 256
"""The port of rank 0 of MindSpore's collectives on CPUs, and the distance to that of the next rank."""
GUESSES = ("default route", "only interface")
"""Sources of a data address that nobody chose: a fault that rests on them alone is a warning."""
ON_BUS = "on the PCI bus"
"""The source of a backend that was derived only from devices without a driver."""
NO_ACCELERATOR = "no accelerator found"
"""The source of the backend gloo if nobody named one, on hosts that show no device."""
FIRST_HOST = "first host"
EXAMINED = "on the examined hosts"
"""The source of the number of ranks if nothing says that the job is larger."""
MOST_RANKS = 1024
"""The most ranks of one host."""
DEFAULT_RANKS, FOUND, OF_FLAG, EXPECTED = "default", "devices found", "--ranks-per-host", "devices expected"
"""Sources of the number of ranks on a host that would be the same if it were examined alone."""
LIKE_OTHERS = "like the other hosts"
ASSUMED = (DEFAULT_RANKS, FOUND, EXPECTED, ON_BUS, LIKE_OTHERS)
"""Sources of the number of ranks on a host if nobody said how many the job has."""
RUNNING = "the running job"
"""The source of values that a running job was given: its launcher holds its port."""
Held = Mapping[str, tuple[set[str], Mapping[str, Sequence[str]]]]
"""Host -> its addresses, and the addresses to which it resolves names."""


@dataclass(frozen=True, slots=True)
class PlannedHost:
    """One host of the job. `ranks` is None until the devices are counted; `given` is what SSH dials."""

    name: str
    given: str
    ranks: SourcedValue[int] | None
    data: SourcedValue[str] | None
    server: Server | None = None
    """Its entry in the rank table."""
    devices: SourcedValue[int] | None = None
    """How many devices the job is to have there at least, if a container, launch or scheduler says so."""


@dataclass(frozen=True)
class JobPlan:
    """Hosts are in rank order. `master` is the rendezvous as the launch names it: a name or an address.

    Values over all hosts are computed once, because checks ask for them on each of thousands.
    """

    hosts: tuple[PlannedHost, ...]
    backend: SourcedValue[Backend]
    head: SourcedValue[str]
    master_port: SourcedValue[int]
    hccl_base_port: SourcedValue[int]
    env: Mapping[str, str]
    master: SourcedValue[str] | None = None
    layout: SourcedValue[Layout] | None = None
    wished_head: SourcedValue[str] | None = None
    servers: tuple[Server, ...] = ()
    """All servers of the rank table."""
    vendor: Vendor | None = None
    """The vendor of the devices that the job uses; None if no host shows any."""
    master_port_guessed: bool = False
    """Nobody is known to use this port: it is a default, or is only mentioned in the text of the launch."""
    master_port_drawn: bool = False
    """The launch draws its port at random, so nobody can keep it free beforehand."""
    launch: str = ""
    """What was understood of the launch, in words."""
    lines: Mapping[str, str] = field(default_factory=dict)
    """Variable -> the file and line of the launch that set it last."""
    unset: frozenset[str] = frozenset()
    """Variables of the login that the launch takes away."""
    inherited: frozenset[str] = frozenset()
    """Those that the launch takes from the login of each host."""
    told_tables: tuple[TableReference, ...] = ()
    """The rank tables that the launch names, or else the inventory."""
    table_paths: tuple[str, ...] = ()
    """The paths at which a rank table may be on the hosts; the one that the launch names comes first."""
    needed_paths: tuple[str, ...] = ()
    needs: tuple[FolderNeed, ...] = ()
    """The folders that a person says the job needs on every host."""
    listed: tuple[str, ...] = ()
    """The hosts that the launch names."""
    framework: SourcedValue[Framework] | None = None
    """What the job trains with; None as long as neither a file nor the hosts say so."""
    frameworks_differ: str = ""
    """Which hosts have which framework, if they have none in common and nothing says which one is meant."""
    said_world: SourcedValue[int] | None = None
    """The largest number of ranks that the launch, the rank table or --plan gives for the whole job."""
    allocated: Mapping[str, str] = field(default_factory=dict)
    """What the scheduler says about the devices of the job."""
    doubt: SourcedValue[Backend] | None = None
    """The backend that the job may be for, and why, if it is examined over gloo because nobody named one."""
    of_node: bool = False
    """The host is examined for whatever job may come, and not for one that stays inside it."""

    @cached_property
    def by_name(self) -> Mapping[str, PlannedHost]:
        return {host.name: host for host in self.hosts}

    @cached_property
    def ranks(self) -> int:
        return sum(host.ranks.value for host in self.hosts if host.ranks)

    @property
    def world(self) -> SourcedValue[int]:
        """The ranks of the whole job, which may have more hosts than are examined."""
        said = self.said_world
        return said if said and said.value > self.ranks else SourcedValue(self.ranks, EXAMINED)

    @cached_property
    def known_world(self) -> int:
        """The ranks that somebody said will start: a device that was found need not get one."""
        told = (host.ranks for host in self.hosts if host.ranks and host.ranks.source not in ASSUMED)
        return max(sum(ranks.value for ranks in told), self.said_world.value if self.said_world else 0)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(host.name for host in self.hosts)

    @property
    def several_hosts(self) -> bool:
        return len(self.hosts) > 1

    @property
    def master_port_held(self) -> bool:
        """Whether the job's own launcher holds its port."""
        return self.master_port.source.startswith(RUNNING)

    @property
    def hccl_ports(self) -> range:
        return range(self.hccl_base_port.value, self.hccl_base_port.value + HCCL_PORTS)

    @property
    def carrier(self) -> SourcedValue[str]:
        """What carries the collectives: of the backends for CPUs, gloo is torch's and mccl is MindSpore's."""
        trains = self.framework is not None and self.framework.value == "mindspore"
        mccl = trains and self.backend.value is Backend.GLOO
        return SourcedValue("mccl" if mccl else self.backend.value.value, self.backend.source)

    @cached_property
    def mccl_ports(self) -> Mapping[str, tuple[int, ...]]:
        """Host -> the ports that its ranks listen on if MindSpore trains on CPUs: one each, by the rank's
        number (measured with MindSpore 2.10, which steps over a port that is taken).
        """
        if self.carrier.value != "mccl":
            return {}
        ports: dict[str, tuple[int, ...]] = {}
        first = 0
        for host in self.hosts:
            own = range(first, first + self.ranks_on(host.name))
            ports[host.name] = tuple(port for rank in own if (port := MCCL_PORT + MCCL_STEP * rank) < 65536)
            first = own.stop
        return ports

    def host(self, name: str) -> PlannedHost:
        return self.by_name[name]

    def ranks_on(self, name: str) -> int:
        host = self.by_name.get(name)
        return host.ranks.value if host and host.ranks else 0

    @cached_property
    def holders(self) -> Holders:
        """The hosts that hold each data address."""
        return Holders({name: self.data_address(name) for name in self.names})

    @cached_property
    def fullest(self) -> int:
        """The most ranks that a host has."""
        return max((self.ranks_on(name) for name in self.names), default=0)

    @cached_property
    def counted_one_by_one(self) -> bool:
        """Whether each host would have as many ranks if it were examined alone."""
        known = {FOUND, OF_FLAG, EXPECTED, *([] if self.vendor else [DEFAULT_RANKS])}
        return all(host.ranks is None or host.ranks.source in known for host in self.hosts)

    @cached_property
    def most_on_a_host(self) -> int:
        """The most ranks on one host; 0 if their number is only a default."""
        known = (host.ranks.value for host in self.hosts if host.ranks and host.ranks.source != DEFAULT_RANKS)
        return max(known, default=0)

    def data_address(self, name: str) -> str | None:
        data = self.host(name).data
        return data.value if data else None

    @property
    def only_plugged_in(self) -> bool:
        """Whether the backend was derived only from devices on the PCI bus without a driver."""
        return self.backend.source == ON_BUS


class ServersByName:
    """The names of hosts in a rank table; the first server that matches counts."""

    def __init__(self, servers: Sequence[Server]) -> None:
        self.servers = servers
        self._place: dict[str, int] = {}
        for number, server in enumerate(servers):
            for name in filter(None, (server.id, server.host_ip)):
                self._place.setdefault(name, number)

    def of(self, host: PlannedHost, held: Mapping[str, Sequence[str]]) -> Server | None:
        """The server that has the host's name, an address given to it, or one of its own addresses."""
        names = {host.name, host.given, *((host.data.value,) if host.data else ())}
        own = (a for addresses in held.values() for a in addresses if not is_loopback(a))
        return self._first(names) or self._first(own)

    def _first(self, names: Iterable[str]) -> Server | None:
        places = [self._place[name] for name in names if name in self._place]
        return self.servers[min(places)] if places else None


def find_head(
    hosts: Sequence[PlannedHost], master: SourcedValue[str] | None, wish: SourcedValue[str] | None, held: Held
) -> SourcedValue[str]:
    """The host that the other ranks contact first.

    --launch overrides the rank table, which overrides the inventory's `head`, then its variables.
    """
    named = _host_of_master(hosts, master, held)
    told = named if master and master.source.startswith(("--", RUNNING)) else None
    first = next((h for h in hosts if h.server and any(e.rank == 0 for e in h.server.entries)), None)
    of_table = SourcedValue(first.name, "rank table") if first else None
    return told or of_table or wish or named or SourcedValue(hosts[0].name if hosts else "none", FIRST_HOST)


def _host_of_master(
    hosts: Sequence[PlannedHost], master: SourcedValue[str] | None, held: Held
) -> SourcedValue[str] | None:
    """The host that has this name or address, holds the address, or is what the name resolves to."""
    if master is None:
        return None
    for host in hosts:
        if master.value in {host.name, host.given, *((host.data.value,) if host.data else ())}:
            return SourcedValue(host.name, master.source)
    meant = {master.value, *(a for _, names in held.values() for a in names.get(master.value, ()))}
    meant = {address for address in meant if not is_loopback(address)}
    holders = [host for host, (own, _) in held.items() if own & meant]
    return SourcedValue(holders[0], master.source) if len(holders) == 1 else None

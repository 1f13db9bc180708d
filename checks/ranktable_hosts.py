"""Whether the entries of a rank table match the devices of the hosts."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from shlex import quote

from doctor.api import (
    PLAN,
    Backend,
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
    View,
    check,
    fold,
    grouped,
    is_loopback,
    maybe,
)
from doctor.facts.ascend.hccn_tool import PerDevice, SilentDevice
from doctor.facts.ascend.hccn_tool import devices as named
from doctor.facts.ascend.network import NPU_ADDRESSES, Address
from doctor.facts.ascend.npu_smi_card import NPU_SUPER_POD, SuperPodPlace
from doctor.facts.network import ADDRESSES
from doctor.facts.system import DEVICES, VIEW, Devices
from doctor.facts.tables import RANK_TABLE, JobTable
from doctor.job.plan import ServersByName
from doctor.job.ranktable import RankEntry, Server

IP = IPv4Address | IPv6Address
SHOWN = 4


@dataclass(frozen=True, slots=True)
class _Wrong:
    """What the table says about one device, and what the host shows."""

    entry: RankEntry
    expected: str
    actual: str


Words = tuple[str, str]
"""What is wrong, for one device and for several."""
ABSENT: Words = ("of the rank table is not there", "of the rank table are not there")
ADDRESS: Words = (
    "has a different address than the rank table says",
    "have other addresses than the rank table says",
)
SUPER_DEVICE: Words = (
    "has a different super_device_id than the rank table says",
    "have other super_device_ids than the rank table says",
)


@check(
    "rank-table-devices",
    RANK_TABLE,
    PLAN,
    DEVICES,
    maybe(ADDRESSES),
    maybe(NPU_ADDRESSES),
    maybe(NPU_SUPER_POD),
    maybe(VIEW),
    damage=Damage.BLOCKED,
    scope=Scope.CLUSTER,
    causes=("device-missing", "device-ip-missing", "device-ip-not-applied"),
    backends=(Backend.HCCL,),
)
def rank_table_devices(
    seen: JobTable,
    plan: JobPlan,
    devices: Mapping[str, Devices],
    addresses: Mapping[str, Mapping[str, tuple[str, ...]]],
    npus: Mapping[str, PerDevice[Address | None]],
    pods: Mapping[str, Mapping[int, SuperPodPlace]],
    views: Mapping[str, View],
) -> Iterator[Problem]:
    """A device or address in the rank table is not what the host has.

    Why it matters: every rank connects to the addresses of the table. An address that belongs to no device,
    or to another, ends in a timeout on all ranks (EI0006), or in EJ0004 on the rank of the entry.

    How it is known: a host is found in the table by its name, its addresses or those of its NPUs. If none of
    the hosts is found, and the table shows such addresses, it is that of another cluster. In a container,
    which may not show the addresses of its host, only those of NPUs count.

    What to do: `doctor ranktable make` writes a new table from the live devices; or give the device the
    address that the table has.
    """
    table = seen.table
    if table is None:
        raise Undecided("the table cannot be read")
    if table.form == "2.0":
        raise Skip("a table of form 2.0 does not say which host a rank is on")
    visible = {host: held for host, held in addresses.items() if views.get(host) == View.HOST}
    servers, doubts = _placed(table.servers, plan, devices, addresses, npus, visible)
    present: dict[str, set[int]] = {}
    for host, server in servers.items():
        present.setdefault(server.id, set()).update(devices[host].npus)
    form = {"1.2": " --format 1.2", "board-id": " --format legacy"}.get(table.form, "")
    again = (f"doctor ranktable make {quote(fold(plan.names))}{form} --output {quote(seen.path)}",)
    if devices and not servers and not doubts:
        yield _of_another_cluster(seen, table.servers, plan, addresses, npus, again)
        return
    for host in devices:
        if host in doubts:
            continue
        if host not in servers:
            yield _no_entry(seen.path, table.servers, host, again)
            continue
        server = servers[host]
        there = present[server.id]
        # Containers of one server share its devices: one that did not answer may have the others.
        if len(devices) < len(plan.hosts) > len(table.servers) and not there.issuperset(server.devices):
            doubts[host] = "a host that did not answer may have the other devices of the same server"
            there = there | set(server.devices)
        wrong = _wrong(server, devices[host], there, npus.get(host, {}), pods.get(host, {}))
        for words, found in grouped(wrong).items():
            yield _contradicted(seen.path, server, host, words, found, again)
        silent = _unread(server, npus.get(host))
        if silent:
            doubts.setdefault(host, f"addresses of its NPUs are not known: {silent}")
    left = [server.id for server in table.servers if server.id not in present]
    if left and len(devices) == len(plan.hosts) and not doubts.keys() - servers.keys():
        yield Problem(
            f"the rank table has servers that are not among the examined hosts: {', '.join(left[:6])}",
            expected="the servers of the table are the hosts of the job",
            actual=f"{len(left)} of {len(table.servers)} are not: a job without them needs another table",
            subject=seen.path,
            severity=Severity.WARN,
            evidence=(Evidence(seen.path, ", ".join(left[:20])),),
            commands=again,
        )
    if doubts:
        raise Undecided("; ".join(list(dict.fromkeys(doubts.values()))[:3]), tuple(doubts))


def _no_entry(path: str, servers: Sequence[Server], host: str, commands: tuple[str, ...]) -> Problem:
    return Problem(
        "the rank table has no entry for this host",
        expected="a server_id that is its name or an address of it, or the addresses of its NPUs",
        actual=f"there are {', '.join(server.id for server in servers[:6])}",
        subject=path,
        hosts=(host,),
        evidence=(Evidence(path, f"{len(servers)} servers"),),
        commands=commands,
    )


def _contradicted(
    path: str, server: Server, host: str, words: Words, found: Sequence[_Wrong], commands: tuple[str, ...]
) -> Problem:
    """The problem of statements of the table about a host that are wrong in the same way."""
    entries = [each.entry for each in found]
    numbers = named([e.device for e in entries if e.device is not None])
    ranks = [e.rank for e in entries if e.rank is not None]
    return Problem(
        f"{numbers} {words[len(found) > 1]}",
        expected=", ".join(dict.fromkeys(each.expected for each in found[:SHOWN])),
        actual=", ".join(dict.fromkeys(each.actual for each in found[:SHOWN])),
        subject=named(ranks, "rank") if ranks else path,
        hosts=(host,),
        where=tuple(Place(host=host, rank=e.rank, device=e.device) for e in entries),
        evidence=tuple(
            Evidence(f"{path}:{each.entry.spot.line}", f"server_id {server.id}: {each.expected}")
            for each in found[:SHOWN]
        ),
        commands=commands,
    )


def _placed(
    servers: Sequence[Server],
    plan: JobPlan,
    hosts: Iterable[str],
    addresses: Mapping[str, Mapping[str, tuple[str, ...]]],
    npus: Mapping[str, PerDevice[Address | None]],
    visible: Collection[str],
) -> tuple[dict[str, Server], dict[str, str]]:
    """The server of each host in the table, and the reasons for hosts whose server is not known; a host in
    neither is not in the table. `visible` hosts show all their addresses.

    HCCL accepts any text as a server_id, so a server may be known only by the addresses of its devices. If no
    host is found, the names of the table may be of that kind, unless they are addresses.
    """
    owners = {ip_address(e.address): server for server in servers for e in server.entries if e.address}
    names = ServersByName(servers)
    found: dict[str, Server] = {}
    missed: list[str] = []
    by_name = False
    for host in hosts:
        named = names.of(plan.host(host), addresses.get(host, {}))
        server = named or _by_devices(owners, _live_addresses(npus.get(host, {})))
        by_name = by_name or named is not None
        if server:
            found[host] = server
        else:
            missed.append(host)
    known = {server.id for server in found.values()}
    rest = {_shows(server) for server in servers if server.id not in known}
    doubts = {
        host: "neither a server_id nor a device_ip says which server of the table it is"
        for host in missed
        if not _is_none_of(
            rest,
            host in (addresses if by_name else visible if not known else ()),
            _live_addresses(npus.get(host, {})),
        )
    }
    if len(servers) == len(plan.hosts) == len(missed) == 1:
        told = _live_addresses(npus.get(missed[0], {}))
        if not (told and _shows(servers[0])[1]):  # no device contradicts: it can only be that one
            return dict.fromkeys(missed, servers[0]), {}
    return found, doubts


def _of_another_cluster(
    seen: JobTable,
    servers: Sequence[Server],
    plan: JobPlan,
    addresses: Mapping[str, Mapping[str, tuple[str, ...]]],
    npus: Mapping[str, PerDevice[Address | None]],
    commands: tuple[str, ...],
) -> Problem:
    listed = [entry.address for server in servers for entry in server.entries if entry.address]
    own = [a for held in addresses.values() for some in held.values() for a in some if not is_loopback(a)]
    live = [str(ip) for known in npus.values() for ip in _live_addresses(known).values()]
    return Problem(
        "the rank table is that of another cluster: none of its servers is among these hosts",
        expected=f"the servers {fold(plan.names)}",
        actual=f"there are {', '.join(server.id for server in servers[:6])}",
        subject=seen.path,
        confidence=Confidence.CERTAIN if listed and live else Confidence.STRONG,
        evidence=(
            Evidence(seen.path, f"device_ip {', '.join(listed[:SHOWN])}" if listed else "no device_ip"),
            Evidence("addresses of the hosts", ", ".join(own[:SHOWN]) or "not known"),
            Evidence("addresses of their NPUs", ", ".join(live[:SHOWN]) or "not known"),
        ),
        commands=commands,
    )


def _by_devices(owners: Mapping[IP, Server], told: Mapping[int, IP]) -> Server | None:
    """The server with most of the addresses of the host's devices: one of them may be wrong."""
    votes = Counter(owners[ip].id for ip in told.values() if ip in owners)
    for ip in told.values():
        server = owners.get(ip)
        if server:
            both = sum(1 for e in server.entries if e.address and e.device in told)
            if 2 * votes[server.id] > both:
                return server
    return None


def _shows(server: Server) -> tuple[bool, bool]:
    """Whether the table has an address of the host, and addresses of its devices."""
    return _is_ip(server.host_ip or server.id), any(entry.address for entry in server.entries)


def _is_none_of(shown: Iterable[tuple[bool, bool]], names_are_known: bool, told: Mapping[int, IP]) -> bool:
    """Whether a host that was not found is certainly not one of the servers that show this."""
    return all((names_are_known and host) or (told and devices) for host, devices in shown)


def _live_addresses(npus: PerDevice[Address | None]) -> dict[int, IP]:
    return {number: ip_address(live.ip) for number, live in npus.items() if isinstance(live, Address)}


def _is_ip(text: str) -> bool:
    try:
        return bool(ip_address(text))
    except ValueError:
        return False


def _wrong(
    server: Server,
    devices: Devices,
    present: Set[int],
    npus: PerDevice[Address | None],
    pods: Mapping[int, SuperPodPlace],
) -> Iterator[tuple[Words, _Wrong]]:
    """Wrong statements of the table about this host, each with its kind.

    `present` are the devices of all hosts of the server: containers may share them.
    """
    for entry in server.entries:
        number = entry.device
        if number is None:
            continue
        live, pod = npus.get(number), pods.get(number)
        if number not in present:
            there = ", ".join(map(str, devices.npus)) or "no NPU"
            yield ABSENT, _Wrong(entry, f"device {number}", f"the host has {there}")
        elif entry.address and isinstance(live, Address) and ip_address(live.ip) != ip_address(entry.address):
            yield ADDRESS, _Wrong(entry, f"device_ip {entry.address}", live.ip)
        elif entry.super_device is not None and pod and pod.device_id != entry.super_device:
            yield (
                SUPER_DEVICE,
                _Wrong(entry, f"super_device_id {entry.super_device}", f"SDID {pod.device_id}"),
            )


def _unread(server: Server, npus: PerDevice[Address | None] | None) -> str:
    """Why an address of the table could not be compared; device-ip-missing reports missing ones."""
    for entry in server.entries:
        if entry.address and entry.device is not None:
            if npus is None:
                return "device-ip-missing says why"
            live = npus.get(entry.device)
            if isinstance(live, SilentDevice):
                return f"device {entry.device}: {live.reason}"
    return ""

"""Rules about the addresses and ports of devices."""

from collections import Counter
from collections.abc import Iterator
from ipaddress import IPv4Address, ip_address

from doctor.job.ranktable.case import TableRule, TableRules, repeats
from doctor.job.ranktable.flaws import UnplacedFlaw
from doctor.job.ranktable.model import RankEntry
from doctor.model import Severity
from doctor.text.grouped import grouped
from doctor.text.textfile import shown

LAST_PORT = 65535
LAST_SYSTEM_PORT = 1023


def repeated_addresses(case: TableRules) -> Iterator[UnplacedFlaw]:
    """Addresses used twice. In form 2.0 the ranks of one server may share a network card of the host."""
    shared = case.table.form == "2.0"
    first: dict[str, RankEntry] = {}
    for entry in case.table.in_file_order():
        key = "addr" if shared else "device_ip"
        for text in dict.fromkeys((*entry.addresses, *entry.eids)):
            fabric = text in entry.eids
            other = first.setdefault(text if fabric else str(ip_address(text)), entry)
            if other is entry or (shared and not fabric and other.server == entry.server):
                continue
            actual = f"{shown(text)} again, first on line {other.spot.line}"
            yield case.flaw(entry, key, "an address is given to two devices", "each address once", actual)


def ipv4(entry: RankEntry) -> IPv4Address | None:
    address = ip_address(entry.address) if entry.address is not None else None
    return address if isinstance(address, IPv4Address) else None


def mixed_families(case: TableRules) -> Iterator[UnplacedFlaw]:
    if case.table.form == "2.0":
        return
    families = {
        entry.spot: ip_address(entry.address).version
        for entry in case.table.in_file_order()
        if entry.address is not None
    }
    common = Counter(families.values()).most_common(2)
    if len(common) < 2:
        return
    told: set[str] = set()
    for entry in case.table.in_file_order():
        if families.get(entry.spot, common[0][0]) != common[0][0] and entry.server not in told:
            told.add(entry.server)
            message = "device addresses of both IPv4 and IPv6"
            expected = f"IPv{common[0][0]}, as on {common[0][1]} of {len(families)} ranks"
            yield case.flaw(entry, "device_ip", message, expected)


def impossible_addresses(case: TableRules) -> Iterator[UnplacedFlaw]:
    """Addresses that the card of another rank never has; tools print 0.0.0.0 if there is no address."""
    backups = ((entry, "backup_device_ip", entry.backup) for entry in case.table.in_file_order())
    own = "addr" if case.table.form == "2.0" else "device_ip"
    given = ((entry, own, text) for entry in case.table.in_file_order() for text in entry.addresses)
    kinds = grouped(
        ((key, kind), (entry, text))
        for entry, key, text in (*given, *backups)
        if text is not None and (kind := _kind(text))
    )
    for (key, kind), found in kinds.items():
        (entry, text), more = found[0], len(found) - 1
        message = f"{key} is {kind}" + (f" (and {more:,} more like it)" if more else "")
        yield case.flaw(entry, key, message, "the address of one device", shown(text))


def _kind(text: str) -> str:
    """What kind of address it is, if it cannot belong to one device; else ""."""
    address = ip_address(text)
    if address.is_unspecified:
        return "no address at all"
    if address.is_loopback:
        return "a loopback address, which no other device reaches"
    if address.is_multicast or address == IPv4Address("255.255.255.255"):
        return "a multicast or broadcast address"
    return ""


def wrong_ports(case: TableRules) -> Iterator[UnplacedFlaw]:
    system: list[tuple[RankEntry, str]] = []
    for entry in case.table.in_file_order():
        for name, port in entry.ports.items():
            if not 0 < port <= LAST_PORT:
                yield case.flaw(entry, name, f"{name} is not a valid port", f"1 to {LAST_PORT}", str(port))
            elif port <= LAST_SYSTEM_PORT:
                system.append((entry, name))
    if system:
        entry, name = system[0]
        more = f" (and {len(system) - 1:,} more)" if len(system) > 1 else ""
        message = f"{name}{more} is reserved for the system"
        yield case.flaw(entry, name, message, f"{LAST_SYSTEM_PORT + 1} or above", severity=Severity.WARN)


def repeated_host_ports(case: TableRules) -> Iterator[UnplacedFlaw]:
    if case.table.form == "2.0":
        return
    same = repeats(case.table.in_file_order(), lambda e: (e.server or None, e.ports.get("host_port")))
    for entry, other in same:
        message = "two devices of a server have the same host_port"
        actual = f"{entry.ports['host_port']} again, first on line {other.spot.line}"
        yield case.flaw(entry, "host_port", message, "a port of its own for each device", actual)


def useless_backups(case: TableRules) -> Iterator[UnplacedFlaw]:
    """Useless backups, which matter only if operators are retried over another card (off by default)."""
    owners = {(entry.server, entry.address): entry for entry in case.table.in_file_order() if entry.address}
    for entry in case.table.in_file_order():
        owner = owners.get((entry.server, entry.backup or ""))
        if owner is None:
            continue
        if owner is entry:
            message = "backup_device_ip is the device's own address"
            expected = "the address of the other die of the card"
            yield case.flaw(entry, "backup_device_ip", message, expected, severity=Severity.WARN)
        elif (port := entry.ports.get("backup_device_port")) is not None and port == owner.ports.get(
            "device_port"
        ):
            message = "backup_device_port is also the device_port of that card"
            expected = f"a port other than {port}"
            yield case.flaw(entry, "backup_device_port", message, expected, severity=Severity.WARN)


ADDRESS_RULES: tuple[TableRule, ...] = (
    repeated_addresses,
    mixed_families,
    impossible_addresses,
    wrong_ports,
    repeated_host_ports,
    useless_backups,
)

"""Rules about the addresses and ports of devices."""

from collections import Counter
from collections.abc import Iterator
from ipaddress import IPv4Address, ip_address

from doctor.job.ranktable.case import TableRule, TableRules, repeats
from doctor.job.ranktable.flaws import UnplacedFlaw, said
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
            told = said("address twice", address=shown(text), line=other.spot.line)
            yield case.flaw(entry, key, *told)


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
            usual, number = common[0]
            values = {"usual": usual, "number": number, "ranks": len(families)}
            yield case.flaw(entry, "device_ip", *said("mixed families", **values))


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
        kind += f" (and {more:,} more like it)" if more else ""
        yield case.flaw(entry, key, *said("no address of a device", key=key, kind=kind, address=shown(text)))


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
                yield case.flaw(entry, name, *said("no port", name=name, port=port, last=LAST_PORT))
            elif port <= LAST_SYSTEM_PORT:
                system.append((entry, name))
    if system:
        entry, name = system[0]
        more = f" (and {len(system) - 1:,} more)" if len(system) > 1 else ""
        told = said("system port", name=name, more=more, first=LAST_SYSTEM_PORT + 1)
        yield case.flaw(entry, name, *told, severity=Severity.WARN)


def repeated_host_ports(case: TableRules) -> Iterator[UnplacedFlaw]:
    if case.table.form == "2.0":
        return
    same = repeats(case.table.in_file_order(), lambda e: (e.server or None, e.ports.get("host_port")))
    for entry, other in same:
        told = said("host_port twice", port=entry.ports["host_port"], line=other.spot.line)
        yield case.flaw(entry, "host_port", *told)


def useless_backups(case: TableRules) -> Iterator[UnplacedFlaw]:
    """Useless backups, which matter only if operators are retried over another card (off by default)."""
    owners = {(entry.server, entry.address): entry for entry in case.table.in_file_order() if entry.address}
    for entry in case.table.in_file_order():
        owner = owners.get((entry.server, entry.backup or ""))
        if owner is None:
            continue
        if owner is entry:
            yield case.flaw(entry, "backup_device_ip", *said("own backup"), severity=Severity.WARN)
        elif (port := entry.ports.get("backup_device_port")) is not None and port == owner.ports.get(
            "device_port"
        ):
            told = said("port of a backup", port=port)
            yield case.flaw(entry, "backup_device_port", *told, severity=Severity.WARN)


ADDRESS_RULES: tuple[TableRule, ...] = (
    repeated_addresses,
    mixed_families,
    impossible_addresses,
    wrong_ports,
    repeated_host_ports,
    useless_backups,
)

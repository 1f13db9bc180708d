"""What each product requires of the number and choice of devices, and of their addresses.

Rails of Atlas training servers are devices that must share a network segment. A table has no netmasks. With
the right netmask, the addresses of one rail are in one segment, and those of two rails in different ones: an
address is wrong if no netmask makes that true.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, ip_network

from doctor.job.ranktable.addresses import ipv4
from doctor.job.ranktable.case import TableRules, folded
from doctor.job.ranktable.flaws import UnplacedFlaw, said
from doctor.job.ranktable.model import Form, RankEntry, RankTable, Server, board_architecture
from doctor.model import Severity
from doctor.text.grouped import grouped

RAILS = 4
"""Devices 0 and 4, 1 and 5, 2 and 6, 3 and 7 of all servers."""
_ALL = 2 * RAILS
_PREFIXES = (24, *range(25, 31), *range(23, 7, -1))
"""The usual one first; it wins if several fit equally well."""
_SHOWN = 4

Seats = Mapping[int, Sequence[tuple[RankEntry, IPv4Address]]]


@dataclass(frozen=True, slots=True)
class _Reading:
    """The addresses under one netmask: the rails in several segments, and the rails that share a segment."""

    prefix: int
    split: tuple[int, ...]
    shared: tuple[int, ...]
    strays: int


def rails(case: TableRules, certain: bool) -> Iterator[UnplacedFlaw]:
    """`certain`: whether the product is known, or only implied by the form of the table."""
    seats = grouped(
        (entry.device % RAILS, (entry, address))
        for entry in case.table.in_file_order()
        if (address := ipv4(entry)) is not None and entry.device is not None and entry.device < _ALL
    )
    best = min((_read(seats, prefix) for prefix in _PREFIXES), key=lambda reading: reading.strays)
    # Cards in slots have no rails, and their addresses are in one segment; the same holds for later products.
    if best.shared and not (certain and _full(case)):
        return
    if best.shared:
        entry, _ = seats[best.shared[0]][0]
        pairs = " and ".join(_pair(rail) for rail in best.shared)
        listed = ", ".join(str(seats[rail][0][1]) for rail in best.shared[:_SHOWN])
        told = said("rails share a segment", pairs=pairs, listed=listed)
        yield case.flaw(entry, "device_ip", *told, severity=Severity.WARN)
        return
    severity = Severity.FAIL if _full(case) else Severity.WARN
    for rail in best.split:
        usual, count = Counter(_segment(address, best.prefix) for _, address in seats[rail]).most_common(1)[0]
        odd = [seat for seat in seats[rail] if _segment(seat[1], best.prefix) != usual]
        decided = 2 * count > len(seats[rail])
        entry, _ = odd[0]
        listed = ", ".join(f"device {e.device}: {a}" for e, a in (odd if decided else seats[rail])[:_SHOWN])
        name = "outside its rail" if decided else "rail in segments"
        told = said(name, pair=_pair(rail), usual=usual, listed=listed)
        yield case.flaw(entry, "device_ip", *told, severity=severity)


def _full(case: TableRules) -> bool:
    """Whether a server uses all its devices, which are then wired to each other."""
    return any(len(server.devices) == _ALL for server in case.table.servers)


def _read(seats: Seats, prefix: int) -> _Reading:
    usual: dict[int, str] = {}
    split: list[int] = []
    strays = 0
    for rail, own in sorted(seats.items()):
        usual[rail], count = Counter(_segment(address, prefix) for _, address in own).most_common(1)[0]
        strays += len(own) - count
        if count < len(own):
            split.append(rail)
    times = Counter(usual.values())
    shared = tuple(rail for rail, segment in usual.items() if times[segment] > 1)
    strays += sum(len(seats[rail]) for rail in shared)
    return _Reading(prefix, tuple(split), shared, strays)


def _segment(address: IPv4Address, prefix: int) -> str:
    return str(ip_network((address, prefix), strict=False))


def _pair(rail: int) -> str:
    return f"{rail}/{rail + RAILS}"


ATLAS_TRAINING, ATLAS_A2, ATLAS_A3, ATLAS_950 = "atlas-training", "atlas-a2", "atlas-a3", "atlas-950"
PRODUCTS = (ATLAS_TRAINING, ATLAS_A2, ATLAS_A3, ATLAS_950)
REFUSAL = "devNum must be divisible by 8, or equal to 1, 2 or 4"
"""The error text of HCCL, which MindSpore's init repeats."""

_FORMS: Mapping[Form, str] = {"1.2": ATLAS_A3, "2.0": ATLAS_950, "group-list": ATLAS_TRAINING}
"""Form -> the only product for which it is documented."""

_COUNTS = (1, 2, 4, 8)
_HALF = 4
_MOST_A2 = 8


def grouping(case: TableRules, product: str | None) -> Iterator[UnplacedFlaw]:
    servers = [server for server in case.table.servers if server.entries]
    if product in PRODUCTS:
        yield from _wrong_form(case, product)
    certain = product is not None
    product = product or implied_product(case.table)
    if case.table.form != "2.0":
        yield from _missing_addresses(case, servers, product)
    if product == ATLAS_TRAINING:
        yield from _training(case, servers)
        yield from rails(case, certain)
    elif product == ATLAS_A2:
        yield from _uneven(case, servers, Severity.WARN)
        yield from _many(case, servers)
    elif product == ATLAS_A3:
        yield from _uneven(case, servers, Severity.WARN)
        yield from _uneven_pods(case)


def implied_product(table: RankTable) -> str | None:
    """The product that the form of a table implies; None if several products use the form."""
    if table.form == "board-id":
        return ATLAS_TRAINING if table.chip or board_architecture(table.board_id) else None
    return _FORMS.get(table.form)


def _wrong_form(case: TableRules, product: str | None) -> Iterator[UnplacedFlaw]:
    form = case.table.form
    if (form == "2.0") != (product == ATLAS_950):
        version = "version 2.0" if product == ATLAS_950 else "version 1.0 or 1.2"
        told = said("wrong form", form=form, version=version)
        yield case.flaw(None, "version", *told, severity=Severity.WARN)


def _training(case: TableRules, servers: list[Server]) -> Iterator[UnplacedFlaw]:
    alone = len(servers) == 1
    for server in servers:
        devices = len(server.entries)
        if devices not in _COUNTS:
            yield case.flaw(server, None, *said("refused number", number=devices, refusal=REFUSAL))
        elif devices in (2, _HALF) and len({device // _HALF for device in server.devices}) > 1:
            severity = Severity.FAIL if alone else Severity.WARN
            told = said("crosses groups", number=devices, devices=folded(server.devices))
            yield case.flaw(server, None, *told, severity=severity)
        for entry in server.entries:
            if entry.device is not None and entry.device > 7:
                yield case.flaw(entry, "device_id", *said("beyond 7", device=entry.device))
    yield from _uneven(case, servers, Severity.FAIL)
    if case.table.form == "board-id" and not alone and servers and len(servers[0].entries) != 8:
        told = said("servers of MindSpore 0.x", number=len(servers[0].entries))
        yield case.flaw(servers[0], None, *told, severity=Severity.WARN)


def _uneven(case: TableRules, servers: list[Server], severity: Severity) -> Iterator[UnplacedFlaw]:
    counts = Counter(len(server.entries) for server in servers)
    if len(counts) < 2:
        return
    usual, times = counts.most_common(1)[0]
    for server in servers:
        if len(server.entries) != usual:
            values = {"usual": usual, "times": times, "servers": len(servers)}
            told = said("uneven servers", number=len(server.entries), **values)
            yield case.flaw(server, None, *told, severity=severity)


def _many(case: TableRules, servers: list[Server]) -> Iterator[UnplacedFlaw]:
    for server in servers:
        if len(servers) > 1 and len(server.entries) > _MOST_A2:
            told = said("too many devices", most=_MOST_A2, number=len(server.entries))
            yield case.flaw(server, None, *told, severity=Severity.WARN)


def _uneven_pods(case: TableRules) -> Iterator[UnplacedFlaw]:
    pods = case.table.super_pods
    counts = Counter(len(pod.servers) for pod in pods)
    usual = counts.most_common(1)[0][0] if counts else 0
    for pod in pods:
        if len(pod.servers) != usual:
            told = said("uneven superpods", usual=usual, number=len(pod.servers))
            yield case.flaw(pod.spot, "server_list", *told, severity=Severity.WARN)


def _missing_addresses(
    case: TableRules, servers: list[Server], product: str | None
) -> Iterator[UnplacedFlaw]:
    several = len(servers) > 1
    if product == ATLAS_A3 and case.table.form == "1.2":
        several = len(case.table.super_pods) > 1
    for server in servers:
        without = [entry for entry in server.entries if entry.address is None and case.lacks_address(entry)]
        if not without or not (several or product == ATLAS_TRAINING):
            continue
        # Ranks may also meet at the host's address; then only the product decides what is missing.
        certain = product == ATLAS_TRAINING or (several and (product is not None or server.host_ip is None))
        severity = Severity.FAIL if certain else Severity.WARN
        name = "no device_ip" if several else "no device_ip, one server"
        told = said(name, devices=folded(entry.device for entry in without))
        yield case.flaw(without[0], None, *told, severity=severity)

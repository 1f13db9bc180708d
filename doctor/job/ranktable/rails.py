"""The rails of Atlas training servers: devices that must share a network segment, and those that must not.

A table has no netmasks. With the right netmask, the addresses of one rail are in one segment, and those of
two rails are in different segments: an address is wrong if no netmask makes that true.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, ip_network

from doctor.job.ranktable.addresses import ipv4
from doctor.job.ranktable.case import TableRules
from doctor.job.ranktable.flaws import UnplacedFlaw
from doctor.job.ranktable.model import RankEntry
from doctor.model import Severity

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
    seats = _by_rail(case)
    best = min((_read(seats, prefix) for prefix in _PREFIXES), key=lambda reading: reading.strays)
    # Cards in slots have no rails, and their addresses are in one segment; the same holds for later products.
    if best.shared and not (certain and _full(case)):
        return
    if best.shared:
        entry, _ = seats[best.shared[0]][0]
        pairs = " and ".join(_pair(rail) for rail in best.shared)
        message = "devices of different rails have addresses of one segment"
        expected = "a segment of its own for each of the pairs 0/4, 1/5, 2/6 and 3/7"
        actual = f"{pairs}: {_listed(seats, best.shared)}"
        yield case.flaw(entry, "device_ip", message, expected, actual, Severity.WARN)
        return
    severity = Severity.FAIL if _full(case) else Severity.WARN
    for rail in best.split:
        votes = Counter(_segment(address, best.prefix) for _, address in seats[rail])
        usual, count = votes.most_common(1)[0]
        odd = [seat for seat in seats[rail] if _segment(seat[1], best.prefix) != usual]
        decided = 2 * count > len(seats[rail])
        entry, _ = odd[0]
        message = (
            "device_ip is outside the segment of its rail" if decided else "a rail is in several segments"
        )
        expected = f"devices {_pair(rail)} in one segment" + (f", as {usual}" if decided else "")
        actual = ", ".join(f"device {e.device}: {a}" for e, a in (odd if decided else seats[rail])[:_SHOWN])
        yield case.flaw(entry, "device_ip", message, expected, actual, severity)


def _by_rail(case: TableRules) -> Seats:
    found: dict[int, list[tuple[RankEntry, IPv4Address]]] = {}
    for entry in case.table.in_file_order():
        address = ipv4(entry)
        if address is not None and entry.device is not None and entry.device < _ALL:
            found.setdefault(entry.device % RAILS, []).append((entry, address))
    return found


def _full(case: TableRules) -> bool:
    """Whether a server uses all its devices, which are then wired to each other."""
    return any(len(server.devices) == _ALL for server in case.table.servers)


def _read(seats: Seats, prefix: int) -> _Reading:
    usual: dict[int, str] = {}
    split: list[int] = []
    strays = 0
    for rail, own in sorted(seats.items()):
        votes = Counter(_segment(address, prefix) for _, address in own)
        usual[rail], count = votes.most_common(1)[0]
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


def _listed(seats: Seats, chosen: Sequence[int]) -> str:
    return ", ".join(str(seats[rail][0][1]) for rail in chosen[:_SHOWN])

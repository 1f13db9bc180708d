"""Which address an NPU without one should get: the free one that fits the addresses of the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from ipaddress import IPv4Address, IPv4Network

from doctor.facts.ascend.network import Address
from doctor.rules.devices import HostDevice
from doctor.rules.npu_segments import continued, is_six

WIDEST = 16
"""Of a network whose addresses are counted through, its prefix."""


def free_addresses(
    lost: Sequence[HostDevice],
    held: Mapping[HostDevice, Address],
    hosts: Sequence[str],
    taken: Set[str] = frozenset(),
) -> dict[HostDevice, Address]:
    """For each device the address that its host's sequence, else its rail leaves for it, if one is free.

    `hosts` are all in rank order, `taken` are addresses of others: gateways. Another machine that was not
    examined may still have it.
    """
    found: dict[HostDevice, Address] = {}
    for seat in lost:
        known = {**held, **found}
        used = {int(IPv4Address(a.ip)) for a in known.values() if not is_six(a)}
        used |= {int(IPv4Address(ip)) for ip in taken if ":" not in ip}
        rail = _rail(seat, known)
        wished = _wished(seat, known, hosts, rail) if rail else ()
        free = next((ip for ip in wished if ip not in used and _fits(ip, rail)), None) if rail else None
        if rail and free is not None:
            found[seat] = Address(str(IPv4Address(free)), rail.prefixlen)
    return found


def _rail(seat: HostDevice, held: Mapping[HostDevice, Address]) -> IPv4Network | None:
    """The network of most devices of its number on other hosts."""
    votes = Counter(
        a.network for (host, device), a in held.items() if device == seat[1] and host != seat[0]
    ).most_common(1)
    network = votes[0][0] if votes else None
    return network if isinstance(network, IPv4Network) else None


def _fits(ip: int, network: IPv4Network | None) -> bool:
    if network is None or IPv4Address(ip) not in network:
        return False
    return ip not in (int(network.network_address), int(network.broadcast_address))


def _wished(
    seat: HostDevice, held: Mapping[HostDevice, Address], hosts: Sequence[str], rail: IPv4Network
) -> Iterator[int]:
    """Addresses that would do, the best first."""
    host, device = seat
    four = {s: int(IPv4Address(a.ip)) for s, a in held.items() if not is_six(a)}
    row = {number: ip for (name, number), ip in four.items() if name == host}
    place = {name: index for index, name in enumerate(hosts)}
    column = {place[name]: ip for (name, number), ip in four.items() if number == device and name in place}
    for others, at in ((row, device), (column, place.get(host, 0))):
        if (ip := continued(others, at)) is not None:
            yield ip
    own = [ip for ip in column.values() if IPv4Address(ip) in rail]
    if own and rail.prefixlen >= WIDEST:
        yield from range(min(own) + 1, int(rail.broadcast_address))

"""Addresses of hosts: read as the kernel's filters see them, and sorted.

A route or a firewall rule holds for a stretch of addresses and is looked up once for the stretch: a look-up
for each pair of thousands of hosts would take hours.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, collapse_addresses, ip_address
from typing import TypeAlias

AnyAddress: TypeAlias = "IPv4Address | IPv6Address"
LOOPBACK = (int(IPv4Address("127.0.0.0")), int(IPv4Address("128.0.0.0")), 1, 2)
"""The loopback addresses of IPv4 and of IPv6 as numbers: the first one, and the one after the last."""


def canonical(address: str | AnyAddress) -> AnyAddress:
    """The address as the kernel's filters see it: an IPv4-mapped IPv6 address is IPv4."""
    parsed = ip_address(address) if isinstance(address, str) else address
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        return parsed.ipv4_mapped
    return parsed


def _address(text: str) -> AnyAddress | None:
    try:
        return canonical(text.partition("%")[0])
    except ValueError:
        return None


def is_address(text: str) -> bool:
    return _address(text) is not None


def fewest_networks(addresses: Iterable[AnyAddress]) -> tuple[str, ...]:
    """The fewest networks that hold exactly these addresses, IPv4 first."""
    held = list(addresses)
    four = collapse_addresses(IPv4Network(one) for one in held if isinstance(one, IPv4Address))
    six = collapse_addresses(IPv6Network(one) for one in held if isinstance(one, IPv6Address))
    networks: list[IPv4Network | IPv6Network] = [*four, *six]
    return tuple(str(n.network_address) if n.num_addresses == 1 else str(n) for n in networks)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Hosts with neighbouring addresses: a slice of the list of all hosts, which is not copied."""

    start: int
    end: int
    _all: Sequence[str] = field(compare=False, repr=False)
    _numbers: Sequence[int] = field(compare=False, repr=False)
    """The addresses of all hosts as numbers, in the same order."""

    def __len__(self) -> int:
        return self.end - self.start

    @property
    def first(self) -> str:
        return self._all[self.start]

    def has(self, host: str, place: int) -> bool:
        """Whether `place` is inside the stretch and holds this host."""
        return self.start <= place < self.end and self._all[place] == host

    def others(self, host: str) -> list[str]:
        return [each for each in self._all[self.start : self.end] if each != host]

    def another(self, address: AnyAddress) -> str | None:
        """A host with another address, if there is one."""
        own = int(address)
        return next((self._all[n] for n in range(self.start, self.end) if self._numbers[n] != own), None)


class Holders:
    """Which host holds which address. A host whose address is unknown, or is a name, holds none."""

    def __init__(self, held: Mapping[str, str | None]) -> None:
        known = {host: _address(text or "") for host, text in held.items()}
        self.address = {host: address for host, address in known.items() if address is not None}
        self._rank = {host: number for number, host in enumerate(held)}
        self._sorted = {version: self._by_address(version) for version in (4, 6)}
        self._place = {host: n for _, hosts in self._sorted.values() for n, host in enumerate(hosts)}

    def _by_address(self, version: int) -> tuple[Sequence[int], Sequence[str]]:
        own = [(int(one), host) for host, one in self.address.items() if one.version == version]
        own.sort(key=lambda pair: pair[0])
        return [number for number, _ in own], [host for _, host in own]

    def count(self, version: int) -> int:
        return len(self._sorted[version][0])

    def in_order(self, hosts: Iterable[str]) -> list[str]:
        """These hosts, in the order in which the hosts were given."""
        return sorted(hosts, key=self._rank.__getitem__)

    def stretches(self, version: int, cuts: Iterable[int]) -> Iterator[Stretch]:
        """The hosts in groups that no cut divides."""
        numbers, hosts = self._sorted[version]
        bounds = sorted({*cuts, *LOOPBACK})
        start = 0
        while start < len(numbers):
            above = bisect_right(bounds, numbers[start])
            end = bisect_left(numbers, bounds[above], start) if above < len(bounds) else len(numbers)
            yield Stretch(start, end, hosts, numbers)
            start = end

    def within(self, host: str, stretches: Iterable[Stretch]) -> bool:
        place = self._place.get(host, -1)
        return any(stretch.has(host, place) for stretch in stretches)

    @cached_property
    def networks(self) -> tuple[str, ...]:
        """The fewest networks that hold exactly all addresses."""
        return fewest_networks(self.address.values())

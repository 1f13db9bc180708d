"""The address that an NPU without one should get: a free one that fits the addresses of the others."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from ipaddress import IPv4Address, IPv4Network

from doctor.facts.ascend.network import Address
from doctor.rules.devices import HostDevice
from doctor.rules.npu_segments import AddressSeries, continued, is_six, line_of
from doctor.text.grouped import grouped

WIDEST = 16
"""The shortest prefix of a network whose addresses are tried one by one."""


def free_addresses(
    lost: Sequence[HostDevice],
    held: Mapping[HostDevice, Address],
    hosts: Sequence[str],
    taken: Set[str] = frozenset(),
) -> dict[HostDevice, Address]:
    """Device -> a free address: the one that continues the sequence of its host, or else one of its rail.

    `held` are the addresses of the other devices, `hosts` are all hosts in rank order, `taken` are addresses
    in other use, such as gateways. A device without a free address is left out. A machine that was not
    examined may still have the address.
    """
    four = {seat: int(IPv4Address(address.ip)) for seat, address in held.items() if not is_six(address)}
    used = {*four.values(), *(int(IPv4Address(ip)) for ip in taken if ":" not in ip)}
    place = {name: index for index, name in enumerate(hosts)}
    rows: dict[str, dict[int, int]] = defaultdict(dict)
    columns: dict[int, dict[int, int]] = defaultdict(dict)
    for (host, device), ip in four.items():
        rows[host][device] = ip
        if host in place:
            columns[device][place[host]] = ip
    rails = {device: _Rail(network, columns[device]) for device, network in _networks(held)}
    found: dict[HostDevice, Address] = {}
    for host, device in lost:
        rail = rails.get(device)
        wished = rail.wished(rows[host], device, place.get(host, 0)) if rail else ()
        free = next((ip for ip in wished if ip not in used), None)
        if rail and free is not None:
            used.add(free)
            found[host, device] = Address(str(IPv4Address(free)), rail.network.prefixlen)
    return found


class _Rail:
    """The devices with one number, and the network of most of them."""

    def __init__(self, network: IPv4Network, column: Mapping[int, int]) -> None:
        """`column` maps the place of a host to the address of its device."""
        self.network = network
        self._line: AddressSeries | None = line_of(column)
        own = [ip for ip in column.values() if IPv4Address(ip) in network]
        counted = own and network.prefixlen >= WIDEST
        self._rest = iter(range(min(own) + 1, int(network.broadcast_address)) if counted else ())
        """An address that is used or was offered does not become free again."""

    def wished(self, row: Mapping[int, int], device: int, place: int) -> Iterator[int]:
        """Suitable addresses, the best first; `row` maps the devices of its host to addresses."""
        for ip in (continued(row, device), self._line.at(place) if self._line else None):
            first, last = self.network.network_address, self.network.broadcast_address
            if ip is not None and int(first) < ip < int(last):
                yield ip
        yield from self._rest


def _networks(held: Mapping[HostDevice, Address]) -> Iterator[tuple[int, IPv4Network]]:
    """The IPv4 network that most devices of a number are in; none if most are in one of IPv6."""
    for device, networks in grouped((seat[1], address.network) for seat, address in held.items()).items():
        usual = Counter(networks).most_common(1)[0][0]
        if isinstance(usual, IPv4Network):
            yield device, usual

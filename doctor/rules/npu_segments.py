"""The addresses of the Ascend training network: which devices share a segment, and which addresses fit."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from ipaddress import ip_network
from itertools import pairwise
from typing import NamedTuple, TypeVar

from doctor.api import JobPlan, Severity
from doctor.facts.ascend.network import Address
from doctor.facts.system import Devices
from doctor.rules.devices import HostDevice
from doctor.text.grouped import grouped

T = TypeVar("T")
RAILS = 4
"""Rails of Atlas training servers: devices 0 and 4, 1 and 5, 2 and 6, 3 and 7."""
NOT_TOLD = "hccn_tool does not report the gateways of IPv6 addresses"


def is_six(address: Address | None) -> bool:
    return address is not None and ":" in address.ip


def fabric_unused(plan: JobPlan, *products: str) -> bool:
    """Whether the job stays inside one server, whose devices HCCS connects, so it needs no network.

    It is False on Atlas training servers, where HCCL and MindSpore need the address plan even on one server.
    """
    alone = not plan.several_hosts and len(plan.servers) < 2 and not plan.of_node
    return alone and "atlas-training" not in products


def severity_of(plan: JobPlan, *products: str) -> Severity | None:
    """A warning if the job does not use the network; otherwise None, for the check's own severity."""
    return Severity.WARN if fabric_unused(plan, *products) else None


def products_of(devices: Mapping[str, Devices]) -> tuple[str, ...]:
    return tuple(own.product for own in devices.values())


def by_product(
    known: Mapping[HostDevice, T], devices: Mapping[str, Devices]
) -> dict[str, dict[HostDevice, T]]:
    """Devices by product, without Atlas 950, which connects its devices in a different way."""
    named = {host: own.product for host, own in devices.items()}
    found = grouped((named.get(seat[0], "ascend"), (seat, value)) for seat, value in known.items())
    return {product: dict(own) for product, own in found.items() if product != "atlas-950"}


def segments(held: Mapping[HostDevice, Address]) -> dict[HostDevice, str]:
    """Each device's segment, by the most frequent netmask: a wrong netmask is another check's fault."""
    prefixes: dict[bool, Counter[int]] = defaultdict(Counter)
    for address in held.values():
        prefixes[is_six(address)][address.prefix] += 1
    usual = {six: max(votes, key=lambda p: (votes[p], -p)) for six, votes in prefixes.items()}
    return {
        seat: str(ip_network(f"{address.ip}/{usual[is_six(address)]}", strict=False))
        for seat, address in held.items()
    }


def spans(product: str, found: Mapping[HostDevice, str]) -> bool:
    """Whether devices that must reach each other are in different segments."""
    rails = {(device % RAILS if product == "atlas-training" else 0, s) for (_, device), s in found.items()}
    return len(rails) > len({rail for rail, _ in rails})


class AddressSeries(NamedTuple):
    """Addresses at equal distances."""

    base: int
    step: int

    def at(self, place: int) -> int:
        return self.base + self.step * place


def line_of(known: Mapping[int, int]) -> AddressSeries | None:
    """The series that the addresses at these places form; one address may deviate."""
    steps = Counter((known[b] - known[a]) // (b - a) for a, b in pairwise(sorted(known)))
    if not steps:
        return None
    step = steps.most_common(1)[0][0]
    base, votes = Counter(ip - step * number for number, ip in known.items()).most_common(1)[0]
    return AddressSeries(base, step) if votes >= max(3, len(known) - 1) else None


def continued(others: Mapping[int, int], place: int) -> int | None:
    """The address at a place, if the others form a sequence."""
    line = line_of(others)
    return line.at(place) if line else None

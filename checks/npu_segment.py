"""Segments of the Ascend training network: devices that must reach each other share one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from ipaddress import ip_address, ip_network

from doctor.api import PLAN, Backend, Evidence, JobPlan, Problem, Scope, Severity, Skip, check, maybe
from doctor.facts.hccn import NPU_ADDRESSES, NPU_GATEWAYS, Address, PerDevice, told
from doctor.facts.seats import Odd, Seat, alike_on_host, doubt, odd_ones, of_cluster
from doctor.facts.segments import RAILS, by_product, segments
from doctor.facts.system import DEVICES, Devices

Addresses = Mapping[str, PerDevice[Address | None]]
SHOWN = 8


@check(
    "device-ip-subnet",
    NPU_ADDRESSES,
    DEVICES,
    PLAN,
    maybe(NPU_GATEWAYS),
    scope=Scope.CLUSTER,
    remedy="look-at-npu-address",
    causes=("device-ip-not-applied",),
    backends=(Backend.HCCL,),
)
def device_ip_subnet(
    addresses: Addresses,
    devices: Mapping[str, Devices],
    plan: JobPlan,
    gateways: Mapping[str, PerDevice[str | None]],
) -> Iterator[Problem]:
    """The IP address of an NPU is in another segment than the NPUs that it must reach.

    Why it matters: without a gateway, devices of different segments cannot reach each other: connections of
    HCCL time out on every rank (EI0006).

    How it is known: on Atlas training servers devices 0 and 4, 1 and 5, 2 and 6, 3 and 7 share a segment (a
    rail), the same on every host, and the four rails are four segments. On Atlas A2 and A3 all devices share
    one, unless gateways join several; a device whose gateway is in the others' segment belongs there too. On
    Atlas 950 this is not judged.

    What to do: give the device the address that the network plan has for it.
    """
    known, silent = of_cluster(addresses, plan)
    products = by_product(known, devices)
    if known and not products:
        raise Skip("Atlas 950 joins its NPUs otherwise")
    ways = {(host, n): way for host, said in gateways.items() for n, way in told(said)[0].items()}
    for product, own in products.items():
        found = segments({seat: address for seat, address in own.items() if address})
        if product == "atlas-training":
            yield from _rails(found)
        elif any(ways.get(seat) for seat in found):
            yield from _strangers(found, ways)
        elif len(set(found.values())) > 1:
            blind = dict.fromkeys(host for host, device in found if (host, device) not in ways)
            silent |= dict.fromkeys(blind, "whether gateways join the segments of its NPUs is not known")
            if not blind:
                yield from _one_segment(found)
    doubt(silent)


def _rails(found: Mapping[Seat, str]) -> Iterator[Problem]:
    outside: dict[str, list[Odd]] = {}
    usual: dict[str, list[int]] = {}
    for rail in range(RAILS):
        own = {seat: segment for seat, segment in found.items() if seat[1] % RAILS == rail}
        for segment, votes in Counter(own.values()).items():
            if 2 * votes > len(own):
                usual.setdefault(segment, []).append(rail)
        for odd in odd_ones(own):
            if odd.decided:
                outside.setdefault(odd.hosts[0], []).append(odd)
            else:
                yield _outside("their addresses are in different segments, but they share a rail", odd)
    for odds in outside.values():
        yield _outside("its address is outside the segment of its rail", _merged(odds))
    for segment, rails in usual.items():
        if len(rails) > 1:
            expected = "a segment of its own for each of the pairs 0/4, 1/5, 2/6 and 3/7"
            pairs = " and ".join(f"{rail}/{rail + RAILS}" for rail in rails)
            seats = tuple(seat for seat, own in found.items() if own == segment)
            odd = Odd(seats, False, expected, f"{segment} for {pairs}")
            yield _outside("devices of different rails share one segment", odd)


def _merged(odds: list[Odd]) -> Odd:
    """Those of one host, each with its own rail."""
    if len(odds) == 1:
        return odds[0]
    return Odd(
        tuple(seat for odd in odds for seat in odd.seats),
        expected="; ".join(f"{odd.subject}: {odd.expected}" for odd in odds),
        actual="; ".join(f"{odd.subject}: {odd.actual}" for odd in odds),
    )


def _one_segment(found: Mapping[Seat, str]) -> Iterator[Problem]:
    by_number: dict[int, set[str]] = {}
    for (_, device), segment in found.items():
        by_number.setdefault(device, set()).add(segment)
    count = len(by_number)
    if len(set(found.values())) == count > 2 and all(len(own) == 1 for own in by_number.values()):
        expected = "one segment for all devices, or gateways that join them"
        odd = Odd(tuple(found), True, expected, f"{count} segments, one for each device number")
        yield _outside("devices of different numbers cannot reach each other", odd, Severity.WARN)
        return
    for odd in odd_ones(found):
        yield _outside(
            "its address is outside the segment of the others" if odd.decided else "segments differ", odd
        )


def _strangers(found: Mapping[Seat, str], ways: Mapping[Seat, str | None]) -> Iterator[Problem]:
    """Outside of the one segment that most are in, with a gateway that is in it and out of their reach."""
    usual, votes = Counter(found.values()).most_common(1)[0]
    strangers = {
        seat: segment
        for seat, segment in found.items()
        if segment != usual and _within(ways.get(seat), usual)
    }
    if 2 * votes > len(found):
        for host, segment, numbers in alike_on_host(strangers):
            seats = tuple((host, number) for number in numbers)
            odd = Odd(seats, True, f"{usual}, where its gateway is", segment)
            yield _outside("its address is outside the segment of the others", odd)


def _within(way: str | None, segment: str) -> bool:
    try:
        return way is not None and ip_address(way) in ip_network(segment)
    except ValueError:
        return False


def _outside(summary: str, odd: Odd, severity: Severity | None = None) -> Problem:
    evidence = Evidence("hccn_tool -ip -g", f"{odd.subject}: {odd.actual}")
    return odd.problem(summary, evidence, values={"device": odd.numbers}, severity=severity)


@check(
    "device-netmask-mismatch",
    NPU_ADDRESSES,
    DEVICES,
    PLAN,
    scope=Scope.CLUSTER,
    remedy="look-at-npu-address",
    causes=("device-ip-not-applied",),
    backends=(Backend.HCCL,),
)
def device_netmask_mismatch(
    addresses: Addresses, devices: Mapping[str, Devices], plan: JobPlan
) -> Iterator[Problem]:
    """The netmask of an NPU differs from the others'.

    Why it matters: a device with a narrower netmask takes its neighbours for strangers and sends to a gateway
    that is not there; one with a wider netmask looks for strangers on its own segment. Either way some of its
    connections fail (EI0006).

    What to do: give the device the netmask of the others; the address stays.
    """
    known, silent = of_cluster(addresses, plan)
    for own in by_product(known, devices).values():
        for six in (False, True):
            held = {seat: a for seat, a in own.items() if a and (":" in a.ip) is six}
            for odd in odd_ones({seat: _netmask(address) for seat, address in held.items()}):
                yield odd.problem(
                    "its netmask differs from the others'" if odd.decided else "netmasks differ",
                    *(
                        Evidence(f"{seat[0]}: hccn_tool -i {seat[1]} -ip -g", f"{held[seat].ip} {odd.actual}")
                        for seat in odd.seats[: SHOWN if odd.decided else 0]
                    ),
                    values={"device": odd.numbers},
                )
    doubt(silent)


def _netmask(address: Address) -> str:
    return f"/{address.prefix}" if ":" in address.ip else f"{address.netmask} (/{address.prefix})"

"""Segments of the Ascend training network: devices that must reach each other share one."""

from collections import Counter
from collections.abc import Iterator, Mapping
from ipaddress import ip_address, ip_network

from doctor.api import (
    PLAN,
    Backend,
    Damage,
    Evidence,
    JobPlan,
    Problem,
    Scope,
    Severity,
    Skip,
    check,
    grouped,
    maybe,
)
from doctor.facts.ascend.hccn_tool import PerDevice, split_known
from doctor.facts.ascend.hccn_tool import devices as listed
from doctor.facts.ascend.network import NPU_ADDRESSES, NPU_GATEWAYS, Address
from doctor.facts.system import DEVICES, Devices
from doctor.rules.devices import HostDevice, OddDevices, alike_on_host, note_unknown, odd_ones, of_cluster
from doctor.rules.npu_segments import (
    NOT_TOLD,
    RAILS,
    by_product,
    is_six,
    segments,
    severity_of,
)

Addresses = Mapping[str, PerDevice[Address | None]]
SHOWN = 8
UNSEEN = "whether gateways join the segments of its NPUs is not known"


@check(
    "device-ip-subnet",
    NPU_ADDRESSES,
    DEVICES,
    PLAN,
    maybe(NPU_GATEWAYS),
    damage=Damage.BLOCKED,
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
    """The IP address of an NPU is in a different segment from the NPUs that it must reach.

    Why it matters: without a gateway, devices of different segments cannot reach each other: connections of
    HCCL time out on every rank (EI0006).

    How it is known: on Atlas training servers devices 0 and 4, 1 and 5, 2 and 6, 3 and 7 share a segment (a
    rail), the same on every host, and the four rails are four segments. On Atlas A2 and A3 all devices share
    one, unless gateways connect several; a device whose gateway is in the others' segment belongs there too.
    If each device number has the same segment on all hosts, this is a plan, and only a warning. hccn_tool
    does not show gateways of IPv6 addresses. On Atlas 950 this is not judged.

    What to do: give the device the address that the network plan has for it. It is a warning for a job on one
    host (except for Atlas training servers), which does not use this network.
    """
    known, silent = of_cluster(addresses, plan)
    products = by_product(known, devices)
    if known and not products:
        raise Skip("Atlas 950 joins its NPUs in a different way")
    ways = {(host, n): way for host, said in gateways.items() for n, way in split_known(said)[0].items()}
    for product, own in products.items():
        held = {seat: address for seat, address in own.items() if address}
        found = segments(held)
        if product == "atlas-training":
            yield from _rails(found)
        elif any(ways.get(seat) for seat in found):
            yield from _strangers(found, ways, severity_of(plan, product))
        elif len(set(found.values())) > 1:
            blind = {seat[0]: UNSEEN for seat in found if seat not in ways}
            blind |= {seat[0]: NOT_TOLD for seat in found if is_six(held[seat])}
            if not blind:
                yield from _one_segment(found, severity_of(plan, product))
            silent |= blind
    note_unknown(silent)


def _rails(found: Mapping[HostDevice, str]) -> Iterator[Problem]:
    outside: dict[str, list[OddDevices]] = {}
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
            odd = OddDevices(seats, False, expected, f"{segment} for {pairs}")
            yield _outside("devices of different rails share one segment", odd)


def _merged(odds: list[OddDevices]) -> OddDevices:
    """Merges groups of the same hosts, each with its own rail or number."""
    if len(odds) == 1:
        return odds[0]
    return OddDevices(
        tuple(seat for odd in odds for seat in odd.seats),
        odds[0].decided,
        expected="; ".join(f"{odd.subject}: {odd.expected}" for odd in odds),
        actual="; ".join(f"{odd.subject}: {odd.actual}" for odd in odds),
    )


def _one_segment(found: Mapping[HostDevice, str], severity: Severity | None) -> Iterator[Problem]:
    numbers: dict[int, dict[HostDevice, str]] = {}
    for seat, segment in found.items():
        numbers.setdefault(seat[1], {})[seat] = segment
    planes = _planes(found, numbers)
    if planes:
        yield _apart(planes)
        strays = (odd for own in numbers.values() for odd in odd_ones(own))
        for odds in grouped((odd.hosts, odd) for odd in strays).values():
            what = "its address is outside the segment of its number on other hosts"
            if not odds[0].decided:
                what = "their addresses are in different segments, but they have one number"
            yield _outside(what, _merged(odds), severity)
        return
    for odd in odd_ones(found):
        what = "its address is outside the segment of the others" if odd.decided else "segments differ"
        yield _outside(what, odd, severity)


def _planes(
    found: Mapping[HostDevice, str], numbers: Mapping[int, Mapping[HostDevice, str]]
) -> dict[int, str]:
    """The segment of each device number if the network was planned that way; empty if it was not.

    On several hosts, the segment of a number is the one that most of them give it. If most devices share one
    segment, another segment of a number counts as planned only if it is the same on all hosts.
    """
    if len({host for host, _ in found}) == 1:
        return {} if _usual(found) else {device: segment for (_, device), segment in found.items()}
    shared = {number: own for number, own in numbers.items() if len(own) > 1}
    usual = {number: segment for number, own in shared.items() if (segment := _usual(own))}
    same = len(shared) == len(numbers) and all(len(set(own.values())) == 1 for own in numbers.values())
    return usual if len(set(usual.values())) > 1 and (same or not _usual(found)) else {}


def _usual(found: Mapping[HostDevice, str]) -> str | None:
    """The segment of more than half of the devices."""
    segment, votes = Counter(found.values()).most_common(1)[0]
    return segment if 2 * votes > len(found) else None


def _apart(planes: Mapping[int, str]) -> Problem:
    """A warning without a culprit: it may be intended, and suffices if only devices of one number connect."""
    members = grouped((segment, number) for number, segment in planes.items())
    shown = [f"{listed(own)} in {segment}" for segment, own in list(members.items())[:SHOWN]]
    more = f"; and {len(members) - SHOWN} more" if len(members) > SHOWN else ""
    return Problem(
        "devices of different numbers cannot reach each other",
        expected="one segment for all devices, or gateways that join them",
        actual=f"{len(members)} segments: {'; '.join(shown)}{more}",
        subject=listed(list(planes)),
        severity=Severity.WARN,
        evidence=(Evidence("hccn_tool -ip -g", "; ".join(shown) + more),),
        values={"device": tuple(str(number) for number in sorted(planes))},
    )


def _strangers(
    found: Mapping[HostDevice, str], ways: Mapping[HostDevice, str | None], severity: Severity | None
) -> Iterator[Problem]:
    """Devices outside the segment of most others whose gateway is inside it, and so out of their reach."""
    usual, votes = Counter(found.values()).most_common(1)[0]
    strangers = {
        seat: segment
        for seat, segment in found.items()
        if segment != usual and _within(ways.get(seat), usual)
    }
    if 2 * votes > len(found):
        for host, segment, numbers in alike_on_host(strangers):
            odd = OddDevices.of_host(host, numbers, f"{usual}, where its gateway is", segment)
            yield _outside("its address is outside the segment of the others", odd, severity)


def _within(way: str | None, segment: str) -> bool:
    try:
        return way is not None and ip_address(way) in ip_network(segment)
    except ValueError:
        return False


def _outside(summary: str, odd: OddDevices, severity: Severity | None = None) -> Problem:
    return odd.problem(summary, odd.as_said_by("hccn_tool -ip -g"), severity=severity)


@check(
    "device-netmask-mismatch",
    NPU_ADDRESSES,
    DEVICES,
    PLAN,
    damage=Damage.BLOCKED,
    scope=Scope.CLUSTER,
    remedy="look-at-npu-address",
    causes=("device-ip-not-applied",),
    backends=(Backend.HCCL,),
)
def device_netmask_mismatch(
    addresses: Addresses, devices: Mapping[str, Devices], plan: JobPlan
) -> Iterator[Problem]:
    """The netmask of an NPU differs from the others'.

    Why it matters: a device with a narrower netmask treats its neighbours as remote and sends to a gateway
    that does not exist; one with a wider netmask looks for remote devices on its own segment. Either way some
    of its connections fail (EI0006).

    What to do: give the device the netmask of the others; the address stays. It is a warning for a job on one
    host (except for Atlas training servers), which does not use this network.
    """
    known, silent = of_cluster(addresses, plan)
    for product, own in by_product(known, devices).items():
        for six in (False, True):
            held = {seat: a for seat, a in own.items() if a and is_six(a) is six}
            for odd in odd_ones({seat: _netmask(address) for seat, address in held.items()}):
                yield odd.problem(
                    "its netmask differs from the others'" if odd.decided else "netmasks differ",
                    *(
                        Evidence(f"{seat[0]}: hccn_tool -i {seat[1]} -ip -g", f"{held[seat].ip} {odd.actual}")
                        for seat in odd.seats[: SHOWN if odd.decided else 0]
                    ),
                    severity=severity_of(plan, product),
                )
    note_unknown(silent)


def _netmask(address: Address) -> str:
    return f"/{address.prefix}" if ":" in address.ip else f"{address.netmask} (/{address.prefix})"

"""Gateways of the Ascend training network."""

from collections.abc import Iterator, Mapping
from ipaddress import ip_address

from doctor.api import PLAN, Backend, Damage, JobPlan, Problem, Scope, Severity, check, maybe
from doctor.facts.ascend.hccn_tool import PerDevice
from doctor.facts.ascend.network import HCCN_CONF, NPU_ADDRESSES, NPU_GATEWAYS, Address
from doctor.facts.system import DEVICES, Devices
from doctor.rules.devices import HostDevice, OddDevices, alike_on_host, named, note_unknown, of_cluster
from doctor.rules.npu_segments import NOT_TOLD, by_product, fabric_unused, is_six, segments, spans


@check(
    "device-gateway-missing",
    NPU_GATEWAYS,
    NPU_ADDRESSES,
    DEVICES,
    PLAN,
    maybe(HCCN_CONF),
    damage=Damage.BLOCKED,
    scope=Scope.CLUSTER,
    remedy="look-at-npu-gateway",
    causes=("device-ip-not-applied", "device-netmask-mismatch", "device-ip-subnet"),
    backends=(Backend.HCCL,),
)
def device_gateway_missing(
    gateways: Mapping[str, PerDevice[str | None]],
    addresses: Mapping[str, PerDevice[Address | None]],
    devices: Mapping[str, Devices],
    plan: JobPlan,
    confs: Mapping[str, Mapping[int, Mapping[str, str]]],
) -> Iterator[Problem]:
    """An NPU has no gateway while the others have one, or one that it cannot reach.

    Why it matters: if the training network spans several segments, a device without a gateway reaches only
    its own segment: ranks elsewhere time out (EI0006). It is a warning if there is one segment, and for a job
    on one host (except for Atlas training servers), which does not use this network.

    How it is known: `hccn_tool -gateway -g`, which covers only IPv4: a device with an IPv6 address is never
    reported to have no gateway.

    What to do: set the gateway of the device's segment; it must be an address of that segment.
    """
    known, silent = of_cluster(gateways, plan)
    held, untold = of_cluster(addresses, plan)
    for product, own in by_product({seat: held.get(seat) for seat in known}, devices).items():
        here = {seat: address for seat, address in own.items() if address}
        needy = {seat: known[seat] for seat in own if seat in here or seat not in held}
        ways = {seat: way for seat, way in needy.items() if way or not is_six(here.get(seat))}
        several = spans(product, segments(here)) and not fabric_unused(plan, product)
        if several:
            silent = {**{seat[0]: NOT_TOLD for seat in needy if seat not in ways}, **silent}
        severity = None if several else Severity.WARN
        for odd in _lacking(ways, several):
            in_file = all(confs.get(host, {}).get(n, {}).get("gateway") for host, n in odd.seats)
            what = "it has no gateway" if odd.decided else "only some devices have a gateway"
            yield _gateway(what, odd, severity, "apply-hccn-conf" if odd.decided and in_file else None)
        for odd in _astray(ways, here):
            yield _gateway("its gateway is outside of its own segment", odd, severity)
    note_unknown({**untold, **silent})


def _lacking(ways: Mapping[HostDevice, str | None], several: bool) -> Iterator[OddDevices]:
    """Devices without a gateway. If no majority has one, nothing is wrong in a single segment, and with
    several segments it is undecided.
    """
    has = {seat for seat, way in ways.items() if way}
    lacks = {seat: "none is set" for seat, way in ways.items() if not way}
    if 2 * len(has) > len(ways):
        for host, actual, numbers in alike_on_host(lacks):
            yield OddDevices.of_host(host, numbers, f"a gateway, as {len(has)} other devices have", actual)
    elif has and several:
        suspects = tuple(seat for seat in ways if seat in has or len(has) == len(lacks))
        expected = "a gateway on every device, since there are several segments"
        yield OddDevices(suspects, False, expected, f"{named(has)} have one, {len(lacks)} others have none")


def _astray(
    ways: Mapping[HostDevice, str | None], held: Mapping[HostDevice, Address]
) -> Iterator[OddDevices]:
    wrong = {
        seat: f"{way} for {held[seat].network}"
        for seat, way in ways.items()
        if way and seat in held and _outside(way, held[seat])
    }
    for host, actual, numbers in alike_on_host(wrong):
        yield OddDevices.of_host(host, numbers, "a gateway in the segment of the device", actual)


def _outside(way: str, address: Address) -> bool:
    try:
        gateway = ip_address(way)
    except ValueError:
        return True
    return gateway.version == address.network.version and gateway not in address.network


def _gateway(summary: str, odd: OddDevices, severity: Severity | None, remedy: str | None = None) -> Problem:
    return odd.problem(summary, odd.as_said_by("hccn_tool -gateway -g"), severity=severity, remedy=remedy)

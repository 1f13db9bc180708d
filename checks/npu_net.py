"""The network health that Ascend devices check by themselves."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from ipaddress import ip_address, ip_network

from doctor.api import (
    PLAN,
    Backend,
    Confidence,
    Damage,
    Evidence,
    JobPlan,
    Place,
    Problem,
    Scope,
    Severity,
    check,
    maybe,
)
from doctor.facts.ascend.hccn_tool import PerDevice, devices, split_known
from doctor.facts.ascend.network import NPU_ADDRESSES, NPU_DETECT, NPU_LINKS, NPU_NET_HEALTH, Address
from doctor.facts.system import DEVICES, Devices
from doctor.rules.devices import (
    HostDevice,
    alike_on_host,
    note_unknown,
    of_cluster,
    problem_of,
    without_address,
    without_link,
)
from doctor.rules.npu_segments import products_of, severity_of

HEALTHY = ("success", "init")
"""Init: the detect address is not set, which device-detect-unset reports."""
VIRTUAL = ip_network("192.168.0.0/21")
"""The segments of the virtual interfaces inside a server, 192.168.0.x to 192.168.7.x."""
NEARLY_ALL = 0.9
SHOWN = 4


@check(
    "device-net-unhealthy",
    NPU_NET_HEALTH,
    PLAN,
    maybe(NPU_LINKS),
    maybe(NPU_ADDRESSES),
    maybe(NPU_DETECT),
    maybe(DEVICES),
    damage=Damage.BLOCKED,
    scope=Scope.CLUSTER,
    remedy="look-at-npu-network",
    causes=(
        "device-ip-not-applied",
        "device-ip-duplicate",
        "device-netmask-mismatch",
        "device-ip-subnet",
        "device-gateway-missing",
    ),
    backends=(Backend.HCCL,),
)
def device_net_unhealthy(
    health: Mapping[str, PerDevice[str]],
    plan: JobPlan,
    links: Mapping[str, PerDevice[bool]],
    addresses: Mapping[str, PerDevice[Address | None]],
    detect: Mapping[str, PerDevice[str | None]],
    found: Mapping[str, Devices],
) -> Iterator[Problem]:
    """An NPU's own check of its network fails.

    Why it matters: the device sends to its detect address (the gateway or switch) all the time and gets no
    answer, so packets of HCCL are lost as well.

    How it is known: `hccn_tool -net_health -g`; Success is healthy, and so is Init, which only means that no
    detect address is set. Devices without a link or an address are left to the checks for those. If a device
    number fails on nearly every host, the switch is at fault and no host is.

    What to do: make sure that the detect address is right and answers, and check VLAN and routing of the
    switch. An address from 192.168.0.0 to 192.168.7.255 is wrong: these belong to the inside of the server.
    It is a warning for a job on one host (except for Atlas training servers), which does not use this
    network.
    """
    known, silent = of_cluster(health, plan)
    sick = {
        (host, n): text
        for (host, n), text in known.items()
        if text.strip().lower() not in HEALTHY
        and n not in without_link(links.get(host)) | without_address(addresses.get(host))
    }
    rails = _dead_rails(known, sick)
    if rails:
        yield _rail_unhealthy(rails, sick)
    own = {seat: text for seat, text in sick.items() if seat[1] not in rails}
    severity = severity_of(plan, *products_of(found))
    for host, text, numbers in alike_on_host(own):
        yield _net_unhealthy(host, text, numbers, split_known(detect.get(host, {}))[0], severity)
    note_unknown(silent)


def _dead_rails(known: Collection[HostDevice], sick: Collection[HostDevice]) -> list[int]:
    """Device numbers that fail on nearly all of at least three hosts: they share a switch."""
    asked, failing = (Counter(number for _, number in seats) for seats in (known, sick))
    return sorted(n for n, hosts in asked.items() if hosts >= 3 and failing[n] >= NEARLY_ALL * hosts)


def _rail_unhealthy(rails: list[int], sick: Mapping[HostDevice, str]) -> Problem:
    struck = {(host, n): text for (host, n), text in sick.items() if n in rails}
    hosts = {host for host, _ in struck}
    texts = ", ".join(sorted({text[:40] for text in struck.values()}))
    return Problem(
        f"{devices(rails)} of all hosts: their own check of the network fails; look at the switch",
        expected="net health status: Success",
        actual=f"{texts} on {len(hosts)} hosts",
        subject=devices(rails),
        where=tuple(Place(host=host, device=n) for host, n in struck),
        confidence=Confidence.STRONG,
        evidence=tuple(
            Evidence(f"{host}: hccn_tool -i {n} -net_health -g", text[:80])
            for (host, n), text in list(struck.items())[:SHOWN]
        ),
        values={"device": tuple(str(number) for number in rails)},
    )


def _net_unhealthy(
    host: str,
    text: str,
    numbers: list[int],
    towards: Mapping[int, str | None],
    severity: Severity | None,
) -> Problem:
    inside = [number for number in numbers if _inside(towards.get(number))]
    reserved = "; its detect address belongs to the inside of the server" if inside == numbers else ""
    return problem_of(
        numbers,
        "its own check of the network fails" + reserved,
        *(
            Evidence(
                f"hccn_tool -i {number} -net_health -g",
                f"{text[:80]}; detect address {towards.get(number) or 'not known'}",
            )
            for number in numbers[:SHOWN]
        ),
        expected="net health status: Success",
        actual=f"net health status: {text[:80]}",
        host=host,
        severity=severity,
    )


def _inside(detect: str | None) -> bool:
    try:
        return detect is not None and ip_address(detect) in VIRTUAL
    except ValueError:
        return False

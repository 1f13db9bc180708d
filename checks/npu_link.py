"""Links of Ascend devices: up, healthy, and with something at their other end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import ip_address, ip_network

from doctor.api import PLAN, Backend, Evidence, JobPlan, Problem, Severity, Undecided, check, maybe
from doctor.facts.hccn import (
    HCCN_CONF,
    NPU_ADDRESSES,
    NPU_DETECT,
    NPU_LINKS,
    NPU_NEIGHBOURS,
    NPU_NET_HEALTH,
    NPU_PORTS,
    Address,
    Neighbour,
    PerDevice,
    Port,
    told,
)
from doctor.facts.seats import alike, of_host, problem_of
from doctor.facts.system import DEVICES, Devices

HEALTHY = ("success", "init")
"""Init: the detect address is not set, which is a matter of its own."""
VIRTUAL = ip_network("192.168.0.0/21")
"""The segments of the virtual interfaces inside of a server, 192.168.0.x to 192.168.7.x."""
SHOWN = 4


@check(
    "device-link-down",
    NPU_LINKS,
    DEVICES,
    PLAN,
    maybe(NPU_PORTS),
    remedy="look-at-npu-link",
    backends=(Backend.HCCL,),
)
def device_link_down(
    links: PerDevice[bool],
    devices: Devices,
    plan: JobPlan,
    ports: PerDevice[tuple[Port, ...]] | None,
) -> Iterator[Problem]:
    """The network link of an NPU is down.

    Why it matters: no other host reaches the device; HCCL waits for its connection until the timeout, and the
    error names the ranks that waited (EI0006).

    What to do: look at the cable, the optical module and the switch port; plug them in anew. On Atlas 950 a
    device is down when none of its ports is up. Where all links of the only host of a job are down it is a
    warning: its devices reach each other inside of the server.
    """
    if devices.product == "atlas-950":
        if ports is None:
            raise Undecided("the ports of its NPUs could not be asked")
        lanes, why = of_host(ports, plan)
        known = {device: any(port.up for port in own) for device, own in lanes.items() if own}
        actual = "no port is up"
    else:
        known, why = of_host(links, plan)
        actual = "link status: DOWN"
    down = [device for device, up in known.items() if not up]
    if down:
        unused = not plan.several_hosts and not why and len(down) == len(known)
        yield problem_of(
            down,
            "its link is down",
            *(Evidence(f"hccn_tool -i {device} -link -g", actual) for device in down[:SHOWN]),
            expected="link status: UP",
            actual=actual,
            severity=Severity.WARN if unused else None,
            values={"device": tuple(str(device) for device in down[:SHOWN])},
        )
    if why:
        raise Undecided(why)


@check(
    "device-net-unhealthy",
    NPU_NET_HEALTH,
    PLAN,
    maybe(NPU_LINKS),
    maybe(NPU_ADDRESSES),
    maybe(NPU_DETECT),
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
    health: PerDevice[str],
    plan: JobPlan,
    links: PerDevice[bool] | None,
    addresses: PerDevice[Address | None] | None,
    detect: PerDevice[str | None] | None,
) -> Iterator[Problem]:
    """An NPU's own check of its network fails.

    Why it matters: the device sends to its detect address (the gateway or switch) all the time, and hears
    nothing: what HCCL sends is lost as well.

    How it is known: `hccn_tool -net_health -g`; Success is healthy, and so is Init, which only says that no
    detect address is set. Devices without a link or an address are left to the checks of these.

    What to do: see that the detect address is right and answers, and look at VLAN and routing of the switch.
    An address from 192.168.0.0 to 192.168.7.255 is a wrong one: these belong to the inside of the server.
    """
    known, why = of_host(health, plan)
    out = _without_link(links) | _without_address(addresses)
    sick = {n: text for n, text in known.items() if n not in out and text.strip().lower() not in HEALTHY}
    towards = told(detect)[0] if detect else {}
    for text, numbers in alike(sick):
        inside = [number for number in numbers if _inside(towards.get(number))]
        reserved = "; its detect address belongs to the inside of the server" if inside == numbers else ""
        yield problem_of(
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
            values={"device": tuple(str(number) for number in numbers[:SHOWN])},
        )
    if why:
        raise Undecided(why)


def _without_link(links: PerDevice[bool] | None) -> set[int]:
    return {device for device, up in (told(links)[0] if links else {}).items() if not up}


def _without_address(addresses: PerDevice[Address | None] | None) -> set[int]:
    return {device for device, own in (told(addresses)[0] if addresses else {}).items() if own is None}


def _inside(detect: str | None) -> bool:
    try:
        return detect is not None and ip_address(detect) in VIRTUAL
    except ValueError:
        return False


@check(
    "device-detect-unset",
    NPU_DETECT,
    PLAN,
    maybe(NPU_ADDRESSES),
    maybe(HCCN_CONF),
    severity=Severity.WARN,
    remedy="set-npu-detect",
    backends=(Backend.HCCL,),
)
def device_detect_unset(
    detect: PerDevice[str | None],
    plan: JobPlan,
    addresses: PerDevice[Address | None] | None,
    conf: Mapping[int, Mapping[str, str]] | None,
) -> Iterator[Problem]:
    """An NPU does not watch its network: no detect address is set.

    Why it matters: without one the device's network health stays at Init, and a broken path shows only when a
    job hangs.

    What to do: set it to the gateway or the switch's address of the device's port
    (`hccn_tool -i N -netdetect -s address A`).
    """
    known, why = of_host(detect, plan)
    out = _without_address(addresses)
    unset = [device for device, address in known.items() if address is None and device not in out]
    if unset:
        planned = {(conf or {}).get(device, {}).get("netdetect") for device in unset}
        values: dict[str, str | int | tuple[str, ...]] = {"device": tuple(str(device) for device in unset)}
        if len(planned) == 1 and None not in planned:
            values |= {"detect": str(planned.pop())}
        yield problem_of(
            unset,
            "no detect address is set",
            *(Evidence(f"hccn_tool -i {n} -netdetect -g", "not set") for n in unset[:SHOWN]),
            expected="the address of the gateway or switch",
            actual="none",
            values=values,
        )
    if why:
        raise Undecided(why)


@check(
    "device-no-lldp",
    NPU_NEIGHBOURS,
    PLAN,
    maybe(NPU_LINKS),
    severity=Severity.WARN,
    remedy="look-at-npu-neighbour",
    backends=(Backend.HCCL,),
)
def device_no_lldp(
    neighbours: PerDevice[Neighbour | None], plan: JobPlan, links: PerDevice[bool] | None
) -> Iterator[Problem]:
    """The switch does not tell an NPU which port it is plugged into.

    Why it matters: without LLDP a wrong cable cannot be told from a right one, and nobody knows which port of
    the switch to look at.

    What to do: switch LLDP on at the port of the switch. Devices without a link are left out.
    """
    known, why = of_host(neighbours, plan)
    out = _without_link(links)
    alone = [device for device, neighbour in known.items() if neighbour is None and device not in out]
    if alone:
        yield problem_of(
            alone,
            "no neighbour announces itself by LLDP",
            *(Evidence(f"hccn_tool -i {n} -lldp -g", "no neighbour") for n in alone[:SHOWN]),
            expected="the port of a switch",
            actual="none",
            values={"device": tuple(str(device) for device in alone[:SHOWN])},
        )
    if why:
        raise Undecided(why)

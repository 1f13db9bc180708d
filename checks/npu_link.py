"""Links of Ascend devices: up, healthy, and with a known neighbour."""

from collections.abc import Iterator, Mapping

from doctor.api import (
    HERE,
    PLAN,
    Backend,
    Damage,
    Evidence,
    Here,
    JobPlan,
    Problem,
    Severity,
    Undecided,
    check,
    maybe,
)
from doctor.facts.ascend.hccn_tool import PerDevice
from doctor.facts.ascend.network import HCCN_CONF, NPU_ADDRESSES, NPU_DETECT, NPU_LINKS, Address
from doctor.facts.ascend.ports import NPU_NEIGHBOURS, NPU_PORTS, Neighbour
from doctor.facts.system import DEVICES, Devices
from doctor.rules.devices import of_host, problem_of, without_address, without_link
from doctor.rules.npu_segments import fabric_unused

SHOWN = 4
ASK_950 = "hccn_tool -g -dev_info -i {}"


@check(
    "device-link-down",
    NPU_LINKS,
    DEVICES,
    PLAN,
    HERE,
    maybe(NPU_PORTS),
    maybe(NPU_ADDRESSES),
    damage=Damage.GONE,
    remedy="look-at-npu-link",
    backends=(Backend.HCCL,),
)
def device_link_down(
    links: PerDevice[bool],
    devices: Devices,
    plan: JobPlan,
    here: Here,
    ports: PerDevice[tuple[bool, ...]] | None,
    addresses: PerDevice[Address | None] | None,
) -> Iterator[Problem]:
    """The network link of an NPU is down.

    Why it matters: no other host reaches the device; HCCL waits for its connection until the timeout, and the
    error names the ranks that waited (EI0006).

    How it is known: `hccn_tool -i 0 -link -g` of each device.

    What to do: check the cable, the optical module and the switch port; plug them in again. On Atlas 950 a
    device is down when none of its ports is up. It is a warning if the job does not need it: on one host,
    whose devices reach each other inside the server (on Atlas training servers only if all links are down),
    and on an Atlas A3 host without any link and address, which may not be cabled since its super pod has its
    own network.
    """
    if devices.product == "atlas-950":
        if ports is None:
            raise Undecided("the ports of its NPUs could not be read")
        lanes, why = of_host(ports, plan, here.name)
        known = {device: any(up) for device, up in lanes.items() if up}
        actual, ask = "no port is up", ASK_950
    else:
        known, why = of_host(links, plan, here.name)
        actual, ask = "link status: DOWN", "hccn_tool -i {} -link -g"
    down = [device for device, up in known.items() if not up]
    if down:
        none_up = not why and len(down) == len(known)
        pod_only = devices.product == "atlas-a3" and without_address(addresses) >= known.keys()
        may_do_without = fabric_unused(plan, devices.product) or (
            none_up and (pod_only or not plan.several_hosts)
        )
        yield problem_of(
            down,
            "its link is down",
            *(Evidence(ask.format(device), actual) for device in down[:SHOWN]),
            expected="link status: UP",
            actual=actual,
            severity=Severity.WARN if may_do_without else None,
            remedy="look-at-npu-ports" if ask == ASK_950 else None,
        )
    if why:
        raise Undecided(why)


@check(
    "device-detect-unset",
    NPU_DETECT,
    PLAN,
    HERE,
    maybe(NPU_ADDRESSES),
    maybe(HCCN_CONF),
    damage=Damage.RISK,
    severity=Severity.WARN,
    remedy="set-npu-detect",
    backends=(Backend.HCCL,),
)
def device_detect_unset(
    detect: PerDevice[str | None],
    plan: JobPlan,
    here: Here,
    addresses: PerDevice[Address | None] | None,
    conf: Mapping[int, Mapping[str, str]] | None,
) -> Iterator[Problem]:
    """An NPU does not watch its network: no detect address is set.

    Why it matters: without one the device's network health stays at Init, and a broken path shows only when a
    job hangs.

    What to do: set it to the gateway or the switch's address of the device's port
    (`hccn_tool -i N -netdetect -s address A`).
    """
    known, why = of_host(detect, plan, here.name)
    out = without_address(addresses)
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
    HERE,
    maybe(NPU_LINKS),
    damage=Damage.RISK,
    severity=Severity.WARN,
    remedy="look-at-npu-neighbour",
    backends=(Backend.HCCL,),
)
def device_no_lldp(
    neighbours: PerDevice[Neighbour | None], plan: JobPlan, here: Here, links: PerDevice[bool] | None
) -> Iterator[Problem]:
    """The switch does not tell an NPU which port it is plugged into.

    Why it matters: without LLDP a wrong cable cannot be distinguished from a right one, and the port of the
    switch to check is unknown.

    What to do: switch LLDP on at the port of the switch. Devices without a link are left out.
    """
    known, why = of_host(neighbours, plan, here.name)
    out = without_link(links)
    alone = [device for device, neighbour in known.items() if neighbour is None and device not in out]
    if alone:
        yield problem_of(
            alone,
            "no neighbour announces itself by LLDP",
            *(Evidence(f"hccn_tool -i {n} -lldp -g", "no neighbour") for n in alone[:SHOWN]),
            expected="the port of a switch",
            actual="none",
        )
    if why:
        raise Undecided(why)

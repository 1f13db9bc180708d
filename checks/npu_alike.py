"""Settings of Ascend links that must be the same on every device of the job."""

from collections.abc import Iterator, Mapping

from doctor.api import (
    PLAN,
    Backend,
    Damage,
    Evidence,
    JobPlan,
    Problem,
    Scope,
    Severity,
    Undecided,
    check,
    maybe,
)
from doctor.facts.ascend.hccn_tool import PerDevice, split_known
from doctor.facts.ascend.network import NPU_LINKS, NPU_SPEEDS, NPU_TLS, Tls
from doctor.facts.system import DEVICES, Devices
from doctor.rules.devices import OddDevices, alike_on_host, note_unknown, odd_ones, of_cluster
from doctor.rules.npu_segments import by_product, products_of, severity_of


@check(
    "device-tls-mismatch",
    NPU_TLS,
    PLAN,
    maybe(DEVICES),
    damage=Damage.BLOCKED,
    scope=Scope.CLUSTER,
    remedy="same-npu-tls",
    backends=(Backend.HCCL,),
)
def device_tls_mismatch(
    said: Mapping[str, PerDevice[Tls]], plan: JobPlan, devices: Mapping[str, Devices]
) -> Iterator[Problem]:
    """TLS is on for some NPUs and off for others, or on with a certificate that has expired.

    Why it matters: a device with TLS cannot connect to one without; both ends report a connect timeout
    (EI0006) and neither says why. With an expired certificate nothing connects.

    What to do: set the switch alike on every device of every host: `hccn_tool -i N -tls -s enable 0` for off,
    `... enable 1` for on. Which of them depends on the site. Replace certificates that have expired. It is a
    warning for a job on one host (except for Atlas training servers), which does not use this network.
    """
    known, silent = of_cluster(said, plan)
    severity = severity_of(plan, *products_of(devices))
    for odd in odd_ones({seat: "TLS on" if tls.on else "TLS off" for seat, tls in known.items()}):
        yield odd.problem(
            "its TLS switch differs from the others'"
            if odd.decided
            else "TLS is on for some and off for others",
            odd.as_said_by("hccn_tool -tls -g"),
            severity=severity,
        )
    expired = {seat: tls.expired for seat, tls in known.items() if tls.on and tls.expired}
    for host, end, numbers in alike_on_host(expired):
        odd = OddDevices.of_host(host, numbers, "a certificate that is valid", f"ended {end[:80]}")
        yield odd.problem(
            "TLS is on and its certificate has expired",
            Evidence("hccn_tool -tls -g", f"end_time[{end[:80]}]"),
            severity=severity,
            remedy="look-at-npu-tls",
        )
    note_unknown(silent)


@check(
    "device-speed-mismatch",
    NPU_SPEEDS,
    DEVICES,
    PLAN,
    maybe(NPU_LINKS),
    damage=Damage.LOAD,
    scope=Scope.CLUSTER,
    severity=Severity.WARN,
    remedy="look-at-npu-link",
    backends=(Backend.HCCL,),
)
def device_speed_mismatch(
    speeds: Mapping[str, PerDevice[int | None]],
    devices: Mapping[str, Devices],
    plan: JobPlan,
    links: Mapping[str, PerDevice[bool]],
) -> Iterator[Problem]:
    """The network link of an NPU runs at a different speed from the others'.

    Why it matters: every collective is as fast as its slowest link. One that fell back to a lower speed (a
    bad cable or module, a wrong setting of the switch port) slows all ranks.

    What to do: check cable, optical module and switch port of the device that differs.
    """
    known, silent = of_cluster(speeds, plan)
    down = {(host, n) for host, own in links.items() for n, up in split_known(own)[0].items() if not up}
    judged = {seat: speed for seat, speed in known.items() if seat not in down}
    for own in by_product(judged, devices).values():
        for odd in odd_ones({seat: f"{speed} Mb/s" for seat, speed in own.items() if speed}):
            yield odd.problem(
                "its link's speed differs from the others'" if odd.decided else "links differ in speed",
                odd.as_said_by("hccn_tool -speed -g"),
            )
    if judged and not any(judged.values()):
        raise Undecided("hccn_tool does not know the speed of any link")
    note_unknown(silent)

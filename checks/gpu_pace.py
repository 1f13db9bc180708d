"""Why an NVIDIA GPU is slower, or less safe, than its like: its clock is held down, its power, its ECC."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

from doctor.api import (
    NVIDIA,
    PLAN,
    Damage,
    Evidence,
    JobPlan,
    Problem,
    Scope,
    Severity,
    check,
    maybe,
)
from doctor.facts.device_pace import SLOWDOWNS
from doctor.facts.gpus import Gpus, gpus_named
from doctor.facts.nvidia.gpus import GPU_HEALTH, GPUS, NvidiaHealth
from doctor.facts.nvidia.nvidia_smi import told
from doctor.rules.devices import alike, alike_on_host
from doctor.rules.gpus import cuda_gpus, gpu_problem

REASONS = {int(bit, 16): words for bit, words in SLOWDOWNS["nvidia"].items()}
"""The bits of NVML."""
HARDWARE, SUM, SOFTWARE = 0x8 | 0x40 | 0x80, 0x8, 0x20
"""`SUM` is set with the other two of the hardware. The driver slows down a little before it."""
NEAR = 5
"""Degrees below the limit of a GPU; a sound one at work has 20 and more."""
ENOUGH = 3
"""The number of other GPUs of the model that must agree."""


@check("gpu-throttled", GPU_HEALTH, GPUS, PLAN, damage=Damage.LOAD, remedy="cool-gpu", vendor=NVIDIA)
def gpu_throttled(health: Mapping[int, NvidiaHealth], gpus: Gpus, plan: JobPlan) -> Iterator[Problem]:
    """The hardware holds the clock of a GPU down: it is too hot, or its power supply asks for it.

    Why it matters: the GPU computes at half its speed or less, and all others wait for it in every step.

    How it is known: the driver says now why the clock is low (`clocks_event_reasons`, in older drivers
    `clocks_throttle_reasons`). Only what the hardware does is a fault: a thermal slowdown, a power brake. If
    the driver slows the GPU down because it is warm, that is a warning, and so is a GPU that is 5 degrees or
    less below its limit, as newer ones say (`temperature.gpu.tlimit`). A GPU that reached its power limit,
    that is idle, or whose clocks were set by hand, is not named.

    What to do: look at fans, filters and the temperature of the air or the water; after a power brake, at the
    power supplies and their log in the BMC.
    """
    mine = {gpu.index: _bits(health[gpu.index]) for gpu in cuda_gpus(gpus, plan) if gpu.index in health}
    for kind, severity in ((HARDWARE, None), (SOFTWARE, Severity.WARN)):
        held = {
            index: ", ".join(words for bit, words in REASONS.items() if bits & kind & bit)
            for index, bits in mine.items()
            if bits & kind and not (severity and bits & HARDWARE)
        }
        for reasons, indices in alike(held):
            yield gpu_problem(
                indices,
                "the hardware holds the clock of the GPU down"
                if severity is None
                else "the driver slows the GPU down because it is warm",
                Evidence(
                    "nvidia-smi --query-gpu=clocks_event_reasons.active", f"{gpus_named(indices)}: {reasons}"
                ),
                expected="neither heat nor the power supply holds it down",
                actual=reasons,
                severity=severity,
            )
    left = {index: _margin(health[index]) for index, bits in mine.items() if not bits & (HARDWARE | SOFTWARE)}
    for margin, indices in alike({index: degrees for index, degrees in left.items() if degrees <= NEAR}):
        yield gpu_problem(
            indices,
            "the GPU is nearly as hot as it may be",
            Evidence("nvidia-smi --query-gpu=temperature.gpu.tlimit", f"{gpus_named(indices)}: {margin}"),
            expected=f"more than {NEAR} degrees below its limit",
            actual=f"{margin} degrees",
            severity=Severity.WARN,
        )


def _margin(own: NvidiaHealth) -> int:
    """How many degrees it may still warm up; many if it does not say so, as GPUs before Ada and Hopper."""
    found = re.fullmatch(r"-?[0-9]{1,3}", own.said.get("temperature.gpu.tlimit", ""))
    return int(found[0]) if found else 999


def _bits(own: NvidiaHealth) -> int:
    """Why its clock is low; old drivers call it by the second name."""
    names = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
    text = next((own.said[name] for name in names if name in own.said), "")
    bits = int(text, 16) if re.fullmatch(r"0x[0-9A-Fa-f]{1,16}", text) else 0
    return bits & ~SUM if bits & HARDWARE & ~SUM else bits


def _watts(own: NvidiaHealth, name: str) -> int:
    """`619.57 W` -> 619; 0 if it is unknown."""
    found = re.match(r"[0-9]{1,5}", own.said.get(name, ""))
    return int(found[0]) if found else 0


Seats = Mapping[tuple[str, int], NvidiaHealth]


def _by_model(
    health: Mapping[str, Mapping[int, NvidiaHealth]], gpus: Mapping[str, Gpus], plan: JobPlan
) -> Iterator[Seats]:
    """The job's GPUs of each model."""
    models: dict[str, dict[tuple[str, int], NvidiaHealth]] = defaultdict(dict)
    for host, listed in gpus.items():
        own = health.get(host, {})
        for gpu in () if listed.silent else cuda_gpus(listed, plan):
            if gpu.index in own:
                models[gpu.name][host, gpu.index] = own[gpu.index]
    yield from models.values()


@check(
    "gpu-power-low",
    GPU_HEALTH,
    maybe(GPUS),
    PLAN,
    damage=Damage.LOAD,
    scope=Scope.CLUSTER,
    severity=Severity.WARN,
    vendor=NVIDIA,
)
def gpu_power_low(
    health: Mapping[str, Mapping[int, NvidiaHealth]], gpus: Mapping[str, Gpus], plan: JobPlan
) -> Iterator[Problem]:
    """A GPU may draw less power than its like, and less than it was made for.

    Why it matters: under load its clock is lower than that of the others, which wait for it in every step.

    How it is known: its limit in force is under its default, while most of the job's GPUs of the same model
    have theirs. Limits that are the same everywhere are a decision. If the driver was asked for more than is
    in force, the machine itself (its BMC) holds it down, and nvidia-smi cannot lift that.

    What to do: give it the default again, or find in the BMC why the machine allows less.
    """
    for seats in _by_model(health, gpus, plan):
        known = {
            seat: tuple(
                _watts(own, name) for name in ("enforced.power.limit", "power.default_limit", "power.limit")
            )
            for seat, own in seats.items()
        }
        known = {seat: told for seat, told in known.items() if told[0] and told[1]}
        low = {seat: told for seat, told in known.items() if told[0] < told[1]}
        if not low or len(known) - len(low) < max(ENOUGH, len(low) + 1):
            continue
        for host, (watts, usual, asked), indices in alike_on_host(low):
            by_host = asked > watts
            numbers = ",".join(map(str, indices))
            yield gpu_problem(
                indices,
                "the GPU may draw less power than the others of its model",
                Evidence(
                    "nvidia-smi --query-gpu=enforced.power.limit,power.limit,power.default_limit",
                    f"{gpus_named(indices)}: {watts} W, asked for {asked or '?'} W, by default {usual} W",
                ),
                host=host,
                expected=f"{usual} W, as {len(known) - len(low)} other GPUs of the model have",
                actual=f"{watts} W",
                commands=(
                    f"nvidia-smi -q -d POWER -i {numbers}    # the BMC of the machine sets a lower limit"
                    if by_host
                    else f"sudo nvidia-smi -pl {usual} -i {numbers}",
                ),
            )


@check(
    "gpu-ecc-off",
    GPU_HEALTH,
    maybe(GPUS),
    PLAN,
    damage=Damage.WRONG,
    scope=Scope.CLUSTER,
    severity=Severity.WARN,
    vendor=NVIDIA,
)
def gpu_ecc_off(
    health: Mapping[str, Mapping[int, NvidiaHealth]], gpus: Mapping[str, Gpus], plan: JobPlan
) -> Iterator[Problem]:
    """A GPU's memory corrects no errors (ECC is off), unlike that of its like.

    Why it matters: a bit that flips there becomes a wrong number in the model, and nobody is told.

    How it is known: ECC is off, or will be after the next restart, and most of the job's GPUs of the same
    model have it on.

    What to do: switch it on, and restart the GPU or the host.
    """
    for seats in _by_model(health, gpus, plan):
        on = sum(own.said.get("ecc.mode.current") == "Enabled" for own in seats.values())
        odd = {
            seat: (own.said["ecc.mode.current"], told(own.said.get("ecc.mode.pending", "")))
            for seat, own in seats.items()
            if told(own.said.get("ecc.mode.current", ""))
            and "Disabled" in (own.said["ecc.mode.current"], own.said.get("ecc.mode.pending"))
        }
        if on - sum(own[0] == "Enabled" for own in odd.values()) < max(ENOUGH, len(odd) + 1):
            continue
        for host, (ecc, later), indices in alike_on_host(odd):
            yield gpu_problem(
                indices,
                "ECC of the GPU's memory is off"
                if ecc == "Disabled"
                else "ECC of the GPU's memory will be off after the next restart",
                Evidence(
                    "nvidia-smi --query-gpu=ecc.mode.current,ecc.mode.pending",
                    f"{gpus_named(indices)}: {ecc}, {later or 'unknown'}",
                ),
                host=host,
                expected=f"Enabled, as on {on} GPUs of the model",
                actual=f"{ecc}, after a restart {later or 'unknown'}",
                commands=(
                    f"sudo nvidia-smi -e 1 -i {','.join(map(str, indices))}    # then restart the host",
                ),
            )

"""Whether the NVIDIA GPUs answer their driver and have no memory errors."""

import re
from collections.abc import Iterator, Mapping

from doctor.api import (
    HERE,
    NVIDIA,
    PLAN,
    Confidence,
    Damage,
    Evidence,
    Here,
    JobPlan,
    Problem,
    Severity,
    Skip,
    Undecided,
    check,
    maybe,
)
from doctor.facts.gpus import Gpus, bus_id, gpus_named
from doctor.facts.nvidia.gpus import GPU_HEALTH, GPUS, NvidiaHealth
from doctor.facts.nvidia.nvidia_smi import GPU
from doctor.facts.software import ENVIRONMENT, Environment
from doctor.rules.devices import alike, ranks_said
from doctor.rules.gpus import cuda_gpus, gpu_problem, memory_errors
from doctor.rules.login import devices_are_chosen, environment_of

_ASKED = "nvidia-smi --query-gpu="

_NONE_FOUND = "no devices were found"
_CANNOT = (
    (
        r"version mismatch",
        "the loaded NVIDIA driver and its library are of different versions",
        "restart-gpu-driver",
    ),
    (
        r"couldn't communicate with the nvidia driver",
        "nvidia-smi cannot reach the NVIDIA driver",
        "restart-gpu-driver",
    ),
    (r"failed to initialize nvml", "the NVIDIA library cannot be initialised", "restart-gpu-driver"),
    (_NONE_FOUND, "the NVIDIA driver finds no GPU", "find-gpu"),
)
_NO_HANDLE = re.compile(r"unable to determine the device handle for gpu ?(.{1,80})", re.IGNORECASE)


@check(
    "gpu-unhealthy",
    GPUS,
    PLAN,
    maybe(GPU_HEALTH),
    damage=Damage.GONE,
    causes=("gpu-ecc", "gpu-xid"),
    remedy="reset-gpu",
    vendor=NVIDIA,
    tools=(GPU,),
)
def gpu_unhealthy(gpus: Gpus, plan: JobPlan, health: Mapping[int, NvidiaHealth] | None) -> Iterator[Problem]:
    """A GPU or its driver does not answer, wants a reset or a restart, or no program may use it.

    Why it matters: the rank on this GPU fails with "CUDA-capable device(s) is/are busy or unavailable", or
    hangs at its first call, and all others wait for it.

    What to do: end the processes on the GPU and reset it; a lost GPU comes back only with a restart of the
    host. A driver and a library of different versions mean an upgrade without a restart: restart the host.
    """
    if gpus.silent:
        yield _silent(gpus.silent)
        return
    complaints = list(_complaints(gpus))
    yield from complaints
    mine = cuda_gpus(gpus, plan)
    for trouble, indices in alike({gpu.index: gpu.trouble.lower() for gpu in mine if gpu.trouble}):
        yield _sick(trouble, indices)
    fit = [gpu.index for gpu in mine if not gpu.trouble]
    told = {index: health[index] for index in fit if health and index in health}
    wishes = {i: own.action for i, own in told.items() if own.action.lower() not in ("", "none")}
    for action, indices in alike(wishes):
        yield gpu_problem(
            indices,
            "the driver asks for an action to recover the GPU",
            Evidence("nvidia-smi --query-gpu=gpu_recovery_action", action),
            expected="None",
            actual=action,
            remedy="revive-gpu" if "reboot" in action.lower() else None,
        )
    closed = [index for index, own in told.items() if own.compute == "Prohibited"]
    if closed:
        yield gpu_problem(
            closed,
            "no program can compute on the GPU",
            Evidence("nvidia-smi --query-gpu=compute_mode", "Prohibited"),
            expected="Default",
            actual="Prohibited",
            severity=Severity.WARN if plan.of_node else None,  # an epilog may close it until the next job
            remedy="open-gpu",
        )
    if not gpus.listed and not complaints and not gpus.denied:
        raise Undecided(f"nvidia-smi lists no GPU: {' '.join(gpus.said[:2])}")


def _silent(why: str) -> Problem:
    return Problem(
        "nvidia-smi does not answer",
        expected="an answer within seconds",
        actual=why,
        severity=Severity.WARN,
        confidence=Confidence.SUSPECT,
        evidence=(Evidence("nvidia-smi --query-gpu", why),),
        remedy="wake-nvidia-smi",
    )


def _complaints(gpus: Gpus) -> Iterator[Problem]:
    for line in gpus.said:
        handle = _NO_HANDLE.search(line)
        if handle and "not supported" not in line.lower():
            yield _unreachable(line, handle[1])
        if "inforom is corrupted" in line.lower():
            yield _inforom(line)
    for pattern, summary, remedy in _CANNOT:
        line = next((line for line in gpus.said if re.search(pattern, line, re.IGNORECASE)), "")
        if line and not (gpus.denied and pattern == _NONE_FOUND):
            yield Problem(summary, actual=line, evidence=(Evidence("nvidia-smi", line),), remedy=remedy)
            return


def _unreachable(line: str, which: str) -> Problem:
    """Older drivers name the PCI bus, newer ones the index."""
    bus, index = bus_id(which), re.match(r"(\d{1,3}):", which)
    indices = [int(index[1])] if index and not bus else []
    return gpu_problem(
        indices,
        "nvidia-smi lists a GPU that it cannot reach",
        Evidence("nvidia-smi", line),
        expected="every GPU answers",
        actual=line,
        subject=gpus_named(indices) if indices else f"GPU at {bus or which[:20]}",
        remedy="revive-gpu",
    )


def _inforom(line: str) -> Problem:
    return Problem(
        "the GPU's own record (infoROM) is corrupted",
        actual=line,
        subject=f"GPU at {bus_id(line)}" if bus_id(line) else None,
        severity=Severity.WARN,
        evidence=(Evidence("nvidia-smi", line),),
        remedy="replace-gpu",
    )


def _sick(trouble: str, indices: list[int]) -> Problem:
    return gpu_problem(
        indices,
        {
            "gpu is lost": "the GPU has fallen off the bus",
            "gpu requires reset": "the GPU must be reset before it is used",
        }.get(trouble, "nvidia-smi cannot read the GPU"),
        Evidence("nvidia-smi --query-gpu", f"{gpus_named(indices)}: [{trouble}]"),
        expected="every value is readable",
        actual=trouble,
        severity=Severity.WARN if trouble == "unknown error" else None,
        remedy="revive-gpu" if trouble == "gpu is lost" else None,
    )


@check("gpu-ecc", GPU_HEALTH, GPUS, PLAN, damage=Damage.WRONG, remedy="reset-gpu", vendor=NVIDIA)
def gpu_ecc(health: Mapping[int, NvidiaHealth], gpus: Gpus, plan: JobPlan) -> Iterator[Problem]:
    """A GPU's memory had errors that could not be corrected, or waits for a reset to replace bad cells.

    Why it matters: such an error ends the process that used the memory, and all ranks with it. Rows that are
    marked for replacement get worse until the next reset.

    What to do: end the processes on the GPU and reset it. A GPU whose rows can no longer be replaced must be
    exchanged. If the driver itself reports that no action is needed, new processes may use the GPU.
    """
    mine = {gpu.index: health[gpu.index] for gpu in cuda_gpus(gpus, plan) if gpu.index in health}
    failed = [index for index, own in mine.items() if own.remap_failed]
    if failed:
        yield memory_errors(
            failed,
            "bad rows of its memory could not be replaced",
            "a row that could not be remapped",
            f"{_ASKED}remapped_rows.failure",
            remedy="replace-gpu",
        )
    hurt = {i: (own.uncorrected, own.action.lower() == "none") for i, own in mine.items() if own.uncorrected}
    for (count, fit), indices in alike(hurt):
        yield memory_errors(
            indices,
            "its memory had errors that could not be corrected",
            f"{count} since the last reset",
            f"{_ASKED}ecc.errors.uncorrected.volatile.total",
            severity=Severity.WARN if fit else None,
        )
    for field, pending in (
        ("remapped_rows.pending", {i for i, own in mine.items() if own.remap_pending}),
        ("retired_pages.pending", {i for i, own in mine.items() if own.retirement_pending}),
    ):
        if waiting := sorted(pending - {*failed}):
            summary = "bad cells of its memory will be replaced at the next reset"
            asked = f"{_ASKED}{field}"
            yield memory_errors(waiting, summary, "a reset is pending", asked, severity=Severity.WARN)


@check("gpu-split", GPU_HEALTH, GPUS, maybe(ENVIRONMENT), PLAN, HERE, damage=Damage.GONE, vendor=NVIDIA)
def gpu_split(
    health: Mapping[int, NvidiaHealth], gpus: Gpus, login: Environment | None, plan: JobPlan, here: Here
) -> Iterator[Problem]:
    """GPUs are split into instances (MIG), and too few whole ones are left for the ranks of the host.

    Why it matters: a rank opens a single instance of a split GPU, with a part of its memory, and NCCL joins
    no instances. The check applies if somebody says how many ranks a host has, and neither
    CUDA_VISIBLE_DEVICES nor Slurm chooses the devices.

    What to do: switch MIG off for GPUs that are meant to be whole (`nvidia-smi -mig 0`), or start fewer
    ranks.
    """
    said = ranks_said(plan, here.name)
    if said is None:
        raise Skip("nobody says how many ranks the host has")
    named = any(name in environment_of(plan, login) for name in NVIDIA.visible)
    if named or devices_are_chosen(plan, login):
        return
    split = [gpu.index for gpu in gpus.listed if gpu.index in health and health[gpu.index].mig]
    whole = len(gpus.listed) - len(split)
    if split and whole < said.value <= len(gpus.listed):
        yield Problem(
            "GPUs are split into instances (MIG), and too few whole ones are left for the ranks",
            expected=f"{said.value} whole GPUs, one for each rank",
            actual=f"{whole} of {len(gpus.listed)}",
            subject=gpus_named(split),
            evidence=(Evidence("nvidia-smi --query-gpu=mig.mode.current", f"{gpus_named(split)}: Enabled"),),
            commands=("nvidia-smi -L", "sudo nvidia-smi -mig 0"),
        )

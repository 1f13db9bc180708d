"""NVIDIA GPUs of a host: all there, and free for the job."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from doctor.api import (
    EXPECT,
    EXPECTS,
    PLAN,
    Backend,
    Confidence,
    Evidence,
    Expect,
    JobPlan,
    Place,
    Problem,
    Scope,
    Severity,
    Skip,
    Undecided,
    check,
    maybe,
)
from doctor.facts.nvidia import (
    GPU_HEALTH,
    GPU_PROCESSES,
    GPUS,
    VISIBLE,
    Gpu,
    GpuProcess,
    Gpus,
    Health,
    gpus_named,
    is_named,
    visible,
    wishes,
)
from doctor.facts.seats import alike
from doctor.facts.system import DEVICES, VIEW, Devices

NEARLY_ALL = 0.9
SHOWN = 8
SERVICES = re.compile(r"nvidia-cuda-mps-(server|control)|nv-hostengine|X(org|wayland)|gnome-shell|kwin_\w+")
"""Processes that are on a GPU although no job runs there."""
CONTAINER = "container"
NOBODY_SAID = "no accelerator found"
"""Where a job is taken for one without accelerators for no other reason."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """How many GPUs a host must have, who says so, and what to say where it has fewer."""

    count: int
    why: str
    summary: str = "GPUs are missing"
    confidence: Confidence = Confidence.CERTAIN
    remedy: str | None = None


@check(
    "gpu-missing",
    DEVICES,
    EXPECTS,
    PLAN,
    maybe(GPUS),
    maybe(VIEW),
    scope=Scope.CLUSTER,
    causes=("gpu-unhealthy", "gpu-xid"),
    remedy="find-gpu",
    backends=(Backend.NCCL, Backend.GLOO),
)
def gpu_missing(
    devices: Mapping[str, Devices],
    expects: Mapping[str, Expect],
    plan: JobPlan,
    listed: Mapping[str, Gpus],
    views: Mapping[str, str],
) -> Iterator[Problem]:
    """A host has fewer GPUs than it should have.

    Why it matters: the rank that was to use the GPU stops at its start ("invalid device ordinal"), or shares
    one with another rank (NCCL: "Duplicate GPU detected"), and all others wait for it.

    How it is known: what nvidia-smi lists against /dev/nvidia*, against what is expected (--expect
    devices=8), the ranks of the host, and the other hosts of the job. CUDA_VISIBLE_DEVICES is honoured: only
    the GPUs that it names are looked for. Where no host shows an accelerator, GPUs are looked for all the
    same if devices are expected, or NVIDIA's are on the PCI bus (a warning), unless --backend gloo is given.

    What to do: where the driver is not loaded, the kernel log says why (nouveau in its place, a module built
    for another kernel, Secure Boot). A GPU that fell off the bus comes back with a restart; where
    `lspci -d 10de:` misses it too, have it reseated. Containers are started with --gpus.
    """
    words = wishes(plan)
    if words == ():
        raise Skip(f"{VISIBLE} leaves the job no GPU")
    asked = {host: expects.get(host, Expect()) for host in devices}
    guessed = plan.backend.value is Backend.GLOO
    if guessed:
        asked = {h: expect for h, expect in asked.items() if _is_doubtful(devices[h], expect, views.get(h))}
        if not asked or plan.backend.source != NOBODY_SAID:
            raise Skip("only for nccl jobs")
    for host, expect in asked.items():
        own, seen = devices[host], listed.get(host)
        if words is not None and own.gpus:
            yield from _unmet(host, own, seen, words)
            continue
        wanted = _wanted(host, devices, expect, plan, seen, views.get(host))
        if wanted.count > _count(own, seen):
            lost = _missing(host, own, seen, wanted)
            yield replace(lost, severity=Severity.WARN) if guessed and not expect.devices else lost


def _is_doubtful(own: Devices, expect: Expect, view: str | None) -> bool:
    """Whether a host without accelerators should have GPUs, although no other host has any."""
    plugged = own.on_bus.get("nvidia", 0) > 0 and view == "host"
    return plugged or (expect.devices > 0 and not own.on_bus.get("npu"))


def _count(own: Devices, seen: Gpus | None) -> int:
    return len(seen.listed) if seen and not seen.silent else len(own.gpus)


def _unmet(host: str, own: Devices, seen: Gpus | None, words: Sequence[str]) -> Iterator[Problem]:
    """Those that the job wants by name."""
    there = seen.listed if seen and not seen.silent else None
    lost = [
        word
        for word in words
        if (not any(is_named(g, word) for g in there) if there is not None else _beyond(word, own))
    ]
    if lost:
        numbers = [int(word) for word in lost if word.isdigit()]
        yield Problem(
            f"{VISIBLE} names a GPU that is not there",
            expected=f"{VISIBLE}={','.join(words)}",
            actual=f"{_count(own, seen)} GPUs",
            subject=", ".join([gpus_named(numbers)] * bool(numbers) + [w for w in lost if not w.isdigit()]),
            hosts=(host,),
            where=tuple(Place(host=host, device=number) for number in numbers),
            evidence=_evidence(own, seen),
        )


def _beyond(word: str, own: Devices) -> bool:
    return word.isdigit() and int(word) >= len(own.gpus)


def _wanted(
    host: str,
    devices: Mapping[str, Devices],
    expect: Expect,
    plan: JobPlan,
    seen: Gpus | None,
    view: str | None,
) -> Wanted:
    own, ranks = devices[host], plan.host(host).ranks
    there = _count(own, seen)
    if not own.gpus and own.on_bus.get("nvidia") and view == CONTAINER:
        return Wanted(1, "at least one", "no GPU was handed into the container")
    if not own.gpus and own.on_bus.get("nvidia") and not own.nvidia_driver:
        return Wanted(1, "at least one", "the NVIDIA driver is not loaded", remedy="load-gpu-driver")
    usable = len(own.gpus) - (seen.denied if seen else 0)
    if own.gpus and not usable and not there:
        return Wanted(1, "at least one", "this login may use none of the GPUs", remedy="share-gpu")
    if there < usable:
        return Wanted(
            usable,
            "as many as device files",
            "nvidia-smi lists fewer GPUs than there are device files",
            Confidence.STRONG,
        )
    if expect.devices:
        return Wanted(expect.devices, "as expected of this host")
    if ranks and ranks.source not in ("devices found", "default"):
        return Wanted(ranks.value, f"one for each rank ({ranks.source})")
    peers = [len(other.gpus) for name, other in devices.items() if name != host]
    more = [count for count in peers if count > there]
    if more and len(more) >= NEARLY_ALL * len(peers) and not (seen and seen.denied):
        count, votes = Counter(more).most_common(1)[0]
        others = f"as on {votes} other host{'s' if votes > 1 else ''} of the job"
        return Wanted(count, others, confidence=Confidence.STRONG)
    why = "at least one, for an nccl job" if plan.backend.value is Backend.NCCL else "at least one"
    return Wanted(1, why)


def _missing(host: str, own: Devices, seen: Gpus | None, wanted: Wanted) -> Problem:
    count = _count(own, seen)
    bare = not own.gpus and not own.on_bus.get("nvidia")
    return Problem(
        "there is no GPU" if bare else wanted.summary,
        expected=wanted.why if wanted.why.startswith("at least") else f"{wanted.count}, {wanted.why}",
        actual=str(count) if count else "none",
        hosts=(host,),
        where=(Place(host=host),),
        confidence=wanted.confidence,
        evidence=_evidence(own, seen),
        remedy=wanted.remedy,
    )


def _evidence(own: Devices, seen: Gpus | None) -> tuple[Evidence, ...]:
    found = [
        Evidence("/dev/nvidia*", gpus_named(own.gpus) if own.gpus else "none"),
        Evidence("/proc/bus/pci/devices", f"{own.on_bus.get('nvidia', 0)} NVIDIA devices"),
        Evidence("/proc/driver/nvidia/version", own.nvidia_driver or "the driver is not loaded"),
    ]
    if seen:
        lines = [f"{len(seen.listed)} GPUs listed", *([seen.silent] if seen.silent else seen.said)]
        found.append(Evidence("nvidia-smi --query-gpu", "; ".join(lines)[:400]))
    return tuple(found)


@check(
    "gpu-busy",
    GPUS,
    maybe(GPU_PROCESSES),
    maybe(GPU_HEALTH),
    PLAN,
    EXPECT,
    remedy="free-gpu",
    backends=(Backend.NCCL,),
)
def gpu_busy(
    gpus: Gpus,
    processes: tuple[GpuProcess, ...] | None,
    health: Mapping[int, Health] | None,
    plan: JobPlan,
    expect: Expect,
) -> Iterator[Problem]:
    """A GPU is in use by another job, or keeps the memory of one.

    Why it matters: two jobs on one GPU run out of its memory, or slow each other down; a process that was
    left over holds the memory until it is ended.

    How it is known: the compute processes that nvidia-smi lists, and more memory in use than an idle GPU has
    (1024 MB; gpu_idle_mb); it hides the processes of other containers. GPUs in MIG mode are not judged.

    What to do: see whose processes these are, and end what is left over. If they are the job's own, run the
    examination before it starts.
    """
    if not (gpus.listed or gpus.silent or gpus.denied):
        raise Undecided("nvidia-smi lists no GPU")
    whole = [
        gpu for gpu in visible(gpus, plan) if not (health and gpu.index in health and health[gpu.index].mig)
    ]
    own = {gpu.index: _on(gpu, processes or ()) for gpu in whole}
    kinds = {
        gpu.index: (
            tuple(sorted({process.name for process in own[gpu.index]})),
            (gpu.used_mb or 0) > expect.gpu_idle_mb,
        )
        for gpu in whole
    }
    for (names, full), indices in alike(kinds):
        if names or full:
            yield _busy(names, full, [gpu for gpu in whole if gpu.index in indices], own, expect)


def _on(gpu: Gpu, processes: Sequence[GpuProcess]) -> list[GpuProcess]:
    return [p for p in processes if p.uuid == gpu.uuid and not SERVICES.fullmatch(p.name)]


def _busy(
    names: tuple[str, ...],
    full: bool,
    busy: Sequence[Gpu],
    own: Mapping[int, Sequence[GpuProcess]],
    expect: Expect,
) -> Problem:
    shown = ", ".join(name for name in names if name)[:160]
    hidden = "of a process that is not visible from here"
    indices = [gpu.index for gpu in busy]
    return Problem(
        "processes of another job are on it" if names else "its memory is in use",
        expected="no process" if names else f"at most {expect.gpu_idle_mb} MB of its memory in use",
        actual=shown or hidden,
        subject=gpus_named(indices),
        where=tuple(Place(device=index) for index in indices),
        severity=None if full else Severity.WARN,
        confidence=Confidence.CERTAIN if shown else Confidence.STRONG,
        evidence=tuple(
            Evidence(
                "nvidia-smi --query-compute-apps",
                f"GPU {gpu.index}: {gpu.used_mb} MB in use"
                + "".join(f"; pid {p.pid} {p.name} {p.used_mb} MB" for p in own[gpu.index][:SHOWN]),
            )
            for gpu in busy[:SHOWN]
        ),
        values={"device": tuple(f"/dev/nvidia{index}" for index in indices)},
    )

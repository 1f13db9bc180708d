"""NVIDIA GPUs of a host: all there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from doctor.api import (
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
    check,
    maybe,
)
from doctor.facts.nvidia.gpus import GPUS, VISIBLE, Gpus, gpus_named, is_named, wishes
from doctor.facts.system import DEVICES, VIEW, Devices

NEARLY_ALL = 0.9
ENOUGH = 3
"""Other hosts that must agree where it is not known whether their GPUs are the same."""
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
    severity: Severity | None = None


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
    devices=8), the ranks of the host, and the other hosts of the job that have the same GPUs (a warning where
    a single host has more). CUDA_VISIBLE_DEVICES is honoured: only the GPUs that it names are looked for.
    Where no host shows an accelerator, GPUs are looked for all the same if devices are expected, or NVIDIA's
    are on the PCI bus (a warning), unless --backend gloo is given.

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
    if not any(own.gpus or own.on_bus.get("nvidia") for own in devices.values()) and not any(
        expect.devices for expect in asked.values()
    ):
        raise Skip("no host of the job shows a GPU, and none is expected (--expect devices=8 asks for them)")
    for host, expect in asked.items():
        own, seen = devices[host], listed.get(host)
        if words is not None and own.gpus:
            yield from _unmet(host, own, seen, words)
            continue
        wanted = _wanted(host, devices, expect, plan, listed, views.get(host))
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
    listed: Mapping[str, Gpus],
    view: str | None,
) -> Wanted:
    own, seen, ranks = devices[host], listed.get(host), plan.host(host).ranks
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
    by_peers = None if seen and seen.denied else _by_peers(host, devices, listed)
    if by_peers:
        return by_peers
    why = "at least one, for an nccl job" if plan.backend.value is Backend.NCCL else "at least one"
    return Wanted(1, why)


def _by_peers(host: str, devices: Mapping[str, Devices], listed: Mapping[str, Gpus]) -> Wanted | None:
    """As many as on the hosts whose GPUs are the same, or may be; a host that has none fails in any case."""
    there, own = _count(devices[host], listed.get(host)), _names(listed.get(host))
    same: list[int] = []
    unknown: list[int] = []
    for name, other in devices.items():
        names = _names(listed.get(name))
        if name != host and (not own or not names):
            unknown.append(len(other.gpus))
        elif name != host and names == own:
            same.append(len(other.gpus))
    peers = same + unknown
    more = [count for count in peers if count > there]
    if not more or len(more) < NEARLY_ALL * len(peers):
        return None
    count, votes = Counter(more).most_common(1)[0]
    sure = not there or same.count(count) > 1 or votes >= max(ENOUGH, NEARLY_ALL * len(peers))
    return Wanted(
        count,
        f"as on {votes} other host{'s' if votes > 1 else ''} of the job",
        confidence=Confidence.STRONG if sure else Confidence.SUSPECT,
        severity=None if sure else Severity.WARN,
    )


def _names(seen: Gpus | None) -> frozenset[str]:
    """What the host's GPUs are called; nothing where that is not known."""
    return frozenset(gpu.name for gpu in seen.listed if gpu.name) if seen else frozenset()


def _missing(host: str, own: Devices, seen: Gpus | None, wanted: Wanted) -> Problem:
    count = _count(own, seen)
    bare = not own.gpus and not own.on_bus.get("nvidia")
    return Problem(
        "there is no GPU" if bare else wanted.summary,
        expected=wanted.why if wanted.why.startswith("at least") else f"{wanted.count}, {wanted.why}",
        actual=str(count) if count else "none",
        hosts=(host,),
        where=(Place(host=host),),
        severity=wanted.severity,
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

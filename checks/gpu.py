"""Whether all GPUs of a host are present, for each vendor."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from doctor.api import (
    AMD,
    EXPECTS,
    NO_ACCELERATOR,
    NVIDIA,
    PLAN,
    Backend,
    Confidence,
    Damage,
    Evidence,
    Expect,
    JobPlan,
    Place,
    Problem,
    Scope,
    Severity,
    Skip,
    Undecided,
    Vendor,
    View,
    check,
    maybe,
)
from doctor.facts.amd.gpus import AMD_GPUS
from doctor.facts.gpus import Gpus, gpus_named, is_named
from doctor.facts.nvidia.gpus import GPU_HEALTH, GPUS, NvidiaHealth
from doctor.facts.system import DEVICES, VIEW, Devices, FoundDevices
from doctor.model import SourcedValue
from doctor.rules.devices import beyond_hosts, ranks_said, unless_on_cpus
from doctor.rules.gpus import cuda_words, hip_words

NEARLY_ALL = 0.9
ENOUGH = 3
"""The number of other hosts that must agree if it is not known whether their GPUs are the same."""


@dataclass(frozen=True, slots=True)
class GpuExpectation:
    """How many GPUs a host must have, the same in words with its source, and the text if it has fewer."""

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
    maybe(GPU_HEALTH),
    damage=Damage.GONE,
    scope=Scope.CLUSTER,
    causes=("gpu-unhealthy", "gpu-xid"),
    remedy="find-gpu",
    vendor=NVIDIA,
    backends=(Backend.NCCL, Backend.GLOO),
)
def gpu_missing(
    devices: Mapping[str, Devices],
    expects: Mapping[str, Expect],
    plan: JobPlan,
    listed: Mapping[str, Gpus],
    views: Mapping[str, str],
    health: Mapping[str, Mapping[int, NvidiaHealth]] | None = None,
) -> Iterator[Problem]:
    """A host has fewer GPUs than it should have.

    Why it matters: the rank that was to use the GPU stops at its start ("invalid device ordinal"), or shares
    one with another rank (NCCL: "Duplicate GPU detected"), and all others wait for it.

    How it is known: the list of nvidia-smi is compared with /dev/nvidia*, with the expected number (--expect
    devices=8), what the container was to be given (NVIDIA_VISIBLE_DEVICES, AMD_VISIBLE_DEVICES), the GPUs
    that Slurm allocated (SLURM_GPUS_ON_NODE), the ranks of the host, and the other hosts of the job that have
    the same GPUs (a warning if a single host has more). If the launch asks for more than whole hosts have, no
    host is at fault. GPUs on the PCI bus for which a loaded driver made no device file are a warning.
    CUDA_VISIBLE_DEVICES is honoured: only the GPUs that it names must be present.
    GPUs on the PCI bus without a driver count as GPUs of the job, unless --backend gloo says that it trains
    on CPUs. If no host shows any, they must still be present if devices are
    expected, or for a job over nccl. If no host shows a device of any kind and nobody named the backend, it
    is undecided whether the job needs some if its torch is built for CUDA or ROCm, if torch_npu or CANN is
    installed, if --ranks-per-host asks for more than 2, or if only a variable that images and start files set
    for every job (NVIDIA_VISIBLE_DEVICES=all, CUDA_VISIBLE_DEVICES) speaks of devices.

    What to do: if the driver is not loaded, the kernel log shows why (nouveau in its place, a module built
    for another kernel, Secure Boot). A GPU that fell off the bus comes back with a restart; if
    `lspci -d 10de:` does not list it either, have it reseated. Containers are started with --gpus.
    """
    words = cuda_words(plan)
    if words == ():
        raise Skip("CUDA_VISIBLE_DEVICES leaves the job no GPU")
    asked = {host: expects.get(host, Expect()) for host in devices}
    if plan.backend.value is Backend.GLOO:
        asked = {host: expect for host, expect in asked.items() if expect.devices}
        if not asked and plan.doubt:
            needed = f"if it needs devices, --backend {plan.doubt.value.value} --expect devices=8"
            raise Undecided(
                f"{plan.doubt.source}, and no host shows a device: type --backend gloo if the job trains on "
                f"CPUs; {needed}"
            )
        if not asked or plan.backend.source != NO_ACCELERATOR:
            raise Skip("only for nccl jobs")
    here = {host: found.of(NVIDIA) for host, found in devices.items()}
    shown = any(own.numbers or own.on_bus for own in here.values())
    if not shown and not any(expect.devices for expect in asked.values()):
        yield from _none_shown(plan, here, views)
        return
    if plan.only_plugged_in:
        told = {host for host, expect in asked.items() if expect.devices or plan.host(host).devices}
        asked = {host: expect for host, expect in asked.items() if here[host].on_bus or host in told}
        counted = words or told or any(_for_ranks(plan, host) for host in asked)
        if not counted and all(_outside(own, views.get(host)) for host, own in here.items()):
            raise Undecided("the GPUs may belong to others: no container of the job was given one")
    parts = {host for host, own in (health or {}).items() if any(gpu.mig for gpu in own.values())}
    most = most_of_a_host(devices, expects, plan)
    scene = Scene(NVIDIA, plan, here, listed, views, words, "CUDA_VISIBLE_DEVICES", parts, most)
    for host, expect in asked.items():
        yield from scene.lost(host, expect)


def _none_shown(
    plan: JobPlan, here: Mapping[str, FoundDevices], views: Mapping[str, str]
) -> Iterator[Problem]:
    """The problems of a job over nccl without any GPU. Other containers of the job may have GPUs, if nothing
    says that this one does.
    """
    wanted = {host: for_devices(plan.host(host).devices) or _for_ranks(plan, host) for host in here}
    inside = tuple(host for host, told in wanted.items() if views.get(host) == View.CONTAINER and not told)
    for host, told in wanted.items():
        if host not in inside:
            least = told or f"at least one, for an nccl job ({plan.backend.source})"
            yield Problem(
                "there is no GPU",
                expected=least + unless_on_cpus(plan),
                actual="none",
                hosts=(host,),
                evidence=(Evidence("/dev/nvidia*, /dev/dri/renderD*", "none"),),
            )
    if inside:
        raise Undecided(
            "the job runs over nccl, and no host shows a GPU here: other containers may have them", inside
        )


def _outside(own: FoundDevices, view: str | None) -> bool:
    """Whether this is a container without GPUs on a host whose driver is loaded."""
    return view == View.CONTAINER and bool(own.driver) and not own.numbers


def _for_ranks(plan: JobPlan, host: str) -> str:
    """The expected value if the user said how many ranks the host has."""
    ranks = ranks_said(plan, host)
    return f"{ranks.value}, one for each rank ({ranks.source})" if ranks else ""


@check(
    "amd-missing",
    DEVICES,
    EXPECTS,
    PLAN,
    maybe(AMD_GPUS),
    maybe(VIEW),
    damage=Damage.GONE,
    scope=Scope.CLUSTER,
    causes=("amd-unhealthy", "amd-reset"),
    remedy="find-amd",
    vendor=AMD,
)
def amd_missing(
    devices: Mapping[str, Devices],
    expects: Mapping[str, Expect],
    plan: JobPlan,
    listed: Mapping[str, Gpus],
    views: Mapping[str, str],
) -> Iterator[Problem]:
    """A host has fewer AMD GPUs than it should have.

    Why it matters: the rank that was to use the GPU stops at its start ("invalid device ordinal", "No HIP
    GPUs are available"), or shares one with another rank, and all others wait for it.

    How it is known: the list of amd-smi (or rocm-smi) is compared with the render nodes that the kernel's
    ROCm driver has for GPUs (/sys/class/kfd, /dev/dri/renderD*), with the expected number (--expect
    devices=8), the ranks of the host, and the other hosts of the job that have the same GPUs (a warning if a
    single host has more). If the launch asks for more than whole hosts have, no host is at fault.
    HIP_VISIBLE_DEVICES, CUDA_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES are honoured.
    Instinct GPUs on the PCI bus without /dev/kfd have no driver. To a login that may not open the device
    files, all GPUs are missing.

    What to do: if the driver is not loaded, the kernel log shows why. A GPU that fell off the bus comes back
    with a restart; if `lspci -d 1002:` does not list it either, have it reseated. Users of GPUs belong to the
    groups that own /dev/kfd and /dev/dri/renderD*, most often render and video; containers are started with
    --device=/dev/kfd --device=/dev/dri.
    """
    if plan.vendor is None:
        raise Skip("no host of the job shows an AMD GPU")
    words = hip_words(plan)
    if words == ():
        raise Skip(f"{' or '.join(AMD.visible)} leaves the job no GPU")
    here = {host: found.of(AMD) for host, found in devices.items()}
    name = next((name for name in AMD.visible if plan.env.get(name)), "")
    most = most_of_a_host(devices, expects, plan)
    scene = Scene(AMD, plan, here, listed, views, words, name, most=most)
    for host in devices:
        yield from scene.lost(host, expects.get(host, Expect()))


@dataclass(frozen=True)
class Scene:
    """The GPUs of one vendor on all hosts, and those that the job names by the `words` of `variable`."""

    vendor: Vendor
    plan: JobPlan
    here: Mapping[str, FoundDevices]
    listed: Mapping[str, Gpus]
    views: Mapping[str, str]
    words: Sequence[str] | None
    variable: str
    parts: Collection[str] = ()
    """Hosts with GPUs in parts (MIG), which schedulers count as GPUs."""
    most: int | None = None
    """The most GPUs of a host if the launch asks for more, for which no host is at fault."""

    def lost(self, host: str, expect: Expect) -> Iterator[Problem]:
        """The problems of a host that lacks GPUs."""
        if self.words is not None and self.here[host].numbers and not self._undriven(host):
            yield from self._unmet(host, self.words)
            return
        wanted = self._wanted(host, expect)
        if wanted.count > self._usable(host):
            yield self._missing(host, wanted)

    def _seen(self, host: str) -> Gpus | None:
        seen = self.listed.get(host)
        return seen if seen and not seen.silent else None

    def _count(self, host: str) -> int:
        seen = self._seen(host)
        return len(seen.listed) if seen else len(self.here[host].numbers)

    def _open(self, host: str) -> int:
        """The number of device files that this login may open."""
        seen = self.listed.get(host)
        return max(len(self.here[host].numbers) - (seen.denied if seen else 0), 0)

    def _undriven(self, host: str) -> bool:
        """Whether the driver is not loaded: device files remain without it, and a container may hide it."""
        own = self.here[host]
        hidden = own.numbers and self.views.get(host) == View.CONTAINER
        return bool(own.on_bus and not own.driver and not hidden)

    def _without_file(self, host: str) -> int:
        """How many GPUs on the bus have no device file. If most have none, they are virtual functions."""
        own, there = self.here[host], max(len(self.here[host].numbers), self._count(host))
        lost = own.on_bus - own.screens - own.unclear - there
        return lost if self.views.get(host) == View.HOST and 0 < lost <= there else 0

    def _usable(self, host: str) -> int:
        if self._undriven(host):
            return 0
        return self._count(host) if self._open(host) or not self.here[host].numbers else 0

    def _unmet(self, host: str, words: Sequence[str]) -> Iterator[Problem]:
        """The problem of GPUs that the job names and that are missing."""
        seen = self._seen(host)
        lost = [
            word
            for word in words
            if not (self.most and word.isdigit() and int(word) >= self.most)
            and (
                not any(is_named(gpu, word) for gpu in seen.listed)
                if seen
                else word.isdigit() and int(word) >= len(self.here[host].numbers)
            )
        ]
        if lost:
            numbers = [int(word) for word in lost if word.isdigit()]
            yield Problem(
                f"{self.variable} names a GPU that is not there",
                expected=f"{self.variable}={','.join(words)}",
                actual=f"{self._count(host)} GPUs",
                subject=", ".join(
                    [gpus_named(numbers)] * bool(numbers) + [w for w in lost if not w.isdigit()]
                ),
                hosts=(host,),
                where=tuple(Place(host=host, device=number) for number in numbers),
                evidence=self._evidence(host),
            )

    def _wanted(self, host: str, expect: Expect) -> GpuExpectation:
        own, seen, planned = self.here[host], self.listed.get(host), self.plan.host(host)
        told = for_devices(planned.devices)
        name, least = self.vendor.prefix.rstrip("-"), told or "at least one"
        if not own.numbers and own.on_bus and self.views.get(host) == View.CONTAINER:
            return GpuExpectation(1, least, "no GPU was passed into the container")
        if self._undriven(host):
            summary = f"the {self.vendor.name} driver is not loaded"
            return GpuExpectation(1, least, summary, remedy=f"load-{name}-driver")
        usable = self._open(host)
        if own.numbers and not self._usable(host):
            return GpuExpectation(
                1, least, "this login has access to none of the GPUs", remedy=f"share-{name}"
            )
        if seen and self._count(host) < usable:
            why = f"{seen.tool} lists fewer GPUs than there are device files"
            return GpuExpectation(usable, f"{usable}, as many as device files", why, Confidence.STRONG)
        if expect.devices:
            return GpuExpectation(expect.devices, f"{expect.devices}, as expected of this host")
        if planned.devices and planned.devices.value > self._usable(host) and host not in self.parts:
            return GpuExpectation(planned.devices.value, least)
        if not self.most and (ranks := ranks_said(self.plan, host)):
            return GpuExpectation(ranks.value, _for_ranks(self.plan, host))
        if not (seen and seen.denied) and (by_peers := self._by_peers(host)):
            return by_peers
        if undriven := self._without_file(host):
            count = len(own.numbers)
            why = f"{count + undriven}, as on the PCI bus; if it is to have fewer: --expect devices={count}"
            lost = "the driver made no device for GPUs on the PCI bus"
            return GpuExpectation(count + undriven, why, lost, Confidence.STRONG, severity=Severity.WARN)
        why = "at least one, for an nccl job" if self.plan.backend.value is Backend.NCCL else "at least one"
        return GpuExpectation(1, why)

    @cached_property
    def _counts(self) -> Mapping[frozenset[str], Counter[int]]:
        """Names of GPUs -> number of GPUs -> how many hosts with such GPUs have that number."""
        counts: dict[frozenset[str], Counter[int]] = defaultdict(Counter)
        for host, own in self.here.items():
            counts[_names(self.listed.get(host))][len(own.numbers)] += 1
        return counts

    @cached_property
    def _all(self) -> Counter[int]:
        return sum(self._counts.values(), Counter())

    def _by_peers(self, host: str) -> GpuExpectation | None:
        """The number of GPUs on hosts with the same or unknown GPUs; a host without any fails in any case."""
        there, own = self._count(host), _names(self.listed.get(host))
        itself = Counter([len(self.here[host].numbers)])
        same = self._counts[own] - itself if own else Counter[int]()
        unknown = self._counts[frozenset()] if own else self._all - itself
        peers = same + unknown
        more = Counter({count: hosts for count, hosts in peers.items() if count > there})
        if not more or more.total() < NEARLY_ALL * peers.total():
            return None
        count, votes = more.most_common(1)[0]
        sure = not there or same[count] > 1 or votes >= max(ENOUGH, NEARLY_ALL * peers.total())
        return GpuExpectation(
            count,
            f"{count}, as on {votes} other host{'s' if votes > 1 else ''} of the job",
            confidence=Confidence.STRONG if sure else Confidence.SUSPECT,
            severity=None if sure else Severity.WARN,
        )

    def _missing(self, host: str, wanted: GpuExpectation) -> Problem:
        count, own = self._usable(host), self.here[host]
        bare = not own.numbers and not own.on_bus
        return Problem(
            "there is no GPU" if bare else wanted.summary,
            expected=wanted.why + unless_on_cpus(self.plan),
            actual=str(count) if count else "none",
            hosts=(host,),
            where=(Place(host=host),),
            severity=wanted.severity,
            confidence=wanted.confidence,
            evidence=self._evidence(host),
            remedy=wanted.remedy,
        )

    def _evidence(self, host: str) -> tuple[Evidence, ...]:
        own, seen, vendor = self.here[host], self.listed.get(host), self.vendor
        found = [
            Evidence(f"{vendor.files}*", gpus_named(own.numbers) if own.numbers else "none"),
            Evidence("/proc/bus/pci/devices", f"{own.on_bus} {vendor.name} devices"),
            Evidence(vendor.driver, own.driver or "the driver is not loaded"),
        ]
        if seen:
            lines = [f"{len(seen.listed)} GPUs listed", *([seen.silent] if seen.silent else seen.said)]
            found.append(Evidence(seen.source, "; ".join(lines)[:400]))
        return tuple(found)


def most_of_a_host(
    devices: Mapping[str, Devices], expects: Mapping[str, Expect], plan: JobPlan
) -> int | None:
    """The most devices of a host if the launch asks for more, which launch-devices tells."""
    beyond = beyond_hosts(devices, expects, plan)
    return beyond and beyond[1]


def _names(seen: Gpus | None) -> frozenset[str]:
    """The names of the host's GPUs; empty if they are not known."""
    return frozenset(gpu.name for gpu in seen.listed if gpu.name) if seen else frozenset()


def for_devices(wanted: SourcedValue[int] | None) -> str:
    """The expected value if a container, a launch or a scheduler says how many devices the job is to have."""
    if wanted is None:
        return ""
    return f"{'at least one' if wanted.value == 1 else wanted.value}, for {wanted.source}"

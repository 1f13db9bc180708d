"""Who a host says it is: kernel, operating system, own name, clock, accelerators, container or not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from doctor.api import Capture, Fact, NotUnderstood, Read, Run, files
from doctor.model import Backend, View


@dataclass(frozen=True, slots=True)
class Identity:
    """What the host calls itself."""

    hostname: str


def _identity(capture: Capture) -> Identity:
    name = files(capture).get("/proc/sys/kernel/hostname", "").strip()
    if not name or len(name) > 255:
        raise NotUnderstood("the host does not say its name")
    return Identity(name)


IDENTITY = Fact("identity", Read(("/proc/sys/kernel/hostname",)), _identity)


@dataclass(frozen=True, slots=True)
class Kernel:
    release: str
    version: str
    distribution: str

    @property
    def smp(self) -> bool:
        return "SMP" in self.version.split()


def _kernel(capture: Capture) -> Kernel:
    found = files(capture)
    release = found.get("/proc/sys/kernel/osrelease", "")
    if not release:
        raise NotUnderstood("/proc/sys/kernel/osrelease is not readable")
    pretty = re.search(r'^PRETTY_NAME="?([^"\n]*)', found.get("/etc/os-release", ""), re.MULTILINE)
    return Kernel(release, found.get("/proc/sys/kernel/version", ""), pretty[1] if pretty else "")


KERNEL = Fact(
    "kernel", Read(("/proc/sys/kernel/osrelease", "/proc/sys/kernel/version", "/etc/os-release")), _kernel
)


@dataclass(frozen=True, slots=True)
class Clock:
    """Seconds since the epoch, as the host's clock has it."""

    now: float


def _clock(capture: Capture) -> Clock:
    match = re.fullmatch(r"(\d{9,11})(?:\.(\d{1,9}|%?N)?)?", capture.stdout.strip())
    if not match:
        raise NotUnderstood(f"date printed {capture.stdout[:80]!r} instead of seconds")
    fraction = match[2] if match[2] and match[2].isdigit() else "5"  # busybox has no %N: half a second
    return Clock(float(f"{match[1]}.{fraction}"))


CLOCK = Fact("clock", Run("date +%s.%N"), _clock, timeout=2)
CLOCK_END = Fact("clock-end", Run("date +%s.%N"), _clock, timeout=2)
"""Read again by the last command of the probe."""


@dataclass(frozen=True, slots=True)
class Devices:
    """Accelerators as the device files and the PCI bus show them.

    `on_bus` counts what is plugged in, with or without a driver: "npu", and "nvidia" with its switches.
    """

    npus: tuple[int, ...]
    gpus: tuple[int, ...]
    product: str
    on_bus: Mapping[str, int] = field(default_factory=dict)
    nvidia_driver: str = ""
    emulated: bool = False
    """In the test lab hosts have devices that nobody has."""

    @property
    def counts(self) -> dict[Backend, int]:
        return {Backend.HCCL: len(self.npus), Backend.NCCL: len(self.gpus)}


_ASCEND = {
    "19e5d801": "atlas-training",
    "19e5d802": "atlas-a2",
    "19e5d803": "atlas-a3",
    "19e5d806": "atlas-950",
}
_PCI = "/proc/bus/pci/devices"
_NVIDIA = "/proc/driver/nvidia/version"
_GIVEN_AWAY = ("vfio-pci", "pci-stub")
"""Drivers of what belongs to a virtual machine."""
_LAB = "/run/cluster-doctor-lab/emulated"


def _devices(capture: Capture) -> Devices:
    found = files(capture)
    npus, gpus = (
        tuple(
            sorted(int(number[1]) for path in found if (number := re.fullmatch(rf"{name}(\d{{1,3}})", path)))
        )
        for name in ("/dev/davinci", "/dev/nvidia")
    )
    rows = re.findall(r"^[0-9a-f]{4}\t([0-9a-f]{8})\t(.*)", found.get(_PCI, ""), re.MULTILINE)
    plugged = [pci for pci, rest in rows if not rest.endswith(_GIVEN_AWAY)]
    ascend = next((name for pci, name in _ASCEND.items() if pci in plugged), None)
    driver = re.search(r"Module\s+(?:for \S+\s+)?(\d+\.\d+\S*)", found.get(_NVIDIA, ""))
    on_bus = {
        "npu": sum(pci in _ASCEND for pci in plugged),
        "nvidia": sum(pci.startswith("10de") for pci in plugged),
    }
    return Devices(
        npus, gpus, _product(npus, gpus, ascend), on_bus, driver[1] if driver else "", _LAB in found
    )


def _product(npus: tuple[int, ...], gpus: tuple[int, ...], ascend: str | None) -> str:
    if npus or (ascend and not gpus):
        return ascend or "ascend"
    return "nvidia" if gpus else "cpu"


DEVICES = Fact(
    "devices", Read((_PCI, _NVIDIA), there=("/dev/davinci[0-9]*", "/dev/nvidia[0-9]*", _LAB)), _devices
)


_MARKS = ("/.dockerenv", "/run/.containerenv", "/run/systemd/container", "/dev/.lxc-boot-id")


def _view(capture: Capture) -> View:
    """A root file system of layers alone is no container: diskless hosts have one too."""
    found = files(capture)
    layers = re.search(r"^overlay / overlay .*", found.get("/proc/self/mounts", ""), re.MULTILINE)
    engine = re.compile(r"docker|kubepods|kubelet|containerd|containers/storage|libpod|/lxc")
    inside = engine.search(found.get("/proc/1/cgroup", "")) or (layers and engine.search(layers[0]))
    marked = set(_MARKS) & found.keys()
    return View.CONTAINER if marked or inside else View.HOST


VIEW = Fact("view", Read(("/proc/1/cgroup", "/proc/self/mounts"), there=_MARKS), _view)

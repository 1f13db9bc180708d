"""What a host reports about itself: kernel, system, name, clock, accelerators, machine, container or not."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from doctor.api import Capture, Fact, Read, Run, UnreadableOutput, files
from doctor.devices import ASCEND, VENDORS, Vendor, every
from doctor.model import View
from doctor.text.hostprogram import host_program


def _identity(capture: Capture) -> str:
    name = files(capture).get("/proc/sys/kernel/hostname", "").strip()
    if not name or len(name) > 255:
        raise UnreadableOutput("the host does not report its name")
    return name


IDENTITY = Fact("identity", Read(("/proc/sys/kernel/hostname",)), _identity)
"""The host's own name."""
TUNING = Fact("pace", Read(tuple(host_program(__file__, "tuning.txt").split())), files)


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
        raise UnreadableOutput("/proc/sys/kernel/osrelease is not readable")
    pretty = re.search(r'^PRETTY_NAME="?([^"\n]*)', found.get("/etc/os-release", ""), re.MULTILINE)
    return Kernel(release, found.get("/proc/sys/kernel/version", ""), pretty[1] if pretty else "")


KERNEL = Fact(
    "kernel", Read(("/proc/sys/kernel/osrelease", "/proc/sys/kernel/version", "/etc/os-release")), _kernel
)


def _clock(capture: Capture) -> float:
    match = re.fullmatch(r"(\d{1,11})(?:\.(\d{1,9}|%?N)?)?", capture.stdout.strip())
    if not match:
        raise UnreadableOutput(f"date printed {capture.stdout[:80]!r} instead of seconds")
    fraction = match[2] if match[2] and match[2].isdigit() else "5"  # busybox has no %N: half a second
    return float(f"{match[1]}.{fraction}")


CLOCK = Fact("clock", Run("date +%s.%N"), _clock, timeout=2)
CLOCK_END = Fact("clock-end", Run("date +%s.%N"), _clock, timeout=2)
"""Seconds since the epoch; read again by the last command of the probe."""


@dataclass(frozen=True, slots=True)
class FoundDevices:
    """Devices of one vendor: the numbers of their files, and those plugged in, with or without a driver.

    `unclear` counts those on the bus whose class is not shown: they may be NVIDIA's switches. `driver` is the
    version, or "loaded" if it has none. `screens` counts devices on the bus that may only drive a screen.
    """

    numbers: tuple[int, ...] = ()
    on_bus: int = 0
    driver: str = ""
    screens: int = 0
    unclear: int = 0


@dataclass(frozen=True, slots=True)
class Devices:
    """Accelerators as the device files and the PCI bus show them, by vendor name."""

    found: Mapping[str, FoundDevices]
    product: str
    emulated: bool = False
    """Whether the host is one of the test lab, whose devices do not exist."""

    def of(self, vendor: Vendor) -> FoundDevices:
        return self.found.get(vendor.name, _NOTHING)

    @property
    def npus(self) -> tuple[int, ...]:
        return self.of(ASCEND).numbers


_NOTHING = FoundDevices()
_PCI = "/proc/bus/pci/devices"
_PCI_CLASS = "/sys/bus/pci/devices/*/class"
_GIVEN_AWAY = ("vfio-pci", "pci-stub", "gim")
"""Drivers of devices that were passed to a virtual machine."""
_LAB = "/run/cluster-doctor-lab/emulated"


def _devices(capture: Capture) -> Devices:
    read = files(capture)
    rows = re.findall(r"^([0-9a-f]{4})\t([0-9a-f]{8})\t(.*)", read.get(_PCI, ""), re.MULTILINE)
    classes = _pci_classes(read)
    kept = [row for row in rows if not row[2].endswith(_GIVEN_AWAY)]
    plugged = [pci + classes.get(place, "") for place, pci, _ in kept]
    idle = [pci + classes.get(place, "") for place, pci, rest in kept if _drives_screens(rest)]
    found = {}
    for vendor in VENDORS:
        own = [pci for pci in plugged if re.fullmatch(vendor.on_bus, pci)]
        found[vendor.name] = FoundDevices(
            _numbers(vendor, read),
            len(own),
            _driver(vendor, read),
            sum(re.fullmatch(vendor.screens, pci) is not None for pci in idle),
            sum(len(pci) == len("10de2330") for pci in own),
        )
    return Devices(found, _product(found, plugged), _LAB in read)


def _drives_screens(rest: str) -> bool:
    """Whether the last column, the driver in use, is empty or a driver that cannot compute."""
    last = rest.split()[-1:] or [""]
    return last[0] == "nouveau" or re.fullmatch("[0-9a-f]+", last[0]) is not None or not last[0]


def _pci_classes(read: Mapping[str, str]) -> Mapping[str, str]:
    """By bus, device and function, without domain; empty if devices of several domains disagree."""
    found: dict[str, str] = {}
    for path, text in read.items():
        place = re.fullmatch(
            r"/sys/bus/pci/devices/[0-9a-f]{4,8}:([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])/class", path
        )
        if place and re.fullmatch(r"0x[0-9a-f]{6}", text):
            key = f"{place[1]}{int(place[2], 16) << 3 | int(place[3]):02x}"
            found[key] = text[2:6] if found.get(key, text[2:6]) == text[2:6] else ""
    return found


def _numbers(vendor: Vendor, read: Mapping[str, str]) -> tuple[int, ...]:
    form = re.compile(rf"{vendor.files}(\d{{1,3}})")
    numbers = {int(number[1]) for path in read if (number := form.fullmatch(path))}
    if vendor.node_files:
        known = re.compile(re.escape(vendor.node_files).replace(r"\*", r"\d{1,4}"))
        own = (re.search(vendor.node, text) for path, text in read.items() if known.fullmatch(path))
        numbers &= {int(number[1]) for number in own if number}
    return tuple(sorted(numbers))


def _driver(vendor: Vendor, read: Mapping[str, str]) -> str:
    version = re.search(vendor.driver_version, read.get(vendor.driver, ""), re.MULTILINE)
    return (version[1] if version and version.groups() else "") or (
        "loaded" if vendor.driver in read and not vendor.driver_version else ""
    )


def _product(found: Mapping[str, FoundDevices], plugged: Sequence[str]) -> str:
    there = [vendor for vendor in VENDORS if found[vendor.name].numbers]
    there += [vendor for vendor in VENDORS if found[vendor.name].on_bus]
    if not there:
        return "cpu"
    exact = (name for pci, name in there[0].products.items() if any(one.startswith(pci) for one in plugged))
    return next(exact, there[0].product)


DEVICES = Fact(
    "devices",
    Read(
        (
            _PCI,
            _PCI_CLASS,
            *(vendor.driver for vendor in VENDORS if vendor.driver_version),
            *every("node_files"),
        ),
        there=(
            *(f"{vendor.files}[0-9]*" for vendor in VENDORS),
            *(vendor.driver for vendor in VENDORS if not vendor.driver_version),
            _LAB,
        ),
    ),
    _devices,
)


_BOOT = "/proc/sys/kernel/random/boot_id"
_CGROUP = "/proc/1/cgroup"
_MOUNTS = "/proc/self/mountinfo"
_OLD_MOUNTS = "/proc/self/mounts"
"""Used by recordings of earlier versions."""
_ROOT = r"^(\d+) \d+ \d+:\d+ \S+ / "
_MARKS = ("/.dockerenv", "/run/.containerenv", "/run/systemd/container", "/dev/.lxc-boot-id")


def _view(capture: Capture) -> View:
    """Host or container. An overlay root file system alone proves nothing: diskless hosts have one too."""
    found = files(capture)
    if not found.keys() & {_CGROUP, _MOUNTS, _OLD_MOUNTS, *_MARKS}:
        raise UnreadableOutput("neither its control group nor its mounts can be read")
    layers = re.search(r"^overlay / overlay .*", found.get(_OLD_MOUNTS, ""), re.MULTILINE) or re.search(
        rf"{_ROOT}.* - overlay .*", found.get(_MOUNTS, ""), re.MULTILINE
    )
    engine = re.compile(r"docker|kubepods|kubelet|containerd|containers/storage|libpod|/lxc")
    inside = engine.search(found.get(_CGROUP, "")) or (layers and engine.search(layers[0]))
    return View.CONTAINER if set(_MARKS) & found.keys() or inside else View.HOST


VIEW = Fact("view", Read((_CGROUP, _MOUNTS), there=_MARKS), _view)


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine, and a container on it, by its boot and the unique number of its root's mount."""

    boot: str
    root: str

    @property
    def known(self) -> bool:
        return bool(self.boot and self.root)


def _machine(capture: Capture) -> Machine:
    found = files(capture)
    roots = re.findall(_ROOT, found.get(_MOUNTS, ""), re.MULTILINE)
    return Machine(found.get(_BOOT, "").strip(), roots[-1] if roots else "")


MACHINE = Fact("machine", Read((_BOOT, _MOUNTS)), _machine)


@dataclass(frozen=True, slots=True)
class Nameplate:
    """`hidden`: only root may read its serial number; `slots`: address of a device -> label of its slot."""

    maker: str
    model: str
    serial: str
    hidden: bool
    slots: Mapping[str, str]

    @property
    def virtual(self) -> bool:
        """Whether a hypervisor wrote it: it is the same on its machines of any size."""
        return _HYPERVISORS.search(f"{self.maker} {self.model}") is not None


_HYPERVISORS = re.compile(
    "QEMU|KVM|OpenStack|VMware|VirtualBox|Virtual Machine|Xen|Bochs|Google|Alibaba|Tencent|Huawei ?Cloud"
)
_DMI = "/sys/class/dmi/id/"
_SERIAL = f"{_DMI}product_serial"
_SLOT = re.compile(r"/sys/bus/pci/slots/([^/]+)/address")


def _nameplate(capture: Capture) -> Nameplate:
    found = {path: text.strip() for path, text in files(capture).items()}
    slots = ((text.lower(), _SLOT.fullmatch(path)) for path, text in found.items())
    maker, model, serial = (
        found.get(path, "")[:120] for path in (f"{_DMI}sys_vendor", f"{_DMI}product_name", _SERIAL)
    )
    return Nameplate(
        maker,
        model,
        serial,
        hidden=_SERIAL in found and not found[_SERIAL],
        slots={address: slot[1][:40] for address, slot in slots if slot and address},
    )


_EMPTY = r"|(.)\1*|none|n/?a|unknown|invalid|empty|not (applicable|available|specified)|default string"
NO_SERIAL = re.compile(_EMPTY + r"|0?123456789|.*\bserial\b.*|.*o\.e\.m.*", re.I)
"""What a maker leaves in place of a serial number."""
NAMEPLATE = Fact(
    "nameplate",
    Read(
        (f"{_DMI}sys_vendor", f"{_DMI}product_name", _SERIAL, "/sys/bus/pci/slots/*/address"),
        there=(_SERIAL,),
    ),
    _nameplate,
)

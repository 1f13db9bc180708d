"""What one host reported about itself, as plain values and in words; None means "not reported"."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from doctor.api import Fact
from doctor.devices import VENDORS, Vendor
from doctor.facts.amd.gpus import AMD_GPUS, AMD_HEALTH
from doctor.facts.ascend.hccn_tool import PerDevice, split_known
from doctor.facts.ascend.network import NPU_ADDRESSES, NPU_LINKS, NPU_SPEEDS
from doctor.facts.ascend.npus import NPUS
from doctor.facts.gpus import Gpus
from doctor.facts.infiniband import IB_PORTS
from doctor.facts.limits import INFINITE, LIMITS, PORTS, port_list
from doctor.facts.memory import MEMORY, SPACES, Space
from doctor.facts.network import ADDRESSES, LINKS, NAMES, UNNAMED, Counters
from doctor.facts.nvidia.gpus import GPU_HEALTH, GPUS
from doctor.facts.nvidia.nvlink import NVLINKS
from doctor.facts.run import Offset
from doctor.facts.software import ENVIRONMENT, PYTHON, VERSIONS
from doctor.facts.system import DEVICES, IDENTITY, KERNEL, TUNING
from doctor.judge.reading import Reading
from doctor.model import Host
from doctor.rules.offers import offer_of

T = TypeVar("T")
Value = str | int | float | bool | list[Any]
Told = tuple[Value, str]
"""A value, and the same in words and units."""
NOT_INSTALLED: Told = ("", "not installed")
ASKED: tuple[Fact[Any], ...] = (
    *(IDENTITY, DEVICES, KERNEL, VERSIONS, PYTHON, PORTS, LIMITS, MEMORY, SPACES, ADDRESSES, LINKS, NAMES),
    *(NPUS, NPU_ADDRESSES, NPU_LINKS, NPU_SPEEDS, TUNING),
    *(GPUS, GPU_HEALTH, NVLINKS, AMD_GPUS, AMD_HEALTH, IB_PORTS),
)
"""Facts that a host is asked for only for this table."""


@dataclass(frozen=True, slots=True)
class HostReading:
    """One host that answered, as the run saw it."""

    host: Host
    reading: Reading
    clock: Offset | None
    smoke: Mapping[str, str]
    """The versions that its ranks reported in the last smoke run."""

    def get(self, fact: Fact[T]) -> T | None:
        found: T | None = self.reading.facts.known(self.host.name, fact)
        return found

    @property
    def vendor(self) -> Vendor | None:
        """The vendor of its devices, or else of those that the job uses."""
        found = self.get(DEVICES)
        there = (vendor for vendor in VENDORS if found and found.of(vendor).numbers)
        return next(there, self.reading.plan.vendor)


Read = Callable[[HostReading], Told | None]


def one(value: str) -> Told | None:
    return (value, value) if value else None


def sized(count: float) -> Told:
    """Bytes, as the checks count them: 1 GB is 1024 MB."""
    number, unit = float(count), "bytes"
    for bigger in ("kB", "MB", "GB", "TB", "PB"):
        if number < 1024:
            break
        number, unit = number / 1024, bigger
    digits = 1 if number < 100 and unit != "bytes" and number != int(number) else 0
    return int(count), f"{number:.{digits}f} {unit}"


def plain(count: int) -> Told:
    return count, str(count)


def limited(count: int, shown: Callable[[int], Told] = plain) -> Told:
    return ("unlimited", "unlimited") if count >= INFINITE else shown(count)


def rate(megabits: int) -> Told:
    return megabits, f"{megabits / 1000:g} Gb/s" if megabits >= 1000 else f"{megabits} Mb/s"


def share(good: int, of: int) -> Told:
    return good, f"{good} of {of}"


def of(fact: Fact[T], read: Callable[[T], Told | None]) -> Read:
    """What a fact comes to; None if the host did not report it or has nothing of it."""
    return lambda seen: read(value) if (value := seen.get(fact)) else None


def setting(path: str) -> Read:
    """A setting of the kernel; of several words, the one in brackets."""
    return of(TUNING, lambda found: one(found.get(path, "").split("[")[-1].split("]")[0]))


def of_npus(fact: Fact[PerDevice[T]], read: Callable[[Collection[T]], Told | None]) -> Read:
    """What the known answers about its NPUs come to."""
    return of(fact, lambda said: read(known) if (known := split_known(said)[0].values()) else None)


def several(values: list[Any], shown: Callable[[Any], str] = str) -> Told | None:
    """One value if all are equal, else a list of them."""
    known = sorted(set(values))
    if not known:
        return None
    return (known[0] if len(known) == 1 else known), ", ".join(map(shown, known))


def reached(seen: HostReading) -> Told | None:
    way = seen.reading.recording.transport
    more = f" through {seen.host.jump}" if seen.host.jump and way == "ssh" else ""
    more += ", in a container" if seen.host.contained else ""
    words = {"ssh": "SSH", "local": "this machine", "in-job": "the job itself", "pods": "the API server"}
    return way + more, words.get(way, way) + more


def device_count(seen: HostReading) -> Told | None:
    found = seen.get(DEVICES)
    if found is None:
        return None
    vendor = seen.vendor
    own = found.of(vendor) if vendor else None
    count = len(own.numbers) if own else 0
    unseen = own.on_bus if own and not count else 0
    return count, f"{count} ({unseen} on the PCI bus)" if unseen else str(count or "none")


def _gpus(seen: HostReading) -> Gpus | None:
    found = seen.get(GPUS)
    return found if found is not None and not found.silent else seen.get(AMD_GPUS)


def device_name(seen: HostReading) -> Told | None:
    npus, gpus = seen.get(NPUS), _gpus(seen)
    names = [npu.name for npu in npus or ()] + [gpu.name for gpu in (gpus.listed if gpus else ())]
    return several([name for name in names if name])


def healthy_devices(seen: HostReading) -> Told | None:
    """The devices that the vendor's tool does not complain about; None unless it reports on each."""
    npus, gpus, amd = seen.get(NPUS), seen.get(GPUS), seen.get(AMD_GPUS)
    if npus:
        return share(sum(npu.health.upper() == "OK" for npu in npus), len(npus))
    told: Mapping[int, bool] = {}
    if gpus and (health := seen.get(GPU_HEALTH)):
        told = {
            index: not (own.uncorrected or own.remap_failed or own.action.lower() not in ("", "none"))
            for index, own in health.items()
        }
    elif amd and (states := seen.get(AMD_HEALTH)):
        told = {
            i: not (own.uncorrected or own.stuck) for i, own in states.items() if own.uncorrected is not None
        }
    listed = gpus.listed if gpus else amd.listed if amd else ()
    if not listed or any(gpu.index not in told and not gpu.trouble for gpu in listed):
        return None
    return share(sum(not gpu.trouble and told[gpu.index] for gpu in listed), len(listed))


def version_of(*names: str) -> Read:
    """The first of these that is installed, by the host's files, or else by the ranks of a smoke run."""

    def read(seen: HostReading) -> Told | None:
        found = seen.get(VERSIONS)
        known = {**seen.smoke, **(found.installed if found else {})}
        version = next((known[name] for name in names if known.get(name)), "")
        return one(version) or (None if found is None else NOT_INSTALLED)

    return read


def package(name: str) -> Read:
    """The version of a package in the interpreter that the job would use."""

    def read(seen: HostReading) -> Told | None:
        found = seen.get(PYTHON)
        if found is None:
            return one(seen.smoke.get(name.replace("-", "_"), ""))
        if name in found.unversioned:
            return "unknown", "unknown version"
        return one(found.packages.get(name, "")) or (NOT_INSTALLED if found.version else None)

    return read


def other_packages(differing: Collection[str]) -> Read:
    """The packages of the interpreter that are not the same on all hosts, and have no fact of their own."""

    def read(seen: HostReading) -> Told | None:
        found = seen.get(PYTHON)
        if found is None or not found.version or not differing:
            return None
        versions = {**found.packages, **found.others}
        listed = [f"{name} {versions.get(name, NOT_INSTALLED[1])}" for name in differing]
        return listed, ", ".join(listed)

    return read


def interface(seen: HostReading) -> Told | None:
    """The name of the interface that has the data address."""
    own = seen.reading.plan.data_address(seen.host.name)
    held = seen.get(ADDRESSES) or {}
    return one(next((name for name, found in held.items() if own in found and name != UNNAMED), ""))


def rank_address(seen: HostReading) -> Told | None:
    """The address that the library of the ranks would take by itself."""
    names, held = seen.get(NAMES), seen.get(ADDRESSES)
    if names is None or held is None:
        return None
    offer = offer_of(seen.reading.plan, seen.host.name, names, held, seen.get(ENVIRONMENT), seen.get(LINKS))
    return (offer.address, str(offer)) if offer else None


def _link(seen: HostReading) -> Counters | None:
    named, links = interface(seen), seen.get(LINKS) or {}
    return links.get(str(named[0])) if named else None


def of_shm(read: Callable[[Space], int]) -> Read:
    return of(SPACES, lambda spaces: sized(read(shm)) if (shm := spaces.at("/dev/shm")) else None)


def of_clock(read: Callable[[Offset], float], shown: Callable[[float], str]) -> Read:
    return lambda seen: (round(value := read(seen.clock), 4), shown(value)) if seen.clock else None


def of_link(read: Callable[[Counters], int | None], shown: Callable[[int], Told]) -> Read:
    """A number of the interface that has the data address; 0 is not known."""
    return lambda seen: shown(number) if (link := _link(seen)) and (number := read(link)) else None


def _ahead(seconds: float) -> str:
    return f"{seconds * 1e3:+.0f} ms" if abs(seconds) < 1 else f"{seconds:+.1f} s"


clock = of_clock(lambda told: (told.low + told.high) / 2, _ahead)
clock_doubt = of_clock(lambda told: (told.high - told.low) / 2, lambda doubt: f"{doubt * 1e3:.0f} ms")
host_name = of(IDENTITY, one)
product = of(DEVICES, lambda found: one(found.product))
links_up = of_npus(NPU_LINKS, lambda up: share(sum(up), len(up)))
link_speed = of_npus(NPU_SPEEDS, lambda told: several([*filter(None, told)], lambda speed: rate(speed)[1]))
device_addresses = of_npus(NPU_ADDRESSES, lambda told: share(sum(a is not None for a in told), len(told)))
ib_up = of(IB_PORTS, lambda ports: share(sum(port.is_up for port in ports), len(ports)))
ib_rate = of(IB_PORTS, lambda ports: several([port.rate for port in ports if port.is_up and port.rate]))
somaxconn = of(PORTS, lambda ports: plain(ports.somaxconn))
syn_backlog = of(PORTS, lambda ports: plain(ports.syn_backlog))
reserved = of(PORTS, lambda ports: (listed := port_list(ports.reserved), listed or "none"))
ephemeral = of(PORTS, lambda ports: one(port_list([ports.ephemeral])))
memory_total = of(MEMORY, lambda memory: sized(memory.total))
memory_free = of(MEMORY, lambda memory: sized(memory.available))
shm_total = of_shm(lambda shm: shm.total)
shm_free = of_shm(lambda shm: shm.free)
nofile = of(LIMITS, lambda limits: limited(limits.nofile))
memlock = of(LIMITS, lambda limits: limited(limits.memlock, sized))
mtu = of_link(lambda link: link.mtu, plain)
speed = of_link(lambda link: link.speed, rate)
kernel = of(KERNEL, lambda kernel: one(kernel.release.strip()))
system = of(KERNEL, lambda kernel: one(kernel.distribution))
python = of(PYTHON, lambda python: one(python.version) or NOT_INSTALLED)
python_path = of(PYTHON, lambda python: one(python.path))


def nvlinks(seen: HostReading) -> Told | None:
    found = (seen.get(NVLINKS) or {}).values()
    up = sum(len(own.active) for own in found)
    return share(up, up + sum(len(own.inactive) for own in found)) if found else None


def data_address(seen: HostReading) -> Told | None:
    return one(seen.reading.plan.data_address(seen.host.name) or "")


def collectives(seen: HostReading) -> Told | None:
    return one(seen.smoke.get("nccl") or seen.smoke.get("rccl") or "")

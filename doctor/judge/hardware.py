"""What finds a machine and its parts in a rack: serials, slots, switch ports; empty if not reported."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from doctor.facts.amd.gpus import AMD_GPUS
from doctor.facts.ascend.hccn_tool import PerDevice
from doctor.facts.ascend.npus import NPUS
from doctor.facts.ascend.ports import NPU_NEIGHBOURS, NPU_OPTICS, Neighbour, Optics
from doctor.facts.gpus import bus_id
from doctor.facts.network import ADDRESSES, LINKS
from doctor.facts.nvidia.gpus import GPUS
from doctor.facts.system import NAMEPLATE, Nameplate
from doctor.job.plan import JobPlan
from doctor.judge.engine import Facts

_NO_PLATE = Nameplate("", "", "", hidden=False, slots={})


@dataclass(frozen=True, slots=True)
class HardwarePart:
    """A device. `neighbour` is the switch port that it is plugged into, by LLDP."""

    name: str
    model: str = ""
    bus: str = ""
    slot: str = ""
    serial: str = ""
    optics: str = ""
    neighbour: str = ""


@dataclass(frozen=True, slots=True)
class Hardware:
    """`hidden`: only root may read the serial number. `interface` carries the job: name and MAC."""

    model: str = ""
    serial: str = ""
    hidden: bool = False
    interface: str = ""
    parts: Mapping[int, HardwarePart] = field(default_factory=dict)
    """By device number."""


def hardware(facts: Facts, plan: JobPlan) -> Mapping[str, Hardware]:
    """The hardware of each host that answered."""
    heard = set(facts.hosts)
    return {host: _of(host, facts, plan) for host in plan.names if host in heard}


def _of(host: str, facts: Facts, plan: JobPlan) -> Hardware:
    plate = facts.known(host, NAMEPLATE, _NO_PLATE)
    return Hardware(
        " ".join(filter(None, (plate.maker, plate.model))),
        plate.serial,
        plate.hidden,
        _interface(host, facts, plan.data_address(host)),
        dict(_parts(host, facts, plate)),
    )


def _interface(host: str, facts: Facts, address: str | None) -> str:
    named = facts.known(host, ADDRESSES, {}).items()
    name = next((name for name, addresses in named if address in addresses), "")
    link = facts.known(host, LINKS, {}).get(name)
    return f"{name}, MAC {link.mac}" if link and link.mac else name


def _parts(host: str, facts: Facts, plate: Nameplate) -> Iterator[tuple[int, HardwarePart]]:
    for fact in (GPUS, AMD_GPUS):
        gpus = facts.known(host, fact, None)
        for gpu in gpus.listed if gpus else ():
            slot = plate.slots.get(gpu.bus, "")
            yield gpu.index, HardwarePart(f"GPU {gpu.index}", gpu.name, gpu.bus, slot, gpu.serial or gpu.uuid)
    npus = {npu.device: npu for npu in facts.known(host, NPUS, ())}
    optics: PerDevice[Optics | None] = facts.known(host, NPU_OPTICS, {})
    neighbours: PerDevice[Neighbour | None] = facts.known(host, NPU_NEIGHBOURS, {})
    for number in sorted({*npus, *optics, *neighbours}):
        npu, module, neighbour = npus.get(number), optics.get(number), neighbours.get(number)
        bus = bus_id(npu.bus) if npu else ""
        yield (
            number,
            HardwarePart(
                f"NPU {number}",
                npu.name if npu else "",
                bus,
                plate.slots.get(bus, ""),
                optics=_module(module) if isinstance(module, Optics) else "",
                neighbour=" of ".join(filter(None, (neighbour.port, neighbour.system)))
                if isinstance(neighbour, Neighbour)
                else "",
            ),
        )


def _module(optics: Optics) -> str:
    names = ("vendor name", "vendor part number", "vendor serial number")
    maker, kind, serial = (optics.texts.get(name, "") for name in names)
    return " ".join(filter(None, (maker, kind, serial and f"serial number {serial}")))

"""The pace of devices, and which rank uses which of them: the scripts for hosts, and what they printed."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from doctor.api import Capture, Fact, Run, UnreadableOutput
from doctor.devices import AMD, ASCEND, NVIDIA, Vendor
from doctor.facts.amd.gpus import AMD_PACE, AMD_PROCESSES
from doctor.facts.ascend.npu_smi_card import NPU_PACE
from doctor.facts.ascend.npus import NPUS
from doctor.facts.device_pace import DevicePace
from doctor.facts.nvidia.gpus import GPU_PACE, GPU_PROCESSES
from doctor.text.grouped import grouped

Owners = Iterable[tuple[Any, int]]
"""The key of a device in the answer about its pace, and a process that uses it."""


@dataclass(frozen=True, slots=True)
class DeviceSource:
    """How the pace of one vendor's devices is read."""

    vendor: Vendor
    library: str
    """A pattern: a process that maps it uses such devices."""
    pace: Fact[Any]
    processes: Fact[Any]
    owners: Callable[[Any], Owners]

    def script(self) -> Mapping[str, object]:
        """For the agent. `P` is the process at whose end the scripts give up."""
        seconds = self.pace.timeout + self.processes.timeout
        texts = (f"(\n{_shell(fact)}\n)" for fact in (self.pace, self.processes))
        script = f"P=$$\n{MARK.join(texts)}"
        return {"tool": self.vendor.name, "library": self.library, "script": script, "seconds": seconds}

    def read(self, text: str) -> Iterator[tuple[str, DevicePace, frozenset[int]]]:
        """Name, pace and processes of each device. Raises UnreadableOutput."""
        one, _, other = text.partition(MARKED)
        paces: Mapping[Any, DevicePace] = self.pace.parse(Capture(self.pace.name, 0, one))
        pids = grouped(self.owners(self.processes.parse(Capture(self.processes.name, 0, other))))
        for number, (device, pace) in enumerate(paces.items()):
            name = device if isinstance(device, int) else number
            yield f"{self.vendor.thing} {name}", pace, frozenset(pids.get(device, ()))


MARKED = "@ processes begin\n"
MARK = f"\nprintf '{MARKED.strip()}\\n'\n"


def _shell(fact: Fact[Any]) -> str:
    assert isinstance(fact.command, Run)
    assert isinstance(fact.command.shell, str)
    return fact.command.shell


SOURCES = {
    source.vendor.name: source
    for source in (
        DeviceSource(
            NVIDIA, r"/libcuda\.", GPU_PACE, GPU_PROCESSES, lambda of: ((each.uuid, each.pid) for each in of)
        ),
        DeviceSource(
            *(AMD, r"/libamdhip64\.|/libhsa-runtime", AMD_PACE, AMD_PROCESSES),
            lambda of: ((each.gpu, each.pid) for each in of if each.gpu is not None),
        ),
        DeviceSource(
            *(ASCEND, r"/libascendcl\.|/libhccl", NPU_PACE, NPUS),
            lambda of: ((each.device, process.pid) for each in of for process in each.processes),
        ),
    )
}
SCRIPTS = [source.script() for source in SOURCES.values()]


def read(tool: str, text: str) -> list[tuple[str, DevicePace, frozenset[int]]]:
    """Nothing if it cannot be read."""
    try:
        return list(SOURCES[tool].read(text)) if tool in SOURCES else []
    except UnreadableOutput:
        return []

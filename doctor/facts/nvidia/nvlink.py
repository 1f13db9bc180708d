"""How the NVIDIA GPUs of a host are connected: NVLinks, topology, NVSwitches and their manager."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from doctor.api import Capture, Fact, Group, Run, UnreadableOutput
from doctor.facts.device_tools import complaint, some
from doctor.facts.nvidia.nvidia_smi import GPU, TOOL, answer, asked
from doctor.text.hostprogram import host_program


@dataclass(frozen=True, slots=True)
class Links:
    """The NVLinks of one GPU by number; both are empty if the tool only says that all links are inactive."""

    name: str
    active: tuple[int, ...]
    inactive: tuple[int, ...] = ()


def _nvlinks(capture: Capture) -> Mapping[int, Links]:
    """`GPU 0: NVIDIA H200 (UUID: ...)`, then `Link 0: 26.562 GB/s` or `Link 3: <inactive>` for each."""
    call = answer(capture)
    names: dict[int, str] = {}
    links: dict[int, dict[int, bool]] = {}
    current = -1
    for line in call.text.splitlines():
        if gpu := re.match(r"GPU (\d{1,4}): (.{1,80}?) \(UUID: ", line):
            current = int(gpu[1])
            names[current] = gpu[2]
        elif current in names and (link := re.match(r"\s{0,80}Link (\d{1,3}): (.{1,80})", line)):
            links.setdefault(current, {})[int(link[1])] = "inactive" not in link[2].lower()
        elif "all links are inactive" in line.lower() and current in names:
            links.setdefault(current, {})
    if not names and call.text:
        raise UnreadableOutput(complaint(call, TOOL))
    return {index: _links(names[index], found) for index, found in links.items()}


def _links(name: str, found: Mapping[int, bool]) -> Links:
    active, inactive = (tuple(n for n, up in found.items() if up is wanted) for wanted in (True, False))
    return Links(name, active, inactive)


NVLINKS = asked("nvlinks", 8, _nvlinks, "q nvlink nvlink --status")
"""GPU index -> its links; a GPU without NVLink, or in MIG mode, is left out."""

_ESCAPES = re.compile(r"\x1b\[[0-9;]{0,8}m")


def _topology(capture: Capture) -> Mapping[tuple[int, int], str]:
    """A matrix whose header may be underlined, and may name NICs after the GPUs."""
    call = answer(capture)
    found: dict[tuple[int, int], str] = {}
    columns: list[str] = []
    for line in _ESCAPES.sub("", call.text).splitlines():
        words = line.split(None, 400)
        if not columns and words[:1] == ["GPU0"] and "X" not in words:
            columns = words[: words.index("CPU")] if "CPU" in words else words
        elif columns and words and re.fullmatch(r"GPU\d{1,4}", words[0]):
            for column, cell in zip(columns, words[1:], strict=False):
                if re.fullmatch(r"GPU\d{1,4}", column) and column != words[0]:
                    one, other = sorted((int(words[0][3:]), int(column[3:])))
                    found[one, other] = cell[:8]
    some(columns, call, TOOL)
    return found


GPU_TOPOLOGY = asked("gpu-topology", 8, _topology, "q topo topo -m")
"""Two GPUs, the lower index first -> their connection: NV18, SYS, NODE, PHB, PXB, PIX."""


@dataclass(frozen=True, slots=True)
class FabricManager:
    """`running` is None if other users' processes are hidden from this login."""

    switches: int
    running: bool | None


# The kernel keeps 15 characters of a process name. The folder may exist without any switch.
_MANAGER = host_program(__file__, "nvlink_manager.sh")


def _manager(capture: Capture) -> FabricManager:
    counted = re.match(r"switches (\d{1,4})$", capture.stdout, re.MULTILINE)
    if not counted:
        raise UnreadableOutput("the NVSwitches were not counted")
    running = bool(re.search(r"^/proc/\d{1,10}/comm$", capture.stdout, re.MULTILINE))
    hidden = bool(re.search(r"^hidden$", capture.stdout, re.MULTILINE))
    return FabricManager(int(counted[1]), None if hidden else running)


FABRIC_MANAGER = Fact(
    "fabric-manager", Run(_MANAGER), _manager, timeout=4, cap=4096, group=Group(GPU.thing, GPU.where, 5)
)
"""A fact of its own, so that a hung nvidia-smi does not use up its time."""

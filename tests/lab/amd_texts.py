"""What amd-smi, rocm-smi and the kernel's ROCm driver print on a host with AMD Instinct MI300X. Pure.

The layouts are those of `tests/samples/amd/` (sources: `tests/samples/README.md`); the values are our own.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.cases import from_cases

PCI = "100274a1"
MEMORY_MB = 196592
IDLE_MB = 283
NONE_RUNS = "No running processes detected"
NO_PAGES = "No bad pages found."
_STATIC = from_cases(__file__, "_STATIC", dict[str, Any])
_METRIC = from_cases(__file__, "_METRIC", dict[str, Any])
_CARD = from_cases(__file__, "_CARD", dict[str, str])
NOT_IN_GROUPS = (
    "RuntimeError: WARNING: User is missing the following required groups: render, video. "
    "Please add user to these groups.\n"
)


@dataclass(slots=True)
class State:
    """One GPU. `pages` holds kind and address of its bad pages; `apps` name, process id and megabytes."""

    index: int
    bus: str
    minor: int
    uncorrected: int = 0
    corrected: int | str = 12
    replays: int | str = 106
    """Of its PCIe link; "@" grows all the time."""
    used_mb: int = IDLE_MB
    mhz: int = 132
    watts: int = 140
    busy: int = 0
    held: tuple[str, ...] = ()
    """What holds its clock down, by the names of amd-smi: socket_thermal, ppt."""
    pages: list[tuple[str, int]] = field(default_factory=list)
    apps: list[tuple[str, int, int]] = field(default_factory=list)


def printed(rows: Sequence[Any], *, wrapped: bool) -> str:
    """The form of amd-smi in ROCm 6: a list. Since ROCm 7, most commands put the list under `gpu_data`."""
    return json.dumps({"gpu_data": rows} if wrapped else rows, indent=4) + "\n"


def static(gpus: Iterable[State]) -> list[Any]:
    return [
        {
            "gpu": gpu.index,
            "asic": _STATIC["asic"] | {"asic_serial": f"0x{gpu.index + 1:016X}", "oam_id": gpu.index},
            "bus": _STATIC["bus"] | {"bdf": gpu.bus},
        }
        for gpu in gpus
    ]


def metric(gpus: Iterable[State]) -> list[Any]:
    return [_METRIC | {"gpu": gpu.index} | _measured(gpu) for gpu in gpus]


def _measured(gpu: State) -> dict[str, Any]:
    memory = {"used_vram": gpu.used_mb, "free_vram": MEMORY_MB - gpu.used_mb}
    clock = _METRIC["clock"] | {"clk": _of(gpu.mhz, "MHz")}
    clock["deep_sleep"] = "DISABLED" if gpu.busy else "ENABLED"
    return {
        "ecc": _METRIC["ecc"]
        | {"total_uncorrectable_count": gpu.uncorrected, "total_correctable_count": gpu.corrected},
        "pcie": _METRIC["pcie"] | {"replay_count": gpu.replays},
        "mem_usage": _METRIC["mem_usage"] | {name: _of(value, "MB") for name, value in memory.items()},
        "usage": _METRIC["usage"] | {"gfx_activity": _of(gpu.busy, "%")},
        "power": _METRIC["power"] | {"socket_power": _of(gpu.watts, "W")},
        "clock": {f"gfx_{part}": clock for part in range(8)},
    }


def _of(value: int, unit: str) -> dict[str, Any]:
    return {"value": value, "unit": unit}


def throttle(gpus: Iterable[State]) -> list[Any]:
    kinds = ("prochot", "ppt", "socket_thermal", "vr_thermal", "hbm_thermal")
    return [
        {
            "gpu": gpu.index,
            "throttle": {"accumulation_counter": 11240028}
            | {f"{kind}_accumulated": 0 for kind in kinds}
            | {f"{kind}_violation_status": "ACTIVE" if kind in gpu.held else "NOT ACTIVE" for kind in kinds},
        }
        for gpu in gpus
    ]


def process(gpus: Iterable[State]) -> list[Any]:
    return [
        {
            "gpu": gpu.index,
            "process_list": [
                {
                    "process_info": {
                        "name": name,
                        "pid": pid,
                        "mem_usage": {"value": mb << 20, "unit": "B"},
                        "usage": {"gfx": {"value": 0, "unit": "ns"}, "enc": {"value": 0, "unit": "ns"}},
                    }
                }
                for name, pid, mb in gpu.apps
            ]
            or [{"process_info": NONE_RUNS}],
        }
        for gpu in gpus
    ]


def bad_pages(gpus: Iterable[State]) -> list[Any]:
    return [
        {"gpu": gpu.index} | {kind: _pages(gpu, kind) for kind in ("retired", "pending", "un_res")}
        for gpu in gpus
    ]


_STATUS = {"retired": "RESERVED", "pending": "PENDING", "un_res": "UNRESERVABLE"}


def _pages(gpu: State, kind: str) -> Any:
    """A single page is printed without brackets."""
    mine = [
        {"page_address": address, "page_size": 4096, "status": _STATUS[kind]}
        for own, address in gpu.pages
        if own == kind
    ]
    return (mine[0] if len(mine) == 1 else mine) if mine else NO_PAGES


def rocm_info(gpus: Iterable[State]) -> str:
    cards = {
        f"card{gpu.index}": _CARD
        | {"PCI Bus": gpu.bus.upper(), "VRAM Total Used Memory (B)": str(gpu.used_mb << 20)}
        for gpu in gpus
    }
    return json.dumps(cards) + "\n"


def rocm_pids(gpus: Iterable[State]) -> str:
    """Nothing is printed if there is no process."""
    told = {
        f"PID{pid}": f"{name.rpartition('/')[2].lower()}, 1, {mb << 20}, 0, 0"
        for gpu in gpus
        for name, pid, mb in gpu.apps
    }
    return json.dumps({"system": told}) + "\n" if told else "WARNING: No JSON data to report\n"


def node(gpu: State | None) -> str:
    """The file `properties` of one node of the kernel's topology: a GPU or a processor."""
    if gpu is None:
        return "cpu_cores_count 96\nsimd_count 0\nvendor_id 0\nlocation_id 0\ndomain 0\ndrm_render_minor 0\n"
    return (
        "cpu_cores_count 0\nsimd_count 1216\nmem_banks_count 1\nsimd_per_cu 4\ngfx_target_version 90402\n"
        f"vendor_id 4098\ndevice_id 29857\nlocation_id {int(gpu.bus[5:7], 16) << 8}\ndomain 0\n"
        f"drm_render_minor {gpu.minor}\nunique_id {gpu.index + 1}\nnum_xcc 8\n"
    )

"""NVIDIA GPUs: the list, their health, and the processes on them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from doctor.api import Capture, UnreadableOutput
from doctor.facts.device_pace import SLOWDOWNS, DevicePace
from doctor.facts.device_tools import calls, complaint, some
from doctor.facts.gpus import Gpu, Gpus, bus_id
from doctor.facts.nvidia.nvidia_smi import TOOL, answer, asked, number, table, told
from doctor.text.hostprogram import host_program
from doctor.text.hostprogram import table as rows_of

_MOST_LINES = 16
SECONDS = 20
"""Without persistence mode each call first starts all GPUs, which is slow but not a fault."""
_TROUBLE = re.compile(r"GPU is lost|GPU requires reset|Unknown Error|ERR!", re.IGNORECASE)


def _gpus(capture: Capture) -> Gpus:
    denied = len(re.findall(r"^denied /dev/nvidia\d{1,4}$", capture.stdout, re.MULTILINE))
    made = [*calls(capture.stdout, TOOL)]
    if made and made[-1].failed and not (made[-1].unasked or made[-1].hung):
        return Gpus((), denied=denied, silent=made[-1].failed)
    call = answer(capture)
    rows, rest = table(call.text, "index")
    listed = [gpu for row in rows if (gpu := _gpu(row))]
    said = [line[:200] for line in rest if not line.startswith("denied /dev/")][:_MOST_LINES]
    if not listed and not said:
        raise UnreadableOutput(complaint(call, TOOL))
    return Gpus(tuple(listed), tuple(said), denied)


def _gpu(row: Mapping[str, str]) -> Gpu | None:
    index = number(row["index"])
    if index is None:
        return None
    trouble = _TROUBLE.search(", ".join(value for name, value in row.items() if name != "name"))
    return Gpu(
        index,
        told(row.get("uuid", "")),
        told(row.get("name", "")),
        bus_id(row.get("pci.bus_id", "")),
        number(row.get("memory.used", "")),
        trouble[0] if trouble else "",
    )


# Temperature and performance state are queried because a GPU that needs a reset still shows name and memory.
GPUS = asked(
    "gpus",
    SECONDS,
    _gpus,
    'for d in /dev/nvidia[0-9]*; do [ -r "$d" ] || echo "denied $d"; done',
    "q gpus --query-gpu=index,uuid,name,pci.bus_id,memory.used,temperature.gpu,pstate --format=csv",
)


@dataclass(frozen=True, slots=True)
class NvidiaHealth:
    """What a driver reports about one GPU beyond its name; None or empty if it does not report it.

    `action` is what the driver asks for: "None", "Reset", "Reboot", "Drain P2P", "Drain and Reset".
    `fabric` is how far it has joined the NVLink fabric; `fabric_status` is valid once that is "Completed".
    """

    uncorrected: int | None = None
    retirement_pending: bool | None = None
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    action: str = ""
    mig: bool = False
    fabric: str = ""
    fabric_status: str = ""
    fabric_health: str = ""
    compute: str = ""
    """Who may compute on it: "Default", "Exclusive_Process" or "Prohibited"."""
    said: Mapping[str, str] = field(default_factory=dict, compare=False)
    """All that it was asked for, by the tool's own names."""


_HEALTH, _PACE = (",".join(names) for _, *names in rows_of(__file__, "gpus.txt"))
# A driver refuses the whole query for one unknown field, and names that field.
_WITHOUT_UNKNOWN_FIELDS = host_program(__file__, "gpus_health.sh")


def _health(capture: Capture) -> Mapping[int, NvidiaHealth]:
    call = answer(capture)
    found = {
        index: NvidiaHealth(
            number(row.get("ecc.errors.uncorrected.volatile.total", "")),
            _yes(row.get("retired_pages.pending", "")),
            _yes(row.get("remapped_rows.pending", "")),
            _yes(row.get("remapped_rows.failure", "")),
            told(row.get("gpu_recovery_action", "")),
            row.get("mig.mode.current") == "Enabled",
            told(row.get("fabric.state", "")),
            told(row.get("fabric.status", "")),
            told(row.get("fabric.health.summary", "")),
            told(row.get("compute_mode", "")),
            row,
        )
        for row in table(call.text, "index")[0]
        if (index := number(row["index"])) is not None
    }
    return some(found, call, TOOL)


def _yes(text: str) -> bool | None:
    return {"yes": True, "1": True, "no": False, "0": False}.get(text.lower())


GPU_HEALTH = asked("gpu-health", SECONDS, _health, f"f={_HEALTH}", _WITHOUT_UNKNOWN_FIELDS, partial=True)
"""GPU index -> its health."""


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process that holds memory of a GPU; `name` is empty if it is hidden, as from inside a container."""

    uuid: str
    pid: int
    used_mb: int | None
    name: str


def _processes(capture: Capture) -> tuple[GpuProcess, ...]:
    call = answer(capture)
    if not re.search(r"^gpu_uuid,", call.text, re.MULTILINE):
        raise UnreadableOutput(complaint(call, TOOL))
    rows, _ = table(call.text, "gpu_uuid")
    return tuple(
        GpuProcess(
            row["gpu_uuid"],
            pid,
            number(row.get("used_gpu_memory", "")),
            told(row.get("process_name", "").rpartition("/")[2]),
        )
        for row in rows
        if (pid := number(row.get("pid", ""))) is not None
    )


GPU_PROCESSES = asked(
    "gpu-processes",
    8,
    _processes,
    "q apps --query-compute-apps=gpu_uuid,pid,used_gpu_memory,process_name --format=csv |",
    # A name may be a whole command line of anybody: options must not leave the host.
    "sed '/^GPU-/s/ -.*//'",
)


_REASONS = {int(bit, 16): words for bit, words in SLOWDOWNS["nvidia"].items()}
"""The bits of NVML. A hardware slowdown is the sum of the two above it."""
_IDLE, _HARDWARE, _SUMS = 0x1, 0x8, 0x40 | 0x80


def _paces(capture: Capture) -> Mapping[str, DevicePace]:
    call = answer(capture)
    found = {row["uuid"]: _pace(row) for row in table(call.text, "index")[0] if row.get("uuid")}
    return some(found, call, TOOL)


def _pace(row: Mapping[str, str]) -> DevicePace:
    said = row.get("clocks_event_reasons.active") or row.get("clocks_throttle_reasons.active") or ""
    bits = int(said, 16) if re.fullmatch(r"0x[0-9A-Fa-f]{1,16}", said) else 0
    if bits & _SUMS:
        bits &= ~_HARDWARE
    watts = re.match(r"[0-9]{1,5}", row.get("power.draw", ""))
    return DevicePace(
        number(row.get("clocks.current.sm", row.get("clocks.sm", ""))),
        number(row.get("clocks.max.sm", "")),
        int(watts[0]) if watts else None,
        number(row.get("temperature.gpu", "")),
        number(row.get("utilization.gpu", "").removesuffix(" %")),
        bool(bits & _IDLE),
        tuple(words for bit, words in _REASONS.items() if bits & bit),
    )


GPU_PACE = asked("gpu-pace", 8, _paces, f"f={_PACE}", _WITHOUT_UNKNOWN_FIELDS, partial=True)
"""By UUID. Old drivers call the reasons by their second name."""

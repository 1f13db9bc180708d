"""AMD GPUs: the list, their health, and the processes on them."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from doctor.api import AMD, Capture, Fact, Read, UnreadableOutput, files
from doctor.facts.amd.smi import (
    AMD_SMI,
    ROCM_SMI,
    Row,
    answer,
    asked,
    by_card,
    by_gpu,
    further,
    number,
    part,
    system,
    text,
)
from doctor.facts.device_pace import SLOWDOWNS, DevicePace
from doctor.facts.device_tools import ToolCall, calls, complaint, some
from doctor.facts.gpus import Gpu, Gpus, bus_id

SECONDS = 20
_MB = 1024 * 1024
_MOST_PROCESSES = 512


_DENIED = f'for d in {AMD.files}[0-9]*; do [ -r "$d" ] && [ -r {AMD.driver} ] || echo "denied $d"; done'


def _gpus(capture: Capture) -> Gpus:
    denied = len(re.findall(rf"^denied {AMD.files}\d{{1,4}}$", capture.stdout, re.MULTILINE))
    try:
        call, tool = answer(capture)
        listed = _listed(call)
    except UnreadableOutput as error:
        made = list(calls(capture.stdout, AMD_SMI))
        if all(call.unasked for call in made) or any(call.hung for call in made):
            raise
        return Gpus((), denied=denied, silent=error.message, tool=AMD_SMI, source=AMD_SMI)
    said = () if listed else (complaint(call, tool)[:200],)
    return Gpus(listed, said, denied, tool=tool, source=f"{tool}{' static' if tool == AMD_SMI else ''}")


def _listed(call: ToolCall) -> tuple[Gpu, ...]:
    if call.key == ROCM_SMI:
        return tuple(
            Gpu(
                card,
                "",
                text(row.get("card series")),
                bus_id(text(row.get("pci bus"))),
                _megabytes(row.get("vram total used memory (b)")),
            )
            for card, row in by_card(call)
        )
    return tuple(
        Gpu(
            gpu,
            "",
            text(part(row, "asic").get("market_name")),
            bus_id(text(part(row, "bus").get("bdf"))),
            serial=text(part(row, "asic").get("asic_serial")),
        )
        for gpu, row in by_gpu(call)
    )


def _megabytes(value: object) -> int | None:
    found = number(value)
    return None if found is None else found // _MB


AMD_GPUS = asked(
    "amd-gpus",
    SECONDS,
    _gpus,
    "static --asic --bus",
    "--showproductname --showbus --showmeminfo vram",
    before=_DENIED,
)


@dataclass(frozen=True, slots=True)
class AmdHealth:
    """`uncorrected`: since the driver was loaded. A reset retires `pending` pages; `stuck` could not be."""

    uncorrected: int | None = None
    used_mb: int | None = None
    pending: int = 0
    stuck: int = 0


def _health(capture: Capture) -> Mapping[int, AmdHealth]:
    call, tool = answer(capture)
    if tool == ROCM_SMI:
        found = {
            card: AmdHealth(used_mb=_megabytes(row.get("vram total used memory (b)")))
            for card, row in by_card(call)
        }
    else:
        found = {
            gpu: AmdHealth(
                number(part(row, "ecc").get("total_uncorrectable_count")),
                number(part(row, "mem_usage").get("used_vram")),
            )
            for gpu, row in by_gpu(call)
        }
        for gpu, row in further(capture, "pages").items():
            if gpu in found:
                found[gpu] = replace(found[gpu], pending=_count(row, "pending"), stuck=_count(row, "un_res"))
    return some(found, call, tool)


def _count(row: Row, kind: str) -> int:
    """The number of pages: the value is a list, a single page, or a sentence saying that there is none."""
    found = row.get(kind)
    return len(found) if isinstance(found, list) else int(isinstance(found, dict))


AMD_HEALTH = asked(
    "amd-health",
    SECONDS,
    _health,
    "metric --ecc --mem-usage",
    "--showmeminfo vram",
    after="L=4; q pages bad-pages --json",
)
"""The tool's GPU number -> the health of the GPU."""


@dataclass(frozen=True, slots=True)
class AmdProcess:
    """A process on a GPU; rocm-smi does not report which GPU."""

    gpu: int | None
    pid: int
    name: str
    used_mb: int | None


def _processes(capture: Capture) -> tuple[AmdProcess, ...]:
    call, tool = answer(capture)
    found = list(_of_rocm_smi(call) if tool == ROCM_SMI else _of_amd_smi(call))
    # Processes that only looked at the GPUs are listed too.
    return tuple(process for process in found if process.used_mb != 0)[:_MOST_PROCESSES]


def _of_amd_smi(call: ToolCall) -> Iterator[AmdProcess]:
    for gpu, row in some([*by_gpu(call)], call, AMD_SMI):
        listed = row.get("process_list")
        for entry in listed if isinstance(listed, list) else ():
            info = part(entry, "process_info") if isinstance(entry, dict) else {}
            pid = number(info.get("pid"))
            if pid is not None:  # otherwise the tool says in words that there is no process
                memory = part(info, "memory_usage").get("vram_mem", info.get("mem_usage"))
                yield AmdProcess(gpu, pid, _base(text(info.get("name"))), _in_megabytes(memory))


def _in_megabytes(value: object) -> int | None:
    """{"value": 2353860608, "unit": "B"} -> 2244; any memory at all counts as at least 1."""
    found = number(value)
    unit = value.get("unit") if isinstance(value, dict) else "B"
    if found is None:
        return None
    return found if unit == "MB" else -(-found // _MB)


def _of_rocm_smi(call: ToolCall) -> Iterator[AmdProcess]:
    """ "PID28389": "llama-server, 1, 2353860608, 11011, 0": name, GPUs, memory, SDMA, occupancy."""
    for key, value in system(call).items():
        pid = re.fullmatch(r"PID(\d{1,10})", key)
        words = [word.strip() for word in value.split(",")] if isinstance(value, str) else []
        if pid and len(words) >= 5:
            yield AmdProcess(None, int(pid[1]), _base(",".join(words[:-4])[:80]), _in_megabytes(words[-3]))


def _base(name: str) -> str:
    return name.rpartition("/")[2]


AMD_PROCESSES = asked("amd-processes", 10, _processes, "process --general", "--showpids", partial=False)


def _order(capture: Capture) -> tuple[str, ...]:
    found = []
    for path, told in files(capture).items():
        node = re.search(r"/nodes/(\d{1,4})/properties$", path)
        place = re.search(r"^location_id (\d{1,10})$", told, re.MULTILINE)
        domain = re.search(r"^domain (\d{1,10})$", told, re.MULTILINE)
        if node and place and re.search(AMD.node, told):
            bus, device = int(place[1]) >> 8 & 0xFF, int(place[1]) >> 3 & 0x1F
            found.append((int(node[1]), f"{int(domain[1]) if domain else 0:04x}:{bus:02x}:{device:02x}"))
    return tuple(bus for _, bus in sorted(found))


AMD_ORDER = Fact("amd-order", Read((AMD.node_files,)), _order)
"""PCI addresses of the GPUs that this login may use, in the order in which HIP counts them."""
_VIOLATIONS = SLOWDOWNS["amd"]


def _paces(capture: Capture) -> Mapping[int, DevicePace]:
    call, tool = answer(capture)
    if tool == ROCM_SMI:
        raise UnreadableOutput(f"{ROCM_SMI} does not say which process is on which GPU")
    held = further(capture, "throttle")
    found = {gpu: _pace(row, part(held.get(gpu, {}), "throttle")) for gpu, row in by_gpu(call)}
    return some(found, call, tool)


def _pace(row: Row, throttle: Row) -> DevicePace:
    clocks = [part(part(row, "clock"), name) for name in part(row, "clock") if name.startswith("gfx_")]
    running = [mhz for each in clocks if (mhz := number(each.get("clk"))) is not None]
    most = [mhz for each in clocks if (mhz := number(each.get("max_clk"))) is not None]
    reasons = [words for name, words in _VIOLATIONS.items() if text(throttle.get(name)) == "ACTIVE"]
    power = part(row, "power")
    if not reasons and text(power.get("throttle_status")) == "THROTTLED":
        reasons = ["throttled"]
    return DevicePace(
        # Partitions without work sleep: the fastest one shows how fast the GPU may run.
        max(running, default=None),
        max(most, default=None),
        number(power.get("socket_power")),
        number(part(row, "temperature").get("hotspot")),
        number(part(row, "usage").get("gfx_activity")),
        reasons=tuple(reasons),
    )


AMD_PACE = asked(
    "amd-pace",
    10,
    _paces,
    "metric --clock --power --temperature --usage",
    "--showclocks",
    after="L=3; q throttle metric --throttle --json",
)
"""The tool's GPU number -> its pace."""

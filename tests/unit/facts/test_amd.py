"""What amd-smi, rocm-smi and the amdgpu driver print, as typed facts, and which log lines accuse a GPU."""

import pytest

from checks.amd import troubles
from doctor.api import AMD
from doctor.errors import UnreadableOutput
from doctor.facts.amd.gpus import (
    AMD_GPUS,
    AMD_HEALTH,
    AMD_ORDER,
    AMD_PROCESSES,
    AmdHealth,
    AmdProcess,
)
from doctor.facts.gpus import Gpu
from doctor.facts.processes import KERNEL_LOG
from doctor.facts.system import DEVICES
from tests.support.captures import held, printed, sample
from tests.support.cases import cases, cases_with

NODE = "/sys/class/kfd/kfd/topology/nodes/{}/properties"


def told(name: str, tool: str = "amd-smi", rc: int = 0) -> str:
    return f"{sample(f'amd/{name}')}\n@ {tool} {rc}\n"


def after(text: str, more: str) -> str:
    return text + more


@cases_with(told, Gpu, after)
def test_gpus_are_listed(text: str, tool: str, gpu: Gpu) -> None:
    found = printed(AMD_GPUS, "denied /dev/dri/renderD128\n" + text)
    assert (found.listed[0], found.tool, found.denied, found.silent) == (gpu, tool, 1, "")


@cases
def test_a_tool_that_prints_nothing_is_silent(text: str, why: str) -> None:
    assert printed(AMD_GPUS, text).silent == why
    with pytest.raises(UnreadableOutput):
        printed(AMD_HEALTH, text)


def test_a_tool_that_hangs_is_not_understood() -> None:
    text = "denied /dev/dri/renderD128\n@ amd-smi hung 17\n"
    with pytest.raises(UnreadableOutput, match="amd-smi did not answer within 17 s"):
        printed(AMD_GPUS, text)
    with pytest.raises(UnreadableOutput, match="amd-smi did not answer within 17 s"):
        printed(AMD_HEALTH, text)


def test_empty_output_is_not_understood() -> None:
    with pytest.raises(UnreadableOutput, match="did not answer in time"):
        printed(AMD_GPUS, "denied /dev/dri/renderD128\n")


@cases_with(told, AmdHealth, after)
def test_health(text: str, health: AmdHealth) -> None:
    assert printed(AMD_HEALTH, text)[0] == health


@cases_with(told, AmdProcess)
def test_processes(text: str, processes: tuple[AmdProcess, ...]) -> None:
    assert printed(AMD_PROCESSES, text) == processes


def test_rocm_smi_without_json_reports_nothing() -> None:
    with pytest.raises(UnreadableOutput, match="No JSON data to report"):
        printed(AMD_PROCESSES, told("rocm_smi_no_json.txt", "rocm-smi"))


def kfd(*minors: int) -> dict[str, str]:
    """Two processors and these GPUs, in this order."""
    gpu = sample("amd/kfd_mi210.txt")
    nodes = {NODE.format(n): sample("amd/kfd_cpu.txt") for n in (0, 1)}
    for place, minor in enumerate(minors):
        own = gpu.replace("minor 128", f"minor {minor}").replace("25344", str((0x63 + place) << 8))
        nodes[NODE.format(2 + place)] = own
    return nodes


def test_render_nodes_of_other_vendors_are_not_counted() -> None:
    files = {f"/dev/dri/renderD{n}": "" for n in (128, 129, 130)} | {"/dev/kfd": ""} | kfd(129, 130, 131)
    devices = held(DEVICES, files)
    assert (devices.product, devices.of(AMD).numbers) == ("amd", (129, 130))
    assert devices.of(AMD).driver == "loaded"


def test_integrated_graphics_are_not_a_device_to_train_on() -> None:
    small = {path: text.replace("simd_count 416", "simd_count 32") for path, text in kfd(128).items()}
    devices = held(DEVICES, {"/dev/dri/renderD128": "", "/dev/kfd": ""} | small)
    assert (devices.product, devices.of(AMD).numbers) == ("cpu", ())


def test_instinct_gpus_on_the_bus_without_a_driver() -> None:
    rows = "0500\t100274a1\t0\n0600\t10021478\t0\tpcieport\n0700\t1002ab28\t0\tsnd_hda_intel\n"
    devices = held(DEVICES, {"/proc/bus/pci/devices": rows})
    assert (devices.product, devices.of(AMD).on_bus, devices.of(AMD).driver) == ("amd", 1, "")


def test_hip_counts_as_the_topology_does() -> None:
    assert held(AMD_ORDER, kfd(128, 129)) == ("0000:63:00", "0000:64:00")


def test_fault_lines_of_the_driver() -> None:
    lines = printed(KERNEL_LOG, "uptime 30000.00\n" + sample("amd/dmesg_amdgpu.txt"))
    found = troubles(lines)
    assert [(each.summary.removeprefix("kernel log: "), each.fatal, each.bus) for each in found] == [
        ("the GPU was reset", False, "0000:87:00"),
        ("hardware errors that could not be corrected", True, "0000:c3:00"),
        ("hardware errors that could not be corrected", True, "0000:c3:00"),
        ("the GPU could not be reset", True, ""),
    ]

"""What nvidia-smi, the kernel and ibstat print about GPUs, links and InfiniBand ports, as typed facts."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checks.gpu_xid import FATAL, SERIOUS, xids
from doctor.api import Capture, Fact
from doctor.errors import UnreadableOutput
from doctor.facts.gpus import Gpu, Gpus, bus_id, gpus_named
from doctor.facts.infiniband import IB_PORTS, InfinibandPort
from doctor.facts.nvidia.gpus import (
    GPU_HEALTH,
    GPU_PROCESSES,
    GPUS,
    GpuProcess,
    NvidiaHealth,
)
from doctor.facts.nvidia.nvlink import FABRIC_MANAGER, GPU_TOPOLOGY, NVLINKS, FabricManager, Links
from doctor.facts.processes import KernelLine
from tests.support.captures import printed, sample
from tests.support.cases import cases, from_cases

SMI: tuple[Fact[Any], ...] = (GPUS, GPU_HEALTH, GPU_PROCESSES, NVLINKS, GPU_TOPOLOGY)
ALL: tuple[Fact[Any], ...] = (*SMI, FABRIC_MANAGER, IB_PORTS)
BROKEN = from_cases(__file__, "BROKEN", tuple[str, ...])


def said(text: str, rc: int = 0) -> str:
    """The answer to one call, as the script frames it."""
    return f"{text}\n@ key {rc}\n"


def test_gpus() -> None:
    gpus = printed(GPUS, said(sample("nvidia-smi/gpus_h100_8gpu.csv")))
    assert [gpu.index for gpu in gpus.listed] == list(range(8))
    assert {gpu.name for gpu in gpus.listed} == {"NVIDIA H100 80GB HBM3"}
    assert [gpu.bus for gpu in gpus.listed][:2] == ["0000:19:00", "0000:3b:00"]
    assert [gpu.used_mb for gpu in gpus.listed] == [1, 1, 1, 1, 70512, 1, 1, 1]
    assert all(gpu.uuid.startswith("GPU-") and not gpu.trouble for gpu in gpus.listed)
    assert (gpus.said, gpus.denied, gpus.silent) == ((), 0, "")


def test_sick_gpus() -> None:
    gpus = printed(GPUS, said(sample("nvidia-smi/gpus_h100_sick.csv"), 15))
    assert {gpu.index: gpu.trouble for gpu in gpus.listed if gpu.trouble} == {
        2: "GPU requires reset",
        6: "GPU is lost",
    }
    assert [gpu.used_mb for gpu in gpus.listed if gpu.trouble] == [0, None]
    assert gpus.said == (
        "Unable to determine the device handle for GPU0000:DB:00.0: Unknown Error",
        "WARNING: infoROM is corrupted at gpu 0000:3B:00.0",
    )


@pytest.mark.parametrize("text", BROKEN)
def test_nvidia_smi_that_lists_nothing(text: str) -> None:
    gpus = printed(GPUS, said(text, 9))
    assert gpus == Gpus((), tuple(text.splitlines()))
    for fact in SMI[1:]:
        with pytest.raises(UnreadableOutput, match=r"\(exit code 9\)"):
            printed(fact, said(text, 9))


def test_unknown_columns_in_any_order_are_ignored() -> None:
    text = "index, new.thing [W], pci.bus_id, uuid\n3, [N/A], 00000001:00:00.0, GPU-1\nnonsense, 1, 2, 3\n"
    assert printed(GPUS, said(text)).listed == (Gpu(3, "GPU-1", "", "0001:00:00"),)


@pytest.mark.parametrize("fact", SMI, ids=lambda fact: fact.name)
def test_nvidia_smi_that_hangs(fact: Fact[Any]) -> None:
    hung, late = "@ key hung 10\n", "@ key unasked time\n"
    with pytest.raises(UnreadableOutput, match="did not answer within 10 s"):
        printed(fact, hung)
    if fact is GPUS:
        assert printed(GPUS, "@ gpus long\n") == Gpus((), silent="nvidia-smi printed without end")
    with pytest.raises(UnreadableOutput, match="time for nvidia-smi was used up"):
        printed(fact, late)
    with pytest.raises(UnreadableOutput, match="did not answer in time"):
        printed(fact, "cut off")


def test_device_files_of_others() -> None:
    text = "denied /dev/nvidia0\ndenied /dev/nvidia1\nindex, uuid\n0, GPU-a\n"
    gpus = printed(GPUS, said(text))
    assert (gpus.denied, len(gpus.listed), gpus.said) == (2, 1, ())


def test_health() -> None:
    health = printed(GPU_HEALTH, said(sample("nvidia-smi/health_h100_8gpu.csv")))
    well = NvidiaHealth(0, None, False, False, "None", False, "Completed", "Success")
    assert health == {
        **dict.fromkeys(range(8), well),
        1: NvidiaHealth(4, None, True, False, "Reset", False, "Completed", "Success"),
        5: NvidiaHealth(0, None, False, True, "None", True, "In Progress"),
    }


def test_health_of_a_card_that_reports_nothing() -> None:
    assert printed(GPU_HEALTH, said(sample("nvidia-smi/health_geforce.csv"))) == {0: NvidiaHealth()}


def test_health_comes_from_the_last_call() -> None:
    refused = said('Field "gpu_recovery_action" is not a valid field to query.', 2)
    text = refused + said("index, ecc.errors.uncorrected.volatile.total\n0, 7\n")
    assert printed(GPU_HEALTH, text) == {0: NvidiaHealth(uncorrected=7)}
    with pytest.raises(UnreadableOutput, match="not a valid field"):
        printed(GPU_HEALTH, refused)


def test_processes() -> None:
    processes = printed(GPU_PROCESSES, said(sample("nvidia-smi/apps.csv")))
    four, five = processes[0].uuid, processes[2].uuid
    assert processes == (
        GpuProcess(four, 41207, 70498, "python3.11"),
        GpuProcess(four, 41991, 12, "train"),  # from a path with a comma
        GpuProcess(five, 977, None, ""),
        GpuProcess(five, 2012, 28, "nvidia-cuda-mps-server"),
    )
    header = "gpu_uuid, pid, used_gpu_memory [MiB], process_name"
    assert printed(GPU_PROCESSES, said(header)) == ()
    assert (
        printed(GPU_PROCESSES, said(f"{header}\nWARNING: infoROM is corrupted at gpu 0000:3B:00.0", 14)) == ()
    )
    with pytest.raises(UnreadableOutput, match="printed nothing"):
        printed(GPU_PROCESSES, said(""))


def test_nvlinks() -> None:
    every = tuple(range(18))
    assert printed(NVLINKS, said(sample("nvidia-smi/nvlink_status_mixed.txt"))) == {
        0: Links("NVIDIA H100 80GB HBM3", every),
        1: Links("NVIDIA H100 80GB HBM3", tuple(n for n in every if n not in (4, 11)), (4, 11)),
        2: Links("NVIDIA H100 80GB HBM3", ()),
    }, "GPUs in MIG mode or without NVLink are left out"


def test_nvlinks_of_a100() -> None:
    found = printed(NVLINKS, said(sample("nvidia-smi/nvlink_status_a100.txt")))
    assert found == dict.fromkeys(range(8), Links("NVIDIA A100-SXM4-80GB", tuple(range(12))))


def test_no_nvlinks_at_all() -> None:
    assert printed(NVLINKS, said("")) == {}


def test_topology() -> None:
    assert printed(GPU_TOPOLOGY, said(sample("nvidia-smi/topo_m_h100_nics.txt"))) == {
        (0, 1): "NV18",
        (0, 2): "NV18",
        (1, 2): "NV18",
        (0, 3): "NV6",
        (1, 3): "NV6",
        (2, 3): "NV6",
    }


def test_a_topology_aligned_with_blanks() -> None:
    text = "      GPU0  GPU1  CPU Affinity  NUMA Affinity\nGPU0   X    NV12  0-23         0\nGPU1  SYS    X\n"
    assert printed(GPU_TOPOLOGY, said(text)) == {(0, 1): "SYS"}
    assert printed(GPU_TOPOLOGY, said("\t\x1b[4mGPU0\tCPU Affinity\x1b[0m\nGPU0\t X \t0-23\n")) == {}


@cases
def test_fabric_manager(text: str, found: FabricManager) -> None:
    assert printed(FABRIC_MANAGER, text) == found


def test_ports_from_the_kernel() -> None:
    ports = printed(IB_PORTS, sample("ib/sysfs_h100.txt"))
    assert len(ports) == 9
    assert ports[0] == InfinibandPort("mlx5_0", 1, "active", "LinkUp", "400 Gb/sec (4X NDR)", "InfiniBand")
    assert ports[-1] == InfinibandPort(
        "mlx5_bond_0", 1, "active", "LinkUp", "200 Gb/sec (2X NDR)", "Ethernet"
    )
    assert all(port.is_up for port in ports)


def test_ports_from_ibstat() -> None:
    assert printed(IB_PORTS, sample("ib/ibstat_mixed.txt")) == (
        InfinibandPort("mlx5_0", 1, "active", "LinkUp", "400", "InfiniBand"),
        InfinibandPort("mlx5_1", 1, "down", "Polling", "10", "InfiniBand"),
        InfinibandPort("mlx5_2", 1, "initializing", "LinkUp", "400", "InfiniBand"),
        InfinibandPort("mlx5_3", 1, "down", "Disabled", "40", "Ethernet"),
    )


def test_states_of_both_sources_have_the_same_names() -> None:
    base = "/sys/class/infiniband/mlx5_0/ports/"
    text = f"{base}1/state:2: INIT\n{base}2/state:3: ARMED\n{base}3/state:1: DOWN\n{base}4/rate:10\n"
    assert [port.state for port in printed(IB_PORTS, text)] == ["initializing", "armed", "down"]
    with pytest.raises(UnreadableOutput, match="state of a port"):
        printed(IB_PORTS, "ibpanic: no such device")


@cases
def test_bus_id(text: str, found: str) -> None:
    assert bus_id(text) == found


def test_gpus_are_named_for_a_report() -> None:
    assert gpus_named([3]) == "GPU 3"
    assert gpus_named([0, 1, 2, 6]) == "GPUs 0-2,6"


@cases
def test_xids_that_accuse_the_hardware(text: str, number: int, fatal: bool) -> None:
    (xid,) = xids([KernelLine(1.0, text)])
    assert (xid.number, xid.bus, xid.fatal) == (number, "0000:05:00", fatal)


@pytest.mark.parametrize("number", [0, 8, 13, 31, 32, 43, 45, 154, 99999])
def test_xids_of_programs_are_left_out(number: int) -> None:
    assert xids([KernelLine(1.0, f"NVRM: Xid (PCI:0000:05:00): {number}, pid=7, name=python")]) == ()


def test_no_xid_is_both_fatal_and_serious() -> None:
    assert not set(FATAL) & set(SERIOUS)


SMI_SAMPLES = from_cases(__file__, "SMI_SAMPLES", tuple[str, ...])
SEEDS = (
    *(said(sample(f"nvidia-smi/{name}")) for name in SMI_SAMPLES),
    sample("ib/ibstat_mixed.txt"),
    sample("ib/sysfs_h100.txt"),
)
PIECES = st.sampled_from(
    ["", ",", "[N/A]", "9" * 30, "-1", "GPU 0: ", "Link 3: ", "٣", "\x1b[", "\0", "@ key 0\n"]
)


@pytest.mark.slow
@pytest.mark.parametrize("fact", ALL, ids=lambda fact: fact.name)
@given(seed=st.sampled_from(SEEDS), at=st.floats(0, 1), length=st.integers(0, 60), piece=PIECES)
def test_damaged_answers(fact: Fact[Any], seed: str, at: float, length: int, piece: str) -> None:
    start = int(at * len(seed))
    for text in (seed[:start], seed[:start] + piece + seed[start + length :], seed[:start] + piece * 40):
        try:
            value = fact.parse(Capture(fact.name, 0, text))
        except UnreadableOutput:
            continue
        assert len(repr(value)) < 40 * len(text) + 2000


@pytest.mark.parametrize("fact", ALL, ids=lambda fact: fact.name)
@given(text=st.text(max_size=200), tail=st.sampled_from(["", "\n@ key 0\n"]))
def test_any_text(fact: Fact[Any], text: str, tail: str) -> None:
    with contextlib.suppress(UnreadableOutput):
        fact.parse(Capture(fact.name, 0, text + tail))

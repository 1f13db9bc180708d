"""Layouts that no fact reads, or reads in another form: the generic readers understand them too."""

import itertools

import pytest

from doctor.facts.ascend.pings import NPU_PINGS, Ping
from doctor.facts.infiniband import IB_PORTS, InfinibandPort
from doctor.facts.key_values import cells, pairs
from doctor.facts.nvidia.nvlink import GPU_TOPOLOGY
from doctor.model import Capture
from tests.support.cases import cases
from tests.support.paths import ROOT

SAMPLES = ROOT / "tests" / "samples"


def sample(name: str) -> str:
    return (SAMPLES / name).read_text()


@pytest.mark.parametrize(("model", "links"), [("a100", "NV12"), ("h100", "NV18")])
def test_a_topology_without_network_cards(model: str, links: str) -> None:
    text = sample(f"nvidia-smi/topo_m_{model}_8gpu.txt")
    found = GPU_TOPOLOGY.parse(Capture("gpu-topology", 0, f"{text}\n@ key 0\n"))
    assert found == dict.fromkeys(itertools.combinations(range(8), 2), links)


def test_ibstat() -> None:
    text = sample("ib/ibstat_mt4119_ok.txt")
    for more in ("", "\t\tPort state of tomorrow: 7\n"):
        found = IB_PORTS.parse(Capture("ib-ports", 0, text + more))
        assert found == (InfinibandPort("mlx5_0", 1, "active", "LinkUp", "100", "InfiniBand"),)


@cases
def test_pings(name: str, outcome: str) -> None:
    text = sample(f"hccn_tool/{name.removesuffix('_slow')}.txt")
    if name.endswith("_slow"):
        text = text.replace("3 packets", "warning: something new\n3 packets")
    (ping,) = NPU_PINGS.parse(Capture("npu-pings", 0, f"pings 5/10.20.0.25\n{text}\n@ 5/10.20.0.25 0\n"))
    assert (ping.device, ping.address, ping.outcome) == (5, "10.20.0.25", outcome)
    assert ping == Ping(5, "10.20.0.25", ping.outcome, text.strip().splitlines()[-1])


def test_the_long_output_of_nvidia_smi() -> None:
    told = list(pairs(sample("nvidia-smi/q_ecc.txt")))
    assert ("Driver Version", "535.104.05") in told
    assert [value for key, value in told if key == "DRAM Uncorrectable"] == ["3", "5"], "volatile, aggregate"
    assert ("Pending", "Yes") in told
    assert ("Remapping Failure Occurred", "No") in told


def test_the_table_of_nvidia_smi() -> None:
    rows = [row for line in sample("nvidia-smi/plain_550.txt").splitlines() if (row := cells(line))]
    assert "Driver Version: 550.54.15" in rows[1][0]
    gpu, use = (row for row in rows if len(row) == 3 and ("A100" in row[0] or "MiB" in row[1]))
    assert gpu[1:] == ["00000000:17:00.0 Off", "2"]
    assert use[1:] == ["612MiB /  81920MiB", "0%      Default"]


def test_packages_as_pip_lists_them() -> None:
    rows = [cells(line) for line in sample("version/pip_list_grep.txt").splitlines()]
    assert rows == [["torch", "1.11.0"], ["torch-npu", "2.1.0.post8.dev20241009"], ["mindspore", "2.3.0"]]

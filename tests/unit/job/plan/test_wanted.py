"""How many devices the variables of a container, a launch or a scheduler ask for."""

from __future__ import annotations

import pytest

from doctor.job.plan.wanted import wanted_devices
from doctor.model import Backend

NVIDIA_GIVEN, UUID = "NVIDIA_VISIBLE_DEVICES", "GPU-8f4c9a52-0b1e-4a4e-9f5f-0c4a7b1d2e3"
GPUS: list[tuple[dict[str, str], int | None]] = [
    ({}, None),
    # What runtimes give. Images for CUDA have `all`; CDI gives devices in another way, and leaves `void`.
    ({NVIDIA_GIVEN: "all"}, 1),
    ({NVIDIA_GIVEN: "0,1,2,3"}, 4),
    ({NVIDIA_GIVEN: ",".join(f"{UUID}{n}" for n in range(8))}, 8),
    ({NVIDIA_GIVEN: f"{UUID}0,{UUID}0"}, 1),
    ({NVIDIA_GIVEN: "0:0,0:1"}, 1),
    ({NVIDIA_GIVEN: "MIG-1f-a,MIG-1f-b"}, 1),
    ({NVIDIA_GIVEN: "/var/run/nvidia-container-devices"}, 1),
    ({NVIDIA_GIVEN: "void"}, None),
    ({NVIDIA_GIVEN: ""}, None),
    ({NVIDIA_GIVEN: "none"}, 0),
    ({"AMD_VISIBLE_DEVICES": "0-3,5"}, 5),
    ({"AMD_VISIBLE_DEVICES": "all"}, 1),
    # What the job chooses among the devices that are there.
    ({"CUDA_VISIBLE_DEVICES": "0,1"}, 1),
    ({"CUDA_VISIBLE_DEVICES": UUID}, 1),
    ({"CUDA_VISIBLE_DEVICES": "MIG-1f-a"}, 1),
    ({"CUDA_VISIBLE_DEVICES": ""}, 0),
    ({"CUDA_VISIBLE_DEVICES": "-1"}, 0),
    ({"CUDA_VISIBLE_DEVICES": "NoDevFiles"}, 0),
    ({"CUDA_VISIBLE_DEVICES": "", NVIDIA_GIVEN: "all"}, 0),
    ({"HIP_VISIBLE_DEVICES": "0"}, 1),
    # The variable of one vendor says nothing about the devices of another.
    ({"ROCR_VISIBLE_DEVICES": "", NVIDIA_GIVEN: "0,1"}, 2),
    ({"HIP_VISIBLE_DEVICES": "-1", NVIDIA_GIVEN: "all"}, 1),
    ({"HIP_VISIBLE_DEVICES": "", "AMD_VISIBLE_DEVICES": "0-3"}, 0),
    ({"ROCR_VISIBLE_DEVICES": "", "SLURM_GPUS_ON_NODE": "8"}, 8),
    ({"ROCR_VISIBLE_DEVICES": ""}, 0),
    ({"ROCR_VISIBLE_DEVICES": "GPU-4b2c1a9f"}, 1),
    # What Slurm allocated: as many on each node only if the request says so.
    ({"SLURM_GPUS_PER_NODE": "8"}, 8),
    ({"SLURM_GPUS_PER_NODE": "a100:8"}, 8),
    ({"SLURM_GPUS_PER_NODE": "a100:4,v100:2"}, 6),
    ({"SLURM_GPUS_PER_NODE": "a100_1g.5gb:7"}, 1),
    ({"SLURM_GPUS_ON_NODE": "8"}, 8),
    ({"SLURM_GPUS_ON_NODE": "7", "CUDA_VISIBLE_DEVICES": "MIG-1f-a,MIG-1f-b"}, 1),
    ({"SLURM_GPUS_ON_NODE": "8", "SLURM_GPUS": "12"}, 1),
    ({"SLURM_GPUS_PER_TASK": "a100:1"}, 1),
    ({"SLURM_JOB_GPUS": "0,1,4-7"}, 6),
    ({"SLURM_GPUS": "0"}, 0),
    ({"SLURM_GPUS_PER_NODE": "many"}, None),
    ({"ASCEND_VISIBLE_DEVICES": "0-7"}, None),
]
NPUS: list[tuple[dict[str, str], int | None]] = [
    ({"ASCEND_VISIBLE_DEVICES": "0-7"}, 8),
    ({"ASCEND_VISIBLE_DEVICES": "Ascend910-0,Ascend910-1"}, 2),
    ({"ASCEND_VISIBLE_DEVICES": "7-0"}, 1),
    ({"ASCEND_VISIBLE_DEVICES": "void"}, None),
    ({"ASCEND_RT_VISIBLE_DEVICES": "0,1"}, 1),
    ({"ASCEND_RT_VISIBLE_DEVICES": "-1"}, 0),
    ({NVIDIA_GIVEN: "all", "SLURM_GPUS_ON_NODE": "8"}, None),
]


@pytest.mark.parametrize(
    ("backend", "env", "count"),
    [*((Backend.NCCL, *case) for case in GPUS), *((Backend.HCCL, *case) for case in NPUS)],
)
def test_what_is_asked_for(backend: Backend, env: dict[str, str], count: int | None) -> None:
    wanted = wanted_devices(env, backend)
    assert (wanted and wanted.value) == count
    assert wanted is None or wanted.source.partition("=")[0] in env


def test_a_short_value_is_shown() -> None:
    """Lists of UUIDs differ from host to host, so findings with them would not be folded."""
    said = [wanted_devices({NVIDIA_GIVEN: text}, Backend.NCCL) for text in ("all", UUID)]
    assert [each and each.source for each in said] == [f"{NVIDIA_GIVEN}=all", NVIDIA_GIVEN]


CERTAIN = [
    ({NVIDIA_GIVEN: "all"}, 1, False),
    ({NVIDIA_GIVEN: "0"}, 1, True),
    ({"CUDA_VISIBLE_DEVICES": "0,1"}, 1, False),
    ({NVIDIA_GIVEN: "0,1", "CUDA_VISIBLE_DEVICES": "0"}, 2, True),
    ({NVIDIA_GIVEN: "all", "SLURM_GPUS": "8"}, 1, True),
    ({NVIDIA_GIVEN: "all", "SLURM_GPUS": "0"}, 1, False),
]


@pytest.mark.parametrize(("env", "count", "certain"), CERTAIN)
def test_what_images_and_start_files_set_is_not_certain(
    env: dict[str, str], count: int, certain: bool
) -> None:
    wanted = wanted_devices(env, Backend.NCCL)
    assert wanted is not None
    assert (wanted.value, wanted.certain) == (count, certain)
    of_job = wanted_devices({"CUDA_VISIBLE_DEVICES": "0"}, Backend.NCCL, {"CUDA_VISIBLE_DEVICES"})
    assert of_job is not None
    assert of_job.certain


@pytest.mark.parametrize("name", ["SLURM_GPUS_ON_NODE", "SLURM_JOB_GPUS"])
def test_what_another_node_has_is_not_asked_of_this_one(name: str) -> None:
    env = {name: "0,1,2,3" if name == "SLURM_JOB_GPUS" else "4"}
    found = [wanted_devices(env, Backend.NCCL, here=here) for here in (True, False)]
    assert [each and each.value for each in found] == [4, 1]

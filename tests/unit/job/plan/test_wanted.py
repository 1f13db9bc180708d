"""How many devices the variables of a container, a launch or a scheduler ask for."""

import pytest

from doctor.job.plan.wanted import wanted_devices
from doctor.model import Backend
from tests.support.cases import cases, from_cases

NVIDIA_GIVEN, UUID = "NVIDIA_VISIBLE_DEVICES", "GPU-8f4c9a52-0b1e-4a4e-9f5f-0c4a7b1d2e3"
GPUS = from_cases(__file__, "GPUS", list[tuple[dict[str, str], int | None]])
NPUS = from_cases(__file__, "NPUS", list[tuple[dict[str, str], int | None]])


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


@cases
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

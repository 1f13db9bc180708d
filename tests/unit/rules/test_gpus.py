"""Which GPUs remain visible to a job with these variables of CUDA and HIP."""

import pytest

from checks.amd import hip_gpus
from doctor.api import Undecided
from doctor.facts.gpus import Gpu, Gpus
from doctor.job.plan import JobPlan, draft
from doctor.job.wishes import JobWishes
from doctor.model import Host
from doctor.rules.gpus import cuda_gpus, cuda_words, hip_words
from tests.support.cases import cases


def plan(**env: str) -> JobPlan:
    return draft([Host("node1", "node1")], JobWishes(env=env))


EIGHT = Gpus(tuple(Gpu(index, f"GPU-{index}abc-{index}", "H100", "") for index in range(8)))


@cases
def test_cuda_stops_at_the_first_unknown_word(wish: str | None, indices: list[int]) -> None:
    given_env = plan() if wish is None else plan(CUDA_VISIBLE_DEVICES=wish)
    assert [gpu.index for gpu in cuda_gpus(EIGHT, given_env)] == indices


def test_visible_gpus_that_cannot_be_known() -> None:
    with pytest.raises(Exception, match="MIG instances"):
        cuda_words(plan(CUDA_VISIBLE_DEVICES="MIG-1234"))
    with pytest.raises(Exception, match="no answer"):
        cuda_gpus(Gpus((), silent="no answer"), plan())


def test_hip_counts_as_the_topology_does() -> None:
    order = ("0000:63:00", "0000:64:00")
    gpus = Gpus((Gpu(0, "", "x", "0000:64:00"), Gpu(1, "", "x", "0000:63:00")))
    assert [gpu.index for gpu in hip_gpus(gpus, order, plan(HIP_VISIBLE_DEVICES="0"))] == [1]
    assert [gpu.index for gpu in hip_gpus(gpus, None, plan(HIP_VISIBLE_DEVICES="0"))] == [0]
    assert [gpu.index for gpu in hip_gpus(gpus, order[:1], plan())] == [1], "those of our own cgroup"


@cases
def test_gpus_that_the_variables_leave_visible(env: dict[str, str], left: tuple[str, ...] | None) -> None:
    assert hip_words(plan(**env)) == left


def test_names_by_uuid_are_undecided() -> None:
    with pytest.raises(Undecided, match="ROCR_VISIBLE_DEVICES names GPUs by UUID"):
        hip_words(plan(ROCR_VISIBLE_DEVICES="GPU-4b2c1a9f"))

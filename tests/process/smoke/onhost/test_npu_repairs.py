"""What the smoke run does for HCCL: without it, the emulated HCCL refuses the same run.

No real NPU is involved: the ranks run on this machine, with the lab's torch_npu.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from doctor.job.hccl import REDUCED
from doctor.smoke.events import Audit, Collectives, Error, GradientBits, TrainStep
from doctor.smoke.onhost.shape import CellShape
from tests.lab.device_os import DeviceOs
from tests.lab.npu_products import PRODUCTS
from tests.lab.npu_python import TorchNpu, write
from tests.support.smoke.ranks import RankOutput, run_ranks

TRAINING = CellShape(
    dp=4,
    tp=2,
    hosts=(8,),
    steps=2,
    seed=20,
    backend="hccl",
    dtypes=REDUCED["atlas-training"],
    dp_in_world=True,
    waver_tries=3,
)
"""A whole server, as `plan_smoke` lays it out."""
A2 = TRAINING._replace(dp=2, hosts=(4,), dtypes=REDUCED["atlas-a2"], dp_in_world=False)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """The folder of CANN, with the operating system of the devices."""
    with closing(DeviceOs(tmp_path / "os")):
        yield tmp_path


def ran(folder: Path, product: str, shape: CellShape, *only: str, wavers: str = "") -> list[RankOutput]:
    write(folder, str(folder), PRODUCTS[product], TorchNpu(wavers=wavers))
    return run_ranks(shape, only=only or None, python=str(folder / "npu-python"), still=20)


def errors(ranks: list[RankOutput]) -> str:
    return "\n".join(error.text for rank in ranks for error in rank.all(Error))


def test_a_whole_atlas_training_server_trains(folder: Path) -> None:
    ranks = ran(folder, "atlas-training", TRAINING)
    assert [rank.code for rank in ranks] == [0] * 8, errors(ranks)
    assert all(not rank.one(Collectives).wrong and not rank.one(Collectives).unsupported for rank in ranks)
    assert len({rank.all(TrainStep)[-1].params for rank in ranks}) == 2, "one model in two parts"


def test_groups_of_replicas_are_refused_across_the_rings(folder: Path) -> None:
    ranks = ran(folder, "atlas-training", TRAINING._replace(dp_in_world=False), "train")
    assert "ERR02200" in errors(ranks)
    assert {rank.page["phase"] for rank in ranks} == {"join"}


def test_a_type_that_the_product_lacks_breaks_everything_after_it(folder: Path) -> None:
    ranks = ran(folder, "atlas-training", TRAINING._replace(dtypes=()), "collectives", "train")
    assert "EI0003" in "".join(rank.words for rank in ranks)
    assert all(rank.code for rank in ranks)


def test_determinism_is_switched_on(folder: Path) -> None:
    for rank in ran(folder, "atlas-a2", A2, "train", wavers="default"):
        assert len(set(rank.one(GradientBits).tries)) == 1
        assert not rank.all(Audit)[0].sums, "equal bits need no numbers"


def test_ranks_that_waver_all_the_same_say_so_and_add_numbers(folder: Path) -> None:
    ranks = ran(folder, "atlas-a2", A2, "train", wavers="always")
    assert any(len(set(rank.one(GradientBits).tries)) > 1 for rank in ranks)
    for rank in ranks:
        assert all(len(audit.sums) == len(audit.votes) + 1 for audit in rank.all(Audit))
        assert all(step.weights for step in rank.all(TrainStep))

"""A real job of two ranks, one of which draws other dropout masks from step 60 on (parted/make.py)."""

from __future__ import annotations

from pathlib import Path

from doctor.logs.loss.collect import LossCollector
from doctor.logs.loss.judge import judge_curves
from doctor.logs.model import Curve, Party

HERE = Path(__file__).with_name("parted")


def real(rank: int, until: int = 10_000) -> Curve:
    collector = LossCollector(f"rank{rank}.log")
    for number, line in enumerate((HERE / f"rank{rank}.log").read_text().splitlines()[:until], 1):
        assert collector.wants(line.encode())
        assert collector.offer(line, number, Party(rank=rank))
    (curve,) = collector.curves()
    return curve


def test_the_step_of_the_other_mask_is_found() -> None:
    (charge,) = judge_curves([real(0), real(1)])
    assert charge.symptom == "loss-ranks-disagree"
    assert charge.says == "The losses of ranks 0-1 differ since step 60, and were the same before"


def test_each_rank_alone_and_both_before_that_step_are_healthy() -> None:
    assert judge_curves([real(0)]) == ()
    assert judge_curves([real(1)]) == ()
    assert judge_curves([real(0, 59), real(1, 59)]) == ()

"""A rank that logs no more steps while others go on, if no line complains."""

from dataclasses import replace

import pytest

from doctor.logs.judge import conclude
from doctor.logs.judge.lag import fell_silent
from doctor.logs.model import Curve, LogFile, LogOutcome, Logs, Party


def curve(rank: int | None, last: int, every: int = 1, first: int = 0) -> Curve:
    steps = tuple(range(first, last + 1, every))
    losses = tuple(1.0 for _ in steps)
    return Curve("a.log", Party(rank=rank), steps, losses, total=len(steps))


def test_a_rank_that_stops_early_is_told_and_nobody_is_accused() -> None:
    curves = (*(curve(rank, 1203) for rank in range(3)), curve(3, 799))
    found = conclude(Logs((LogFile("a.log", lines=5000),), curves=curves))
    assert found.outcome is LogOutcome.UNKNOWN
    assert found.open == (
        "rank 3 logged no step after 799, and ranks 0-2 went on to 1,203: no line says why",
    )
    assert not found.charges


@pytest.mark.parametrize(
    "other",
    [
        curve(1, 1000),
        curve(1, 960),  # not flushed, or read a little earlier
        curve(1, 900, every=100),  # it logs less often
        curve(1, 5),  # it logged only the first steps
        replace(curve(1, 100), counted=True),  # the log does not number the steps
        curve(None, 100),  # the rank is unknown, and perhaps of another job
    ],
)
def test_ranks_that_end_together_are_no_sign(other: Curve) -> None:
    assert not fell_silent((curve(0, 1000), other))
    assert (
        conclude(Logs((LogFile("a.log", lines=9),), curves=(curve(0, 1000), other))).outcome
        is LogOutcome.CLEAN
    )


def test_only_the_last_start_of_a_rank_counts() -> None:
    assert not fell_silent((curve(0, 400), curve(1, 100), curve(1, 400, first=50)))
    assert fell_silent((curve(0, 400), curve(1, 400), curve(1, 100, first=50)))

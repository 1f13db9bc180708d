"""Logs of several ranks, each with its number behind the time: who went on, and who left first."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from doctor.logs.model import Conclusion, LogOutcome
from doctor.model import Confidence
from tests.support.cases import from_cases
from tests.support.fault_logs import concluded, written

RAISED = from_cases(__file__, "RAISED", list[str])
IN_A_THREAD = from_cases(__file__, "IN_A_THREAD", list[str])
LOST = from_cases(__file__, "LOST", str)
WAITED = from_cases(__file__, "WAITED", str)
KILLED = from_cases(__file__, "KILLED", str)
TABLE = from_cases(__file__, "TABLE", list[str])
REFUSED = "shard index 41f0 does not fit the manifest (9c2e): will not train on it"


def said(rank: int, text: str, level: str = "INFO", second: int = 0) -> str:
    return f"2026-11-20 10:00:{second:02},{rank}12 [rank{rank}] {level} loop: {text}"


def steps(first: int, last: int, ranks: Sequence[int] = (0, 1)) -> list[str]:
    return [
        said(rank, f"step {step} loss 0.{90 - step}", second=step)
        for step in range(first, last)
        for rank in ranks
    ]


def causes(found: Conclusion) -> set[int | None]:
    return {party.rank for party in found.charges[0].who}


def test_what_a_rank_caught_is_no_fault_if_all_that_write_there_went_on(tmp_path: Path) -> None:
    caught = [said(1, "tile unreadable, took another one", "ERROR"), *RAISED]
    assert written(tmp_path, *steps(0, 5), *caught, *steps(5, 12)).outcome is LogOutcome.CLEAN


@pytest.mark.parametrize("after", [[], steps(5, 12, [0]), steps(5, 6)], ids=["nobody", "one", "a step"])
def test_but_it_is_if_one_of_them_may_have_ended(after: list[str], tmp_path: Path) -> None:
    assert written(tmp_path, *steps(0, 5), *RAISED, *after).outcome is LogOutcome.NAMED


def test_an_error_that_a_rank_quotes_before_it_goes_on_ended_nobody(tmp_path: Path) -> None:
    quoted = said(0, "sample: who meets 'RuntimeError: NCCL communicator was aborted on rank 3' lost a peer")
    assert written(tmp_path, *steps(0, 5), quoted, *steps(5, 9)).outcome is LogOutcome.CLEAN
    assert written(tmp_path, *steps(0, 5), quoted).outcome is LogOutcome.NAMED


def by_rank(folder: Path, **last: Sequence[str]) -> Conclusion:
    """The conclusion of a file for each rank, with these last lines."""
    for name, lines in last.items():
        path = folder / f"{name}.log"
        path.write_text("".join(f"{line}\n" for line in (*steps(0, 5, [int(name[4:])]), *lines)))
    return concluded(folder)


def test_who_logged_an_error_last_is_the_cause_and_not_who_was_stopped(tmp_path: Path) -> None:
    found = by_rank(tmp_path, rank0=[], rank1=[LOST], rank2=[said(2, REFUSED, "ERROR")], rank3=[LOST])
    assert causes(found) == {2}
    assert REFUSED in found.charges[0].says


def test_who_logged_an_error_and_went_on_is_as_silent_as_the_others(tmp_path: Path) -> None:
    went_on = [said(2, REFUSED, "ERROR"), *steps(5, 6, [2])]
    found = by_rank(tmp_path, rank0=[], rank1=[LOST], rank2=went_on, rank3=[LOST])
    assert causes(found) == {0, 2}


def test_the_exit_code_that_an_error_explains_quotes_it(tmp_path: Path) -> None:
    error = said(2, REFUSED, "ERROR")
    for lines in ([error, *TABLE], [*TABLE]):
        found = written(tmp_path, *steps(0, 5, [0, 1, 2]), "[rank1]: " + LOST, *lines)
        assert causes(found) == {2}
        assert any(REFUSED in each for each in found.charges[0].how) is (error in lines)


def test_a_rank_that_had_finished_was_not_killed(tmp_path: Path) -> None:
    found = by_rank(tmp_path, rank0=[*steps(5, 6, [0]), LOST], rank1=[said(1, "run finished")])
    assert found.charges[0].says == "rank 1 had finished; rank 0 lost its connection"
    assert found.charges[0].confidence is Confidence.SUSPECT


@pytest.mark.parametrize(
    "ends",
    [
        {"rank0": [said(0, "run finished"), LOST], "rank1": [said(1, "epoch 0 finished")]},
        {"rank0": [LOST], "rank1": [said(1, "run finished"), *steps(5, 6, [1])]},
    ],
    ids=["all", "before a step"],
)
def test_a_rank_that_had_finished_no_more_than_the_others_had_not(
    ends: dict[str, list[str]], tmp_path: Path
) -> None:
    assert "without a word" in by_rank(tmp_path, **ends).charges[0].says


def test_the_exception_of_a_thread_is_told_beside_who_did_not_join(tmp_path: Path) -> None:
    found = written(tmp_path, *steps(0, 3), *IN_A_THREAD, *steps(3, 9), WAITED)
    assert causes(found) == {1}
    assert any("IndexError: token 70001 is not in the table" in each for each in found.charges[0].how)


def mpiexec(*ends: tuple[int, str]) -> list[str]:
    return [KILLED.format(rank, 4000 + rank, how) for rank, how in ends]


SEGFAULT, KILL = "11 (Segmentation fault)", "9 (Killed)"


@pytest.mark.parametrize("order", [1, -1])
def test_who_crashed_is_named_and_not_whom_mpiexec_killed_for_it(order: int, tmp_path: Path) -> None:
    found = written(tmp_path, "step 7", *mpiexec((4, SEGFAULT), (5, KILL), (6, KILL))[::order])
    assert causes(found) == {4}
    assert [each.because for each in found.charges] == [None, 0]


def test_those_that_were_killed_together_are_one_cause(tmp_path: Path) -> None:
    found = written(tmp_path, "step 7", *mpiexec((4, KILL), (5, KILL), (6, KILL)))
    assert causes(found) == {4, 5, 6}
    assert [each.because for each in found.charges] == [None]


def test_code_that_raises_for_a_loss_prints_none(tmp_path: Path) -> None:
    code = 'if loss != loss: raise FloatingPointError(f"loss is nan at step {step}")'
    raised = ["Traceback (most recent call last):", '  File "/app/loop.py", line 8', "    " + code]
    ends = [f"[rank1]: {line}" for line in (*raised, "FloatingPointError: loss is nan at step 5")]
    found = written(tmp_path, *steps(0, 5), said(1, "step 5 loss nan"), *ends)
    assert not [each.says for each in found.charges if "loss no." in each.says]
    assert any("NaN since step 5" in each.says for each in found.charges)

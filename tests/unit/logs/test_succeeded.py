"""A log whose last line says that the program succeeded: what it complained of before ended nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from doctor.logs.model import Conclusion, LogOutcome
from doctor.logs.steps import says_trained
from doctor.model import Confidence
from tests.support.cases import cases
from tests.support.fault_logs import concluded

PRINTED = "CUDA out of memory. Tried to allocate 2.00 GiB, retrying with half the batch\n"
RAISED = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
END = "Training finished successfully\n"


def of(folder: Path, text: str, **others: str) -> Conclusion:
    (folder / "train.log").write_text(text)
    for name, more in others.items():
        (folder / f"{name}.log").write_text(more)
    return concluded(folder)


def test_a_warning_before_it_is_no_fault(tmp_path: Path) -> None:
    found = of(tmp_path, PRINTED + END)
    assert found.outcome is LogOutcome.CLEAN
    assert found.survived
    assert found.open == ("1 line complains, and the job went on after that: left out",)
    assert not of(tmp_path, END).survived


def test_without_it_the_warning_is_the_cause(tmp_path: Path) -> None:
    assert of(tmp_path, PRINTED).outcome is LogOutcome.NAMED
    assert of(tmp_path, END + PRINTED).outcome is LogOutcome.NAMED


def test_an_exception_before_it_is_only_suspected(tmp_path: Path) -> None:
    """Python may have held the last line back, and written it after an exception that ended it."""
    (charge,) = of(tmp_path, RAISED + END).charges
    assert charge.confidence is Confidence.SUSPECT
    assert any("succeeded" in each for each in charge.how)
    (charge,) = of(tmp_path, RAISED).charges
    assert charge.confidence is Confidence.STRONG


def test_another_rank_that_finished_clears_nobody(tmp_path: Path) -> None:
    found = of(tmp_path, "", rank1=PRINTED, rank0=END)
    assert found.outcome is LogOutcome.NAMED
    assert found.charges[0].confidence is Confidence.STRONG


@pytest.mark.parametrize("line", ["Training finished successfully.", "run succeeded in 3 h"])
def test_lines_that_say_so(line: str) -> None:
    assert says_trained(line)


@cases
def test_lines_that_do_not_say_so(line: str) -> None:
    """A script says that it is done whatever became of its program; others say so of other things."""
    assert not says_trained(line)

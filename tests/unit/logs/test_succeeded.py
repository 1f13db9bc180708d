"""A log whose last line says that the program succeeded: what it complained of before ended nobody."""

from pathlib import Path

import pytest

from doctor.logs.explanation import clean_words
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


OVER = ("Training finished", "Job complete.", "Fine-tuning completed", "All done!", END.strip())


@pytest.mark.parametrize("end", OVER)
def test_an_exception_before_it_accuses_nobody(end: str, tmp_path: Path) -> None:
    """The last line may be the word of a script whose program ended with the exception."""
    found = of(tmp_path, f"{RAISED}{end}\n")
    assert (found.outcome, found.charges[0].symptom) == (LogOutcome.UNKNOWN, "torch-cuda-memory")
    (charge,) = of(tmp_path, RAISED).charges
    assert charge.confidence is Confidence.STRONG


@cases
def test_other_ends_acquit_nobody(end: str, tmp_path: Path) -> None:
    assert of(tmp_path, f"{RAISED}{end}\n").outcome is LogOutcome.NAMED


def test_losses_before_and_after_it_clear_their_only_writer(tmp_path: Path) -> None:
    losses = [f"step {step} loss {3 / step:.3f}\n" for step in range(1, 20)]
    found = of(
        tmp_path, "".join([*losses[:9], "Traceback (most recent call last):\n", RAISED, *losses[9:12]])
    )
    assert (found.outcome, found.survived) == (LogOutcome.CLEAN, True)


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


def test_the_words_of_an_all_clear() -> None:
    assert clean_words(Conclusion(LogOutcome.CLEAN, survived=True)).startswith("the job went on")
    assert clean_words(Conclusion(LogOutcome.CLEAN)).startswith("nothing")


@cases
def test_who_works_again_is_not_at_fault(complains: str, over: str, still: str, tmp_path: Path) -> None:
    """What says that it is over counts below the complaint; `still` is what the complaint alone names."""
    assert of(tmp_path, complains + over).outcome is LogOutcome.CLEAN
    (charge, *_) = of(tmp_path, complains).charges
    assert charge.symptom == still


LEFT = (
    "[rank{}]:[W515 07:06:42.95 ProcessGroupNCCL.cpp:1117] WARNING: process group has NOT been destroyed "
    "before it is being destructed.\n"
)
GONE = (
    "[rank7]:[W515 07:06:43.12 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=69): "
    "Connection reset by peer\n"
)


def test_the_store_that_closes_behind_a_rank_that_was_over(tmp_path: Path) -> None:
    assert of(tmp_path, LEFT.format(7) + GONE).outcome is LogOutcome.CLEAN
    for other in ("", LEFT.format(3)):
        assert of(tmp_path, other + GONE).outcome is not LogOutcome.CLEAN

"""An uncaught exception that no symptom matches makes a suspect if it is the last output of a program."""

from pathlib import Path

import pytest

from doctor.logs.model import Conclusion, LogOutcome
from doctor.model import Confidence
from tests.support.cases import from_cases
from tests.support.each import each
from tests.support.fault_logs import concluded, written

FRAMES = ("Traceback (most recent call last):", '  File "/work/train.py", line 40, in main', "    step()")
ERROR = "KeyError: 'labels'"
CHILD = "[ERROR] api: failed (exitcode: 1) local_rank: 3 (pid: 429) of binary: python"
LAUNCHER = from_cases(__file__, "LAUNCHER", tuple[str, ...])


@each("more", [(), ("", "wandb: done"), (*FRAMES, ERROR)])
def test_it_is_suspected(more: tuple[str, ...], tmp_path: Path) -> None:
    found = written(tmp_path, "step 3 loss 2.2", *FRAMES, ERROR, *more)
    assert (found.outcome, found.charges[0].confidence) == (LogOutcome.NAMED, Confidence.SUSPECT)
    assert "KeyError: 'labels' (/work/train.py:40, in main)" in found.charges[0].says


def test_the_rank_that_torch_marks_is_suspected(tmp_path: Path) -> None:
    marked = [f"[rank2]: {line}" for line in (*FRAMES, ERROR)]
    found = written(tmp_path, *marked, *(f"cleaning up {number}" for number in range(9)))
    assert {party.rank for party in found.charges[0].who} == {2}


@each("more", [("falling back", "loading again", "all good", "bye"), ("step 4 loss 2.1", "step 5 loss 2.0")])
def test_a_program_that_went_on_is_not(more: tuple[str, ...], tmp_path: Path) -> None:
    found = written(tmp_path, "step 3 loss 2.2", *FRAMES, ERROR, *more)
    assert found.outcome is not LogOutcome.NAMED


@each(
    "more", [("Training completed successfully.",), ("run 7 succeeded", ""), ("saved", "Training successful")]
)
def test_a_program_that_says_that_it_succeeded_is_not(more: tuple[str, ...], tmp_path: Path) -> None:
    found = written(tmp_path, "step 3 loss 2.2", *FRAMES, ERROR, *more)
    assert found.outcome is LogOutcome.UNKNOWN


@each(
    "more", ["Training not completed successfully", "done", "job finished", "0 of 4 runs succeeded, 4 failed"]
)
def test_a_script_that_ends_proves_no_success(more: str, tmp_path: Path) -> None:
    found = written(tmp_path, "step 3 loss 2.2", *FRAMES, ERROR, more)
    assert found.outcome is LogOutcome.NAMED


@each(
    "last", ["subprocess.CalledProcessError: Command 'x' returned non-zero exit status 1.", "ValueError: x"]
)
def test_what_a_launcher_raises_is_not(last: str, tmp_path: Path) -> None:
    assert written(tmp_path, "loading", *LAUNCHER, last).outcome is LogOutcome.UNKNOWN


@each(
    "last", ["ConnectionResetError: [Errno 104] Connection reset by peer", "EOFError", "TimeoutError: late"]
)
def test_what_others_cause_is_not(last: str, tmp_path: Path) -> None:
    assert written(tmp_path, "loading", *FRAMES, last).outcome is LogOutcome.UNKNOWN


def test_it_is_that_of_the_process_that_torchrun_saw_fail(tmp_path: Path) -> None:
    found = written(tmp_path, *FRAMES, ERROR, CHILD)
    assert found.charges[0].says.startswith("process 429 ended with an exception of the program: KeyError")
    assert len([charge for charge in found.charges if charge.because is None]) == 1


def test_an_exception_of_a_thread_ends_no_program(tmp_path: Path) -> None:
    found = written(tmp_path, "step 3 loss 2.2", "Exception in thread Thread-3:", *FRAMES, ERROR)
    assert found.outcome is LogOutcome.UNKNOWN


UNREACHABLE = from_cases(__file__, "UNREACHABLE", str)
AFTER = tuple(f"killing subprocess {number}" for number in range(9))


def ids(found: Conclusion) -> list[str | None]:
    return [charge.symptom for charge in found.charges]


def test_one_that_is_known_ends_a_program_that_makes_no_further_step(tmp_path: Path) -> None:
    """The same words in a warning are normal while the head is not up yet; an exception is not a warning."""
    assert "torch-connect-unreachable" in ids(written(tmp_path, *FRAMES, UNREACHABLE, *AFTER))
    went_on = written(tmp_path, *FRAMES, UNREACHABLE, "trying again", "step 1 loss 2.2", "step 2 loss 2.0")
    assert went_on.outcome is LogOutcome.CLEAN
    warned = written(tmp_path, f"[W1120 01:04:16.1 socket.cpp:752] [c10d] {UNREACHABLE[70:]}", *AFTER)
    assert warned.outcome is LogOutcome.CLEAN


REDUNDANT = from_cases(__file__, "REDUNDANT", str)


def test_one_that_is_unknown_leaves_a_warning_before_it_its_weight(tmp_path: Path) -> None:
    ended = written(tmp_path, REDUNDANT, *FRAMES, "RuntimeError: no rank in the cluster")
    assert "mindspore-node-redundant" in ids(ended)
    went_on = written(tmp_path, REDUNDANT, *(f"epoch {n} took {n}.1 s" for n in range(9)))
    assert went_on.outcome is LogOutcome.CLEAN


@pytest.mark.parametrize(("lines", "outcome"), [(9, LogOutcome.NAMED), (99, LogOutcome.CLEAN)])
def test_a_few_lines_after_a_complaint_may_be_those_of_a_shell(
    lines: int, outcome: LogOutcome, tmp_path: Path
) -> None:
    found = written(tmp_path, REDUNDANT, *(f"copied file {number}" for number in range(lines)))
    assert found.outcome is outcome


def test_a_program_that_refuses_its_arguments_ends_whatever_a_shell_says_after_it(tmp_path: Path) -> None:
    refused = "train.py: error: unrecognized arguments: --fp8"
    assert ids(written(tmp_path, refused, *(f"copied file {number}" for number in range(99)))) == [
        "python-arguments"
    ]


TIMED_OUT = from_cases(__file__, "TIMED_OUT", str)


@each("guilty", [0, 1])
def test_the_exception_of_the_worker_that_mindspore_misses_is_why(guilty: int, tmp_path: Path) -> None:
    (tmp_path / "scheduler.log").write_text(f"{TIMED_OUT.format(1)}\n")
    for rank in (0, 1):
        lines = ("step 3 loss 2.2", *((*FRAMES, ERROR) if rank == guilty else ()))
        (tmp_path / f"worker_{rank}.log").write_text("".join(f"{line}\n" for line in lines))
    (first, *_) = concluded(tmp_path).charges
    assert {party.rank for party in first.who} == {1}
    assert (ERROR in first.says) is (guilty == 1)
    assert first.confidence is Confidence.STRONG


def test_an_exception_that_only_wraps_that_of_a_rank_is_not_the_cause(tmp_path: Path) -> None:
    wrapped = "x.exceptions.DeadlockDetectedException: DeadLock detected from rank: 0 "
    found = written(tmp_path, "step 3 loss 2.2", *FRAMES, wrapped, " " + FRAMES[0], *FRAMES[1:], ERROR)
    assert ERROR in found.charges[0].says

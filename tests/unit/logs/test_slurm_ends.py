"""How Slurm tells of the end of a job: whom it lost, whom it killed itself, and whom it only asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from doctor.logs.model import LogOutcome, Party
from tests.support.fault_logs import accused, concluded

CANCELLED = "slurmstepd: error: *** STEP 7.0 ON node1 CANCELLED AT 2026-11-20T07:22:27 ***"
KILLED = "srun: error: node2: task 5: Killed"
OTHERS = "srun: error: node1: tasks 0-3: Terminated"
TRACEBACK = (
    "Traceback (most recent call last):",
    '  File "/job/train.py", line 7, in <module>',
    "    read(shard)",
    "ValueError: no shard 17",
)


def named(folder: Path, *lines: str) -> tuple[Party, ...]:
    (folder / "slurm-7.out").write_text("".join(f"{line}\n" for line in lines))
    return accused(concluded(folder / "slurm-7.out"))


@pytest.mark.parametrize(
    "before",
    [
        CANCELLED,
        "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.",
        "srun: launch/slurm: _step_signal: Terminating StepId=7.0",
    ],
)
def test_what_slurm_kills_when_it_ends_a_step_is_nobodys_fault(before: str, tmp_path: Path) -> None:
    assert {party.rank for party in named(tmp_path, KILLED, OTHERS)} == {5}
    assert not named(tmp_path, before, KILLED, OTHERS)


def test_the_first_that_failed_stays_named(tmp_path: Path) -> None:
    failed = "srun: error: node1: task 0: Exited with exit code 1"
    found = named(tmp_path, failed, "srun: launch/slurm: _step_signal: Terminating StepId=7.0", KILLED)
    assert {party.rank for party in found} <= {0}


def test_the_host_where_a_step_began_was_not_lost(tmp_path: Path) -> None:
    """Slurm writes its first host into that line, whichever was lost."""
    why = "DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***"
    lost = f"{CANCELLED.removesuffix(' ***')} {why}"
    assert not named(tmp_path, lost)
    found = named(tmp_path, "srun: error: Node failure on node3", lost)
    assert {party.host for party in found} == {"node3"}


def test_a_job_that_was_cancelled_is_told_from_a_step(tmp_path: Path) -> None:
    """srun cancels steps itself; a job is cancelled by scancel."""
    path = tmp_path / "slurm-7.out"
    path.write_text(CANCELLED + "\n")
    assert concluded(path).outcome is LogOutcome.UNKNOWN
    path.write_text(CANCELLED + "\n" + CANCELLED.replace("STEP 7.0", "JOB 7") + "\n")
    said = concluded(path)
    assert (said.outcome, said.charges[0].symptom) == (LogOutcome.NAMED, "slurm-job-cancelled")
    assert not accused(said)


@pytest.mark.parametrize("why", [" ***", " DUE TO TIME LIMIT ***"])
def test_an_exception_before_the_scheduler_ended_the_job_is_told(why: str, tmp_path: Path) -> None:
    """The other ranks may have hung since, until somebody or the time limit ended them."""
    path = tmp_path / "slurm-7.out"
    ended = CANCELLED.replace("STEP 7.0", "JOB 7").replace(" ***", why)
    path.write_text("\n".join([*TRACEBACK, ended, ""]))
    said = concluded(path).charges[0]
    assert "exception of the program came first: ValueError: no shard 17" in said.says
    path.write_text("\n".join([ended, *TRACEBACK, ""]))  # it ended because it was told to
    assert "ValueError" not in concluded(path).charges[0].says


def test_a_job_that_was_requeued_and_went_on_is_not_accused(tmp_path: Path) -> None:
    path = tmp_path / "slurm-7.out"
    ended = CANCELLED.replace("STEP 7.0", "JOB 7").replace(" ***", " DUE TO JOB REQUEUE ***")
    path.write_text(f"{ended}\n")
    assert concluded(path).charges[0].symptom == "slurm-requeued"
    steps = [f"step {step} loss {3 - step / 1000:.4f}" for step in range(400)]
    path.write_text("\n".join([*steps[:100], ended, *steps[90:], ""]))
    assert concluded(path).outcome is LogOutcome.CLEAN

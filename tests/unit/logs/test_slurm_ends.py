"""How Slurm tells of the end of a job: whom it lost, whom it killed itself, and whom it only asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from doctor.logs.model import Party
from tests.support.fault_logs import accused, concluded

CANCELLED = "slurmstepd: error: *** STEP 7.0 ON node1 CANCELLED AT 2026-11-20T07:22:27 ***"
KILLED = "srun: error: node2: task 5: Killed"
OTHERS = "srun: error: node1: tasks 0-3: Terminated"


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

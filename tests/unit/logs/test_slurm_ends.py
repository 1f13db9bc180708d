"""How Slurm reports the end of a job: the nodes that it lost, the ranks that it killed, and those that it
only told to end.
"""

from pathlib import Path

import pytest

from doctor.logs.model import LogOutcome, Party
from tests.support.cases import cases, from_cases
from tests.support.fault_logs import accused, concluded, pasted

CANCELLED = "slurmstepd: error: *** STEP 7.0 ON node1 CANCELLED AT 2026-11-20T07:22:27 ***"
KILLED = "srun: error: node2: task 5: Killed"
OTHERS = "srun: error: node1: tasks 0-3: Terminated"
TRACEBACK = from_cases(__file__, "TRACEBACK", tuple[str, ...])


def named(folder: Path, *lines: str) -> tuple[Party, ...]:
    (folder / "slurm-7.out").write_text("".join(f"{line}\n" for line in lines))
    return accused(concluded(folder / "slurm-7.out"))


@cases
def test_what_slurm_kills_when_it_ends_a_step_is_nobodys_fault(before: str, tmp_path: Path) -> None:
    assert {party.rank for party in named(tmp_path, KILLED, OTHERS)} == {5}
    assert not named(tmp_path, before, KILLED, OTHERS)


def test_the_first_that_failed_stays_named(tmp_path: Path) -> None:
    failed = "srun: error: node1: task 0: Exited with exit code 1"
    found = named(tmp_path, failed, "srun: launch/slurm: _step_signal: Terminating StepId=7.0", KILLED)
    assert {party.rank for party in found} <= {0}


def test_the_host_where_a_step_began_was_not_lost(tmp_path: Path) -> None:
    """Slurm writes its first host into that line, whichever host was lost."""
    why = "DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***"
    lost = f"{CANCELLED.removesuffix(' ***')} {why}"
    assert not named(tmp_path, lost)
    found = named(tmp_path, "srun: error: Node failure on node3", lost)
    assert {party.host for party in found} == {"node3"}


@pytest.mark.parametrize("why", [" ***", " DUE TO TIME LIMIT ***"])
def test_an_exception_before_the_scheduler_ended_the_job_is_told(why: str, tmp_path: Path) -> None:
    """The other ranks may have hung since then, until a person or the time limit ended them."""
    path = tmp_path / "slurm-7.out"
    ended = CANCELLED.replace("STEP 7.0", "JOB 7").replace(" ***", why)
    path.write_text("\n".join([*TRACEBACK, ended, ""]))
    said = concluded(path).charges[0]
    assert "exception of the program came first: ValueError: no shard 17" in said.says
    path.write_text("\n".join([ended, *TRACEBACK, ""]))  # it ended because it was told to
    assert "ValueError" not in concluded(path).charges[0].says


def test_a_cancelled_job_is_no_ones_fault_and_is_named(tmp_path: Path) -> None:
    found = pasted(tmp_path, f"step 3 loss 2.0\n{CANCELLED.replace('STEP 7.0', 'JOB 7')}\n")
    assert (found.outcome, found.charges[0].symptom) == (LogOutcome.NAMED, "slurm-cancelled")
    assert not accused(found)


def test_a_requeued_job_accuses_no_task(tmp_path: Path) -> None:
    requeued = f"{CANCELLED.removesuffix(' ***')} DUE TO JOB REQUEUE ***"
    lines = (requeued, "srun: error: node1: tasks 2-3: Exited with exit code 1")
    assert not named(tmp_path, *lines)
    found = concluded(tmp_path / "slurm-7.out")
    assert (found.outcome, found.charges[0].symptom) == (LogOutcome.NAMED, "slurm-requeued")


def test_a_crash_is_told_with_its_signal(tmp_path: Path) -> None:
    (tmp_path / "slurm-7.out").write_text("srun: error: node2: task 5: Bus error (core dumped)\n")
    assert "rank 5 on node2: Slurm saw a task crash (Bus error)" in concluded(tmp_path).charges[0].says


@cases
def test_a_task_that_starts_ranks_is_not_a_rank(inside: str, tmp_path: Path) -> None:
    assert {(party.rank, party.host) for party in named(tmp_path, inside, KILLED)} == {(None, "node2")}


LIMIT = "slurmstepd: error: *** JOB 42 ON node1 CANCELLED AT 2026-11-20T07:22:27 DUE TO TIME LIMIT ***"


@cases
def test_a_line_glued_to_an_open_one_is_read(before: str, tmp_path: Path) -> None:
    found = pasted(tmp_path, f"{before}{LIMIT}\n")
    assert (found.outcome, found.charges[0].symptom) == (LogOutcome.NAMED, "slurm-time-limit")


FAILURE = f"[2026-11-20T07:22:27.809] {CANCELLED.removeprefix('slurmstepd: ')[:-4]} DUE TO TASK FAILURE ***"


def test_slurm_ends_a_step_because_of_the_task_that_failed(tmp_path: Path) -> None:
    assert not named(tmp_path, FAILURE, OTHERS, KILLED)
    failed = "srun: error: node1: task 58: Exited with exit code 1"
    assert {party.rank for party in named(tmp_path, FAILURE, OTHERS, failed)} == {58}


def test_a_folder_that_is_missing_on_a_host_accuses_nobody(tmp_path: Path) -> None:
    line = (
        "slurmstepd: error: couldn't chdir to `/data/run': No such file or directory: going to /tmp instead"
    )
    assert not named(tmp_path, line, "# nThread 1 nGpus 2 minBytes 1048576", "# Avg bus bandwidth : 12.5")
    assert concluded(tmp_path / "slurm-7.out").outcome is LogOutcome.CLEAN


def test_the_shell_names_the_process_that_ran_out_of_memory(tmp_path: Path) -> None:
    memory = "slurmstepd: error: Detected 1 oom_kill event in StepId=191.batch."
    shell = "/var/spool/slurmd/job00191/slurm_script: line 28:  8156 Killed                  python3 main.py"
    assert {party.pid for party in named(tmp_path, "Epoch: [0][511/1736]", "Killed", shell, memory)} == {8156}
    says = concluded(tmp_path / "slurm-7.out").charges[0].says
    assert says.startswith("process 8156 was killed by the kernel for lack of memory")


def test_all_hosts_that_slurm_lost_are_named(tmp_path: Path) -> None:
    lines = [f"srun: error: Node failure on node{number}" for number in (3, 4, 3)]
    assert {party.host for party in named(tmp_path, *lines)} == {"node3", "node4"}


def test_the_signal_of_the_scheduler_is_nobodys_ctrl_c(tmp_path: Path) -> None:
    limit = LIMIT.replace("TIME LIMIT", "PREEMPTION")
    trace = ("Traceback (most recent call last):", '  File "/app/train.py", line 12, in <module>', "    go()")
    assert not named(tmp_path, limit, *trace, "KeyboardInterrupt")
    assert concluded(tmp_path / "slurm-7.out").charges[0].symptom == "slurm-preempted"


@cases
def test_other_ends(line: str, symptom: str, tmp_path: Path) -> None:
    found = pasted(tmp_path, f"step 3\n{line}\n")
    assert (found.outcome, found.charges[0].symptom) == (LogOutcome.NAMED, f"slurm-{symptom}")


LABELLED = from_cases(__file__, "LABELLED", str)
FIRST = from_cases(__file__, "FIRST", str)
SENDING = from_cases(__file__, "SENDING", str)


@pytest.mark.parametrize(("end", "rank"), [(FIRST, 11), (SENDING, None), ("", 1)])
def test_the_labels_of_srun_are_ranks_unless_its_tasks_are_torchruns(
    end: str, rank: int | None, tmp_path: Path
) -> None:
    lines = LABELLED if rank != 1 else LABELLED.replace("torch/distributed/run.py", "app/run.py")
    ends = "srun: error: node2: task 1: Exited with exit code 1"
    assert {party.rank for party in named(tmp_path, *f"{lines}{end}".splitlines(), ends)} == {rank}


def test_a_job_that_was_requeued_and_went_on_is_not_accused(tmp_path: Path) -> None:
    path = tmp_path / "slurm-7.out"
    ended = CANCELLED.replace("STEP 7.0", "JOB 7").replace(" ***", " DUE TO JOB REQUEUE ***")
    path.write_text(f"{ended}\n")
    assert concluded(path).charges[0].symptom == "slurm-requeued"
    steps = [f"step {step} loss {3 - step / 1000:.4f}" for step in range(400)]
    path.write_text("\n".join([*steps[:100], ended, *steps[90:], ""]))
    assert concluded(path).outcome is LogOutcome.CLEAN

"""The logs of two jobs in one folder: each is judged on its own."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from doctor.logs.explanation import Explanation, headline, last_words
from doctor.logs.judge.jobs import conclude_all
from doctor.logs.model import LogFile, LogOutcome, Logs
from doctor.model import Confidence
from tests.support.fault_logs import JOBS, concluded
from tests.unit.logs.test_attempts import later, text_of

LOOP = JOBS / "loopback"


def test_slurms_numbers_tell_jobs_apart(tmp_path: Path) -> None:
    (tmp_path / "slurm-101.out").write_text(text_of("healthy"))
    (tmp_path / "slurm-102.out").write_text(text_of("failed"))
    said = concluded(tmp_path)
    assert said.outcome is LogOutcome.NAMED
    assert headline(said.charges[0]).startswith("job 102: rank 1 ended with an exception")
    assert said.beside == ("job 101: nothing in it complains",)
    assert "in job 102" in last_words(Explanation(said))


def test_two_that_failed_are_both_told(tmp_path: Path) -> None:
    (tmp_path / "slurm-101.out").write_text(text_of("failed-again"))
    (tmp_path / "slurm-102.out").write_text(text_of("failed"))
    said = concluded(tmp_path)
    causes = [each for each in said.charges if each.because is None]
    assert [each.job for each in causes] == ["job 101", "job 102"]
    assert all(
        said.charges[each.because].job == each.job for each in said.charges if each.because is not None
    )
    assert said.beside[0].startswith("job 101: attempt 1 of 2 failed: rank 2")


@pytest.mark.parametrize("number", [1, 2])
def test_output_and_errors_of_one_job_are_one(tmp_path: Path, number: int) -> None:
    (tmp_path / "slurm-101.out").write_text("training on 4 ranks\nstep 10/40 loss 0.2\n")
    (tmp_path / "slurm-101.err").write_text(text_of("failed"))
    if number == 2:
        (tmp_path / "slurm-101.1.out").write_text("step 10/40 loss 0.2\n")
    said = concluded(tmp_path)
    assert said.charges[0].job == ""
    assert [each.rank for each in said.charges[0].who] == [1]


def test_folders_of_the_same_ranks_at_other_times_are_jobs(tmp_path: Path) -> None:
    for name, text in (("run_a", text_of("failed")), ("run_b", later(text_of("failed")))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.log").write_text(text)
    said = concluded(tmp_path)
    assert [each.job for each in said.charges if each.because is None] == ["run_a", "run_b"]


def test_folders_of_hosts_are_one_job(tmp_path: Path) -> None:
    for name in ("node1", "node2"):
        (tmp_path / name).mkdir()
        shutil.copy(JOBS / "killed" / f"{name}.log", tmp_path / name / "train.log")
    said = concluded(tmp_path)
    assert {each.job for each in said.charges} == {""}
    assert [each.rank for each in said.charges[0].who] == [3]


def test_what_the_kernel_says_may_be_of_each(tmp_path: Path) -> None:
    (tmp_path / "slurm-101.out").write_text(text_of("healthy"))
    (tmp_path / "slurm-102.out").write_text(text_of("failed"))
    (tmp_path / "dmesg.txt").write_text("[    1.000000] mlx5_core 0000:01:00.0: firmware version: 1\n" * 5)
    said = concluded(tmp_path)
    assert said.charges[0].job == "job 102"


def test_folders_that_may_be_of_two_jobs_are_not_decided(tmp_path: Path) -> None:
    """The same ranks failed in both at the same time."""
    for name in ("run_a", "run_b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.log").write_text(text_of("failed"))
    said = concluded(tmp_path)
    assert said.open[0] == "run_a and run_b may be two jobs: explain one at a time"
    assert {each.confidence for each in said.charges if each.because is None} == {Confidence.SUSPECT}


def test_one_job_may_not_be_two() -> None:
    for job in (
        JOBS / "killed",
        JOBS / "exception-redirects",
        JOBS / "stopped",
        LOOP / "failed-again-redirects",
    ):
        assert not any("two jobs" in each for each in concluded(job).open)


def test_folders_of_one_job_with_other_kinds_of_lines_are_no_jobs(tmp_path: Path) -> None:
    """CANN's logs of a run and of its errors; a rank's output and its errors."""
    started, failed = (
        "2026-11-20 07:20:00 [rank0]: start",
        "2026-11-20 07:30:00 [rank0]: ValueError: no shard",
    )
    for one, other in (("run", "debug"), ("stdout", "stderr")):
        folder = tmp_path / one
        for name, text in ((one, f"{started}\nstep 1 loss 2.5\n"), (other, f"{failed}\n")):
            (folder / name).mkdir(parents=True)
            (folder / name / "rank0.log").write_text(text)
        said = concluded(folder)
        assert {each.job for each in said.charges} <= {""}
        assert not any("two jobs" in each for each in said.open)


def test_of_several_jobs_none_is_clean_where_a_log_was_missed() -> None:
    job = Logs((LogFile("a.log", lines=9),), job="job 1")
    both = Logs(job.files, jobs=(job, replace(job, job="job 2")))
    assert conclude_all(both, None, lambda _: ()).outcome is LogOutcome.CLEAN
    assert conclude_all(replace(both, missed=True), None, lambda _: ()).outcome is LogOutcome.UNKNOWN

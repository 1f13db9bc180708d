"""The job's key, from its variable or its file."""

import os
from pathlib import Path

import pytest

from doctor.errors import UsageError
from doctor.exam.in_job.job_key import FILE, LONGEST, JobKey, read_job_key
from doctor.exam.in_job.rank_env import read_job_rank
from tests.support.cases import from_cases

JOB = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "node1", "MASTER_PORT": "29500"}
OPENMPI = from_cases(__file__, "OPENMPI", dict[str, str])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / FILE
    path.parent.mkdir(parents=True)
    path.write_text("from the file, long enough\n")
    path.chmod(0o600)
    return path


def key(tmp_path: Path, **more: str) -> JobKey:
    return read_job_key({"HOME": str(tmp_path), **more})


def test_without_one_there_is_none(tmp_path: Path) -> None:
    for key in (read_job_key({}), read_job_key({"HOME": str(tmp_path)}), read_job_key({"HOME": "."})):
        assert key == JobKey()
    assert read_job_rank({**JOB, "HOME": str(tmp_path)}).secret == ""


def test_the_variable_counts_more_than_the_file(tmp_path: Path, file: Path) -> None:
    assert key(tmp_path) == JobKey("from the file, long enough", f"~/{FILE}")
    assert key(tmp_path, DOCTOR_JOB_KEY="given") == JobKey("given", "DOCTOR_JOB_KEY")
    ranks = [read_job_rank({**JOB, "HOME": str(tmp_path), **more}) for more in ({}, {"DOCTOR_JOB_KEY": "x"})]
    assert [rank.secret for rank in ranks] == [f"~/{FILE}", "DOCTOR_JOB_KEY"]
    assert len({rank.token for rank in (*ranks, read_job_rank(JOB))}) == 3
    assert file.exists()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_file_that_others_can_reach_is_a_mistake(tmp_path: Path, file: Path, mode: int) -> None:
    file.chmod(mode)
    with pytest.raises(UsageError, match="users other than its owner can reach") as found:
        key(tmp_path)
    assert found.value.hint == f"chmod 600 {file}"


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file to another user")
def test_a_file_of_another_user_is_a_mistake(tmp_path: Path, file: Path) -> None:
    os.chown(file, 4001, 4001)
    with pytest.raises(
        UsageError, match=r"users other than its owner can reach .* \(it belongs to uid 4001, mode 0600"
    ):
        key(tmp_path)


def test_what_is_no_file_or_empty_is_a_mistake(tmp_path: Path, file: Path) -> None:
    file.write_text(" \n")
    with pytest.raises(UsageError, match="is empty"):
        key(tmp_path)
    file.rename(file.with_name("elsewhere"))
    file.symlink_to("elsewhere")
    with pytest.raises(UsageError, match="cannot be read"):
        key(tmp_path)
    file.unlink()
    file.mkdir(mode=0o700)
    with pytest.raises(UsageError, match="users other than its owner can reach"):
        key(tmp_path)


def test_it_is_read_within_bounds(tmp_path: Path, file: Path) -> None:
    file.write_text("x" * 2 * LONGEST)
    assert len(key(tmp_path).text) == LONGEST


def test_a_launcher_may_give_a_secret() -> None:
    assert read_job_rank(OPENMPI).secret == "OMPI_MCA_orte_precondition_transports"
    without = {name: text for name, text in OPENMPI.items() if "transports" not in name}
    assert read_job_rank({**without, "PMIX_NAMESPACE": "17"}).secret == ""


@pytest.mark.parametrize(("text", "short"), [("", False), ("x" * 15, True), ("x" * 16, False)])
def test_a_short_key_can_be_guessed(text: str, short: bool) -> None:
    assert JobKey(text, "DOCTOR_JOB_KEY").short == short

"""The record of faults that runs found: from reports and from output; missing checks are named."""

import shutil
from pathlib import Path

import pytest

from doctor.judge.registry import check_ids
from tests.lab.found import FOLDER, NOT_IN_THE_LAB, keep, unseen
from tests.support.cases import from_cases
from tests.support.paths import ROOT

GOLDEN = ROOT / "tests" / "golden"
SICK = from_cases(__file__, "SICK", set[str])


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "record"
    folder.mkdir()
    monkeypatch.setenv(FOLDER, str(folder))
    return folder


def kept(record: Path) -> set[str]:
    return {line.rpartition("\t")[0] for file in record.iterdir() for line in file.read_text().splitlines()}


@pytest.mark.parametrize("columns", [80, 200])
def test_what_was_printed_is_kept(columns: int, record: Path) -> None:
    keep(("check", "node[1-4]"), 1, "/", (GOLDEN / f"sick-hosts.1.{columns}.txt").read_text())
    assert kept(record) == SICK


def test_a_report_is_kept(record: Path, tmp_path: Path) -> None:
    shutil.copy(GOLDEN / "sick-hosts.1.json", tmp_path / "report.json")
    keep(("check", "--json", "report.json"), 1, tmp_path, "")
    assert kept(record) == SICK


def test_a_run_that_broke_off_or_found_nothing_is_not(record: Path) -> None:
    keep(("check",), 130, "/", (GOLDEN / "sick-hosts.1.80.txt").read_text())
    keep(("check",), 0, "/", (GOLDEN / "healthy.0.80.txt").read_text())
    assert kept(record) == set()


def test_each_check_that_found_nothing_is_named(record: Path) -> None:
    keep(("check",), 1, "/", (GOLDEN / "sick-hosts.1.80.txt").read_text())
    assert len(unseen(record)) == len(check_ids()) - len(SICK) - len(NOT_IN_THE_LAB)
    assert "shm-full: no run found its fault" in unseen(record)
    assert NOT_IN_THE_LAB.keys() < set(check_ids())


def test_a_check_that_fails_is_not_proved_by_a_warning(record: Path) -> None:
    (record / "1").write_text("warn\tshm-small\tnode2\tsome test\nwarn\tswap-active\tnode3\tsome test\n")
    assert "shm-small: no run found its fault" in unseen(record)
    assert "swap-active: no run found its fault" not in unseen(record)

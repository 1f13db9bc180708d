"""`--report-dir`: each run has files of its own, which are private and complete and never replace others."""

import os
import stat
from pathlib import Path

import pytest

from doctor.errors import UsageError
from doctor.report.out.file_names import run_name
from doctor.report.out.outputs import make_report_folder
from doctor.text.outfile import add_files
from tests.support.cases import cases

CONTENTS = {".json": b"{}", ".txt": b"fine\n"}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@cases
def test_a_name_holds_the_time_the_job_and_the_process(job: str, interrupted: bool, name: str) -> None:
    assert run_name("2026-11-20T10:15:00Z", job, 77, interrupted=interrupted) == name


def test_files_are_private_and_whole(tmp_path: Path) -> None:
    made = add_files(tmp_path, "run", CONTENTS)
    assert {suffix: path.read_bytes() for suffix, path in made.items()} == CONTENTS
    assert names(tmp_path) == ["run.json", "run.txt"]
    assert {mode(path) for path in made.values()} == {0o600}


def test_a_name_that_is_taken_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "run.txt").write_text("of an old run")
    (tmp_path / "run.2.json").symlink_to(tmp_path / "nowhere")
    made = add_files(tmp_path, "run", CONTENTS)
    assert {path.name for path in made.values()} == {"run.3.json", "run.3.txt"}
    assert (tmp_path / "run.txt").read_text() == "of an old run"
    assert not (tmp_path / "nowhere").exists()
    assert names(tmp_path) == ["run.2.json", "run.3.json", "run.3.txt", "run.txt"]


def test_a_file_system_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    (tmp_path / "run.txt").write_text("of an old run")
    made = add_files(tmp_path, "run", CONTENTS)
    assert {path.name: path.read_bytes() for path in made.values()} == {
        "run.2.json": b"{}",
        "run.2.txt": b"fine\n",
    }
    assert names(tmp_path) == ["run.2.json", "run.2.txt", "run.txt"]
    assert (tmp_path / "run.txt").read_text() == "of an old run"
    assert {mode(path) for path in made.values()} == {0o600}


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        add_files(tmp_path, "run", CONTENTS)
    assert names(tmp_path) == []


def test_a_folder_is_made_for_its_owner_only(tmp_path: Path) -> None:
    make_report_folder(tmp_path / "runs" / "today")
    assert mode(tmp_path / "runs" / "today") == 0o700
    os.chmod(tmp_path / "runs" / "today", 0o755)
    make_report_folder(tmp_path / "runs" / "today")
    assert mode(tmp_path / "runs" / "today") == 0o755, "somebody wants it so"
    assert names(tmp_path / "runs" / "today") == []


def test_a_file_is_not_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "under", Path("/proc/nowhere")):
        with pytest.raises(UsageError, match="cannot be written"):
            make_report_folder(path)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a folder away")
def test_a_folder_that_is_not_ours_is_refused(tmp_path: Path) -> None:
    """Its owner could exchange the reports, the lists of healthy hosts and the launch lines in it."""
    theirs, everybodys = tmp_path / "theirs", tmp_path / "everybodys"
    for folder, owner, permissions in ((theirs, 65534, 0o777), (everybodys, 0, 0o777)):
        folder.mkdir()
        folder.chmod(permissions)
        os.chown(folder, owner, -1)
    with pytest.raises(UsageError, match="theirs: it belongs to another user"):
        make_report_folder(theirs)
    with pytest.raises(UsageError, match="everybodys: others can write to it"):
        make_report_folder(everybodys)
    everybodys.chmod(0o1777)
    make_report_folder(everybodys)

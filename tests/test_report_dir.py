"""`--report-dir`: files of each run's own, private, whole, and never over others."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import time
from pathlib import Path

import pytest

from doctor.errors import UsageError
from doctor.recording import load
from doctor.report.folder import add_files, make_folder, run_name
from tests.commands import DOCTOR, doctor, environment

HERE = ("check", "--local", "--only", "shm-small")
CONTENTS = {".json": b"{}", ".txt": b"fine\n"}
FORM = r"doctor-\d{8}T\d{6}Z-(4711-)?\d+\.(json|txt|run\.json|hosts)"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(
    ("job", "interrupted", "name"),
    [
        ("", False, "doctor-20261120T101500Z-77"),
        ("4711", False, "doctor-20261120T101500Z-4711-77"),
        ("4711", True, "doctor-20261120T101500Z-4711-77-interrupted"),
    ],
)
def test_a_name_says_when_in_which_job_and_by_whom(job: str, interrupted: bool, name: str) -> None:
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


@pytest.mark.parametrize("lacks", ["files without a name", "links"])
def test_a_poor_file_system(lacks: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Network file systems have no O_TMPFILE, some have no links either."""
    monkeypatch.delattr(os, "O_TMPFILE")
    if lacks == "links":

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


def test_a_folder_that_can_have_no_links_to_files_without_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def real(source: object, *more: object, **options: object) -> None:
        if str(source).startswith("/proc/"):
            raise OSError(18, "Invalid cross-device link")
        link(source, *more, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "link", real)
    made = add_files(tmp_path, "run", CONTENTS)
    assert {suffix: path.read_bytes() for suffix, path in made.items()} == CONTENTS
    assert names(tmp_path) == ["run.json", "run.txt"]


def test_what_fails_in_the_middle_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        add_files(tmp_path, "run", CONTENTS)
    assert names(tmp_path) == []


def test_a_folder_is_made_for_its_owner_only(tmp_path: Path) -> None:
    make_folder(tmp_path / "runs" / "today")
    assert mode(tmp_path / "runs" / "today") == 0o700
    os.chmod(tmp_path / "runs" / "today", 0o755)
    make_folder(tmp_path / "runs" / "today")
    assert mode(tmp_path / "runs" / "today") == 0o755, "somebody wants it so"
    assert names(tmp_path / "runs" / "today") == []


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "under", Path("/proc/nowhere")):
        with pytest.raises(UsageError, match="cannot be written"):
            make_folder(path)


def test_each_run_has_files_of_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    for _ in range(2):
        ran = doctor(*HERE, "--report-dir", str(folder), env={"SLURM_JOB_ID": "4711"})
        assert (ran.returncode, ran.stderr) == (0, ""), ran.stderr
    found = names(folder)
    assert len(found) == 8
    assert all(re.fullmatch(FORM, name) and "-4711-" in name for name in found), found
    stems = {name.split(".")[0] for name in found}
    assert len(stems) == 2
    stem = max(stems)
    assert json.loads((folder / f"{stem}.json").read_bytes())["verdict"] == "healthy"
    assert (folder / f"{stem}.txt").read_text().endswith(ran.stdout[-20:])
    assert load(folder / f"{stem}.run.json").command == "check"
    assert (folder / f"{stem}.hosts").read_text().endswith("slots=2\n")
    assert {mode(path) for path in folder.iterdir()} == {0o600}


def test_a_folder_that_cannot_be_written_is_told_before_anything_is_asked(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ran = doctor(
        "check", "nowhere.invalid", "--report-dir", str(tmp_path / "file"), "--save", "x", cwd=tmp_path
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    assert f"--report-dir {tmp_path}/file: cannot be written: " in ran.stderr
    assert "Name a folder that is writable." in ran.stderr
    assert names(tmp_path) == ["file"]


def test_a_no_go_is_told_in_three_lines_and_says_where_the_whole_report_is(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    ran = doctor(*HERE, "--expect", "shm_mb=100000000", "--report-dir", str(folder))
    assert ran.returncode == 1
    what, where, then = ran.stderr.splitlines()
    assert what.startswith("doctor: no go: shm-small: /dev/shm is too small")
    assert re.match(r" {8}On \S+; 0 of 1 hosts are healthy \(faulty \S+\)\.", where)
    (text,) = folder.glob("*.txt")
    assert then == f"        Next: doctor explain shm-small; the whole report is {text}"
    assert "shm-small" in text.read_text()
    assert ran.stdout == text.read_text(), "a log has the same"
    assert not list(folder.glob("*.hosts")), "nobody goes"


SLOW = "#!/bin/sh\n: >{mark}\nexec sleep 30\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_run_leaves_what_says_so_or_nothing(number: signal.Signals, tmp_path: Path) -> None:
    folder, mark, tool = tmp_path / "runs", tmp_path / "asked", tmp_path / "dmesg"
    tool.write_text(SLOW.format(mark=mark))
    tool.chmod(0o755)
    with subprocess.Popen(
        [*DOCTOR, "check", "--local", "--report-dir", str(folder), "--print", "launch"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment({"PATH": f"{tmp_path}:{os.environ['PATH']}"}),
    ) as run:
        try:
            deadline = time.monotonic() + 60
            while not mark.exists() and run.poll() is None and time.monotonic() < deadline:
                time.sleep(0.02)
            assert mark.exists()
            assert names(folder) == [], "nothing that a reader could take for a report"
            run.send_signal(number)
            out, errors = run.communicate(timeout=60)
        finally:
            run.kill()
    assert out == "", "no line to go on with"
    if number is signal.SIGKILL:
        assert names(folder) == []
        return
    assert run.returncode == 128 + number
    assert "doctor: no go: interrupted by SIGTERM before the verdict." in errors
    found = names(folder)
    assert [name.partition("-interrupted")[2] for name in found] == [".json", ".run.json", ".txt"]
    assert "Interrupted." in (folder / found[2]).read_text()

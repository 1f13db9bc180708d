"""The folder of `doctor run` in one for everybody: nobody else can take its name, or add to what is read."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from doctor.report.out.file_names import run_name
from doctor.run import why
from doctor.run.folder import RunFolder

STARTED, PID, NOBODY = "2026-11-20T10:00:00Z", 7, 65534
NAME = run_name(STARTED, "", PID)
root = pytest.mark.skipif(os.getuid() != 0, reason="only root can act as another user")


@pytest.fixture
def parent(tmp_path: Path) -> Path:
    """A folder for everybody, such as /tmp."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


def strangers(path: Path) -> None:
    path.mkdir(mode=0o777)
    path.chmod(0o777)
    os.chown(path, NOBODY, NOBODY)


def link(path: Path) -> None:
    there = path.with_name("there")
    there.mkdir()
    path.symlink_to(there)
    os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def own_but_open(path: Path) -> None:
    path.mkdir()
    path.chmod(0o777)


@root
@pytest.mark.parametrize("taken", [strangers, link, own_but_open])
def test_a_name_that_a_stranger_has_is_not_used(taken: Callable[[Path], None], parent: Path) -> None:
    taken(parent / NAME)
    run = RunFolder(parent, STARTED, "", PID)
    assert run.write({"why.txt": b"it was node2"})
    assert run.path is not None
    assert run.path.name.startswith(f"{NAME}-")
    about = run.path.lstat()
    assert (about.st_uid, stat.S_IMODE(about.st_mode)) == (os.getuid(), 0o700)
    assert (run.path / "why.txt").read_bytes() == b"it was node2"
    assert not [*(parent / NAME).iterdir()]


@pytest.mark.parametrize("attempt", [0, 2])
def test_who_takes_the_name_later_gets_nothing(attempt: int, parent: Path) -> None:
    run = RunFolder(parent, STARTED, "", PID, attempt)
    assert run.write({"hang-1.txt": b"one"})
    (parent / NAME).rename(parent / "aside")
    (parent / NAME).mkdir()
    assert run.write({"why.txt": b"two"})
    assert not [*(parent / NAME).iterdir()]
    inside = parent / "aside" / (f"attempt-{attempt}" if attempt else "")
    assert sorted(each.name for each in inside.iterdir()) == ["hang-1.txt", "why.txt"]


def test_attempts_share_the_folder_of_the_run(parent: Path) -> None:
    for attempt in (1, 2):
        assert RunFolder(parent, STARTED, "", PID, attempt).write({"why.txt": b""})
    assert [each.name for each in parent.iterdir()] == [NAME]


def test_without_a_folder_the_job_goes_on(parent: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parent.rmdir()
    parent.write_text("")
    run = RunFolder(parent, STARTED, "", PID)
    assert not run.write({"why.txt": b""})
    assert "cannot be written" in capsys.readouterr().err


def part(folder: Path) -> Path:
    folder.mkdir(mode=0o700)
    path = folder / "part-stdout.log"
    path.write_bytes(b"RuntimeError: CUDA out of memory")
    return path


@pytest.fixture(autouse=True)
def all_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(why, "OTHERS_END", 0.0)


def parts(parent: Path, tmp_path: Path) -> list[tuple[bytes, str]]:
    return [(copy.read_bytes(), name) for copy, name in why._parts_here(parent, 0.0, tmp_path / "copies")]


def test_what_our_instances_kept_is_read(parent: Path, tmp_path: Path) -> None:
    path = part(parent / "doctor-x")
    assert parts(parent, tmp_path) == [(path.read_bytes(), str(path))]


@root
def test_what_others_planted_is_not_read(parent: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("rank 5")
    theirs = part(parent / "doctor-1")
    os.chown(theirs.parent, NOBODY, NOBODY)
    os.chown(part(parent / "doctor-2"), NOBODY, NOBODY)
    (parent / "doctor-3").mkdir(mode=0o700)
    (parent / "doctor-3/part-a.log").symlink_to(secret)
    os.link(secret, parent / "doctor-3/part-b.log")
    os.mkfifo(parent / "doctor-3/part-c.log")
    (parent / "doctor-4").symlink_to(part(tmp_path / "elsewhere").parent)
    part(parent / "doctor-5").parent.chmod(0o777)
    assert parts(parent, tmp_path) == []

"""Every written file is private, complete or absent, and never behind a link."""

import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from doctor.text.outfile import is_stream, make_folder, why_not, why_not_ours, write_file


@pytest.fixture(params=[0, 0o022, 0o277])
def _umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("_umask")
def test_files_and_folders_are_for_their_owner_only(tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.write_bytes(b"of an earlier run")
    old.chmod(0o666)
    make_folder(tmp_path / "a" / "b")
    for path in (tmp_path / "new", old):
        write_file(path, b"data")
        assert (path.read_bytes(), mode(path)) == (b"data", 0o600)
    assert {mode(tmp_path / "a"), mode(tmp_path / "a" / "b")} == {0o700}
    assert sorted(os.listdir(tmp_path)) == ["a", "new", "old"]


def test_a_full_disk_leaves_the_old_file_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "list"
    write_file(path, b"old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["list"]


@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_never_followed(there: bool, tmp_path: Path) -> None:
    victim, link = tmp_path / "victim", tmp_path / "link"
    link.symlink_to(victim)
    if there:
        victim.write_bytes(b"precious")
    assert why_not(link) == "it is a symbolic link, which is not followed"
    write_file(link, b"data")  # put there in the meantime
    assert (link.read_bytes(), link.is_symlink()) == (b"data", False)
    assert victim.exists() is there
    assert not there or victim.read_bytes() == b"precious"


def test_a_second_name_of_a_file_keeps_what_it_has(tmp_path: Path) -> None:
    (tmp_path / "victim").write_bytes(b"precious")
    os.link(tmp_path / "victim", tmp_path / "list")
    write_file(tmp_path / "list", b"data")
    assert (tmp_path / "victim").read_bytes() == b"precious"


@pytest.mark.parametrize("target", ["/dev/null", "/dev/full", "/dev/stderr", "/proc/self/fd/2"])
def test_a_link_of_others_to_a_device_is_not_followed(target: str, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(target)
    assert not is_stream(link)
    write_file(link, b"data")
    assert (link.is_symlink(), link.read_bytes()) == (False, b"data")


def test_what_is_not_a_file_is_written_to() -> None:
    ear, mouth = os.pipe()
    for name in (f"/dev/fd/{mouth}", f"/proc/self/fd/{mouth}", f"/proc/{os.getpid()}/fd/{mouth}"):
        assert is_stream(Path(name))
        assert not why_not(Path(name))
        write_file(Path(name), b"data")
        assert os.read(ear, 100) == b"data"
    os.close(ear)
    with pytest.raises(BrokenPipeError):
        write_file(Path(f"/dev/fd/{mouth}"), b"data")
    os.close(mouth)
    write_file(Path("/dev/null"), b"data")
    assert stat.S_ISCHR(os.lstat("/dev/null").st_mode)
    with pytest.raises(OSError, match="No space"):
        write_file(Path("/dev/full"), b"data")
    assert stat.S_ISCHR(os.lstat("/dev/full").st_mode)


def test_a_descriptor_of_a_file_keeps_its_place(tmp_path: Path) -> None:
    with open(tmp_path / "log", "wb", buffering=0) as log:
        log.write(b"before\n")
        write_file(Path(f"/dev/fd/{log.fileno()}"), b"data\n")
        log.write(b"after\n")
    assert (tmp_path / "log").read_bytes() == b"before\ndata\nafter\n"


def test_a_named_pipe_is_written_to(tmp_path: Path) -> None:
    pipe, heard = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: heard.append(pipe.read_bytes()))
    reader.start()
    write_file(pipe, b"data")
    reader.join()
    assert heard == [b"data"]
    assert stat.S_ISFIFO(os.lstat(pipe).st_mode)


def test_why_a_file_cannot_be_written(tmp_path: Path) -> None:
    assert why_not(tmp_path) == "it is a folder"
    assert why_not(tmp_path / "none" / "x") == "there is no such folder"
    assert why_not(tmp_path / "x") == why_not(Path("x")) == ""


def another() -> int:
    """A user who neither runs this test nor is root."""
    return 65534 if os.geteuid() != 65534 else 65533


@pytest.mark.parametrize("permissions", [0o700, 0o755, 0o1777])
def test_a_folder_of_ours_is_ours(permissions: int, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    folder.chmod(permissions)
    (tmp_path / "link").symlink_to("kept/../kept")
    (tmp_path / "dangling").symlink_to("nothing")
    for path in (folder, tmp_path / "link", folder / "new" / "deep", tmp_path / "dangling", Path("/tmp")):
        assert why_not_ours(path) == ""


def test_a_folder_that_the_own_group_of_a_user_can_write_is_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o775)
    monkeypatch.setattr("doctor.text.outfile.user_name", lambda _: "ada")
    monkeypatch.setattr("doctor.text.outfile._group", lambda _: "ada")
    assert why_not_ours(tmp_path) == ""
    monkeypatch.setattr("doctor.text.outfile._group", lambda _: "team")
    assert why_not_ours(tmp_path) == "others can write to it"


@pytest.mark.parametrize("permissions", [0o777, 0o707])
def test_a_folder_that_others_can_write_is_not_ours(permissions: int, tmp_path: Path) -> None:
    tmp_path.chmod(permissions)
    assert why_not_ours(tmp_path) == "others can write to it"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a folder away")
def test_a_folder_of_another_user_is_not_ours(tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    theirs.mkdir(mode=0o700)
    ours.mkdir(mode=0o700)
    os.chown(theirs, another(), -1)
    assert why_not_ours(theirs).startswith("it belongs to another user (")
    assert why_not_ours(theirs / "new") == "", "a new folder is made by us"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a link away")
def test_a_link_of_another_user_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "ours").mkdir(mode=0o700)
    link = tmp_path / "link"
    link.symlink_to("ours")
    (tmp_path / "ours_to_theirs").symlink_to("link")
    os.chown(link, another(), -1, follow_symlinks=False)
    for path in (link, link / "new" / "deep", tmp_path / "ours_to_theirs"):
        assert why_not_ours(path).startswith(f"{link} is a link of another user (")

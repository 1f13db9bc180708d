"""Traps that users of a host set for root's reader of logs: nothing of root's leaves the host."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from doctor.logs.fetch.onhost.places import MOST_COUNTED
from doctor.logs.fetch.script import LogRequest
from doctor.logs.fetch.unpack import HostLogs
from tests.process.test_fetch import fetched

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who is attacked")

ALICE, LOGIN = 65534, 65533
SECRET = b"ROOTONLY-c0ffee\n"


@pytest.fixture
def tmp(tmp_path: Path) -> Iterator[Path]:
    """A folder like /tmp, which all users of the host can reach, and a file that only root may read."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.parent.is_relative_to(tempfile.gettempdir()):
            folder.chmod(0o755)
    place = tmp_path / "tmp"
    place.mkdir()
    place.chmod(0o1777)
    (tmp_path / "rootonly").mkdir(mode=0o700)
    (tmp_path / "rootonly" / "key").write_bytes(SECRET)
    (tmp_path / "rootonly" / "key").chmod(0o600)
    yield place
    subprocess.run(["umount", str(place / "torchelastic_a")], stderr=subprocess.DEVNULL, check=False)


def key(tmp: Path) -> Path:
    return tmp.parent / "rootonly" / "key"


def given(*paths: Path) -> None:
    for path in paths:
        os.chown(path, ALICE, ALICE, follow_symlinks=False)


def folder(tmp: Path, name: str = "torchelastic_a") -> Path:
    made = tmp / name
    made.mkdir()
    given(made)
    return made


def a_line_end_in_a_name(tmp: Path) -> None:
    inner = folder(tmp)
    for part in f"x\n{key(tmp)}".split("/"):
        inner = inner / part if part else inner
        inner.mkdir()
        given(inner)
    inner.rmdir()
    inner.write_bytes(b"hers\n")
    given(inner)


def a_link_for_a_folder(tmp: Path) -> None:
    (tmp / "torchelastic_b").symlink_to(key(tmp).parent)
    given(tmp / "torchelastic_b")


def a_link_for_a_log(tmp: Path) -> None:
    link = folder(tmp, "none_z") / "attempt_0"
    link.symlink_to(key(tmp))
    given(link)


def a_link_above_the_log(tmp: Path) -> None:
    (tmp / "none_z").symlink_to(key(tmp).parent)
    given(tmp / "none_z")
    key(tmp).with_name("attempt_0").write_bytes(SECRET)


def a_hard_link(tmp: Path) -> None:
    (folder(tmp) / "log").hardlink_to(key(tmp))


def a_hard_link_in_the_shared_place(tmp: Path) -> None:
    (tmp / "torchelastic_c").hardlink_to(key(tmp))


def a_hard_link_to_a_link_of_root(tmp: Path) -> None:
    (tmp.parent / "link").symlink_to(key(tmp).parent)
    os.link(tmp.parent / "link", tmp / "torchelastic_d", follow_symlinks=False)


def a_folder_of_root_renamed(tmp: Path) -> None:
    """In a shared place without the sticky bit, anybody can rename what belongs to root."""
    tmp.chmod(0o777)
    key(tmp).parent.rename(tmp / "torchelastic_e")
    (tmp / "torchelastic_e").chmod(0o755)


def a_file_system_that_says_it_is_of_root(tmp: Path) -> None:
    """As a user mounts one with FUSE, if all users may look into it."""
    inside = folder(tmp)
    subprocess.run(["mount", "-t", "tmpfs", "none", str(inside)], check=True)
    inside.chmod(0o755)
    (inside / "link").symlink_to(key(tmp))
    (inside / "log").write_bytes(SECRET)


def things_that_are_not_files(tmp: Path) -> None:
    inside = folder(tmp)
    os.mkfifo(inside / "fifo")
    os.mkfifo(tmp / "torchelastic_fifo")
    os.mknod(inside / "null", 0o020666, os.makedev(1, 5))


PLANTS: list[Callable[[Path], None]] = [
    a_line_end_in_a_name,
    a_link_for_a_folder,
    a_link_for_a_log,
    a_link_above_the_log,
    a_hard_link,
    a_hard_link_in_the_shared_place,
    a_hard_link_to_a_link_of_root,
    a_folder_of_root_renamed,
    a_file_system_that_says_it_is_of_root,
    things_that_are_not_files,
]


def wanted(tmp: Path, rank_user: str = "") -> LogRequest:
    return LogRequest((f"{tmp}/torchelastic_*", f"{tmp}/none_*/attempt_*"), rank_user=rank_user)


def contents(found: HostLogs) -> list[bytes]:
    return [path.read_bytes() for path in found.files]


@pytest.mark.parametrize("rank_user", ["", str(ALICE)])
@pytest.mark.parametrize("plant", PLANTS)
def test_root_reads_nothing_by_a_name_that_a_user_chose(
    plant: Callable[[Path], None], rank_user: str, tmp: Path
) -> None:
    plant(tmp)
    (tmp / "torchelastic_ours").write_bytes(b"ours\n")
    found = fetched(wanted(tmp, rank_user), tmp.parent / "out")
    assert b"ours\n" in contents(found)
    assert not any(SECRET in each for each in contents(found))
    assert set(contents(found)) <= {b"ours\n", *([b"hers\n"] if rank_user else [])}


@pytest.mark.parametrize("user", [None, LOGIN], ids=["root", "an ordinary login"])
def test_logs_of_others_in_shared_places_are_named_with_their_owner(user: int | None, tmp: Path) -> None:
    inside = folder(tmp)
    for name in ("1.log", "2.log"):
        (inside / name).write_bytes(b"hers\n")
        given(inside / name)
    asked = wanted(tmp)
    (why,) = fetched(asked, tmp.parent / "out", user=user).missed
    assert why.startswith(f"{inside} (2 files) belongs to ")
    name = why.rpartition("--rank-user ")[2]
    assert f"belongs to {name} and was not read: --rank-user {name}" in why
    found = fetched(wanted(tmp, name), tmp.parent / "hers", user=user)
    assert (contents(found), found.missed) == ([b"hers\n"] * 2, ())


def test_a_folder_that_its_owner_closed_is_named_too(tmp: Path) -> None:
    folder(tmp).chmod(0o700)
    (why,) = fetched(wanted(tmp), tmp.parent / "out", user=LOGIN).missed
    assert " belongs to " in why


@pytest.fixture
def _exchanging(tmp: Path) -> Iterator[None]:
    """A log and a link, or a folder and a link, replace each other all the time."""
    inside = folder(tmp)
    code = f"""import os, ctypes
libc = ctypes.CDLL(None, use_errno=True)
os.chdir({str(tmp)!r})
open("torchelastic_a/log", "w").write("hers")
os.symlink({str(key(tmp))!r}, "torchelastic_a/link")
os.symlink({str(key(tmp).parent)!r}, "torchelastic_b")
os.mkdir("b")
open("b/key", "w").write("hers")
for path in ("torchelastic_a/log", "torchelastic_a/link", "torchelastic_b", "b", "b/key"):
    os.chown(path, {ALICE}, {ALICE}, follow_symlinks=False)
print("ready", flush=True)
while True:
    for a, b in ((b"torchelastic_a/log", b"torchelastic_a/link"), (b"torchelastic_b", b"b")):
        if libc.renameat2(-100, a, -100, b, 2):
            raise OSError(ctypes.get_errno())
"""
    assert inside.exists()
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as running:
        assert running.stdout
        assert running.stdout.readline() == b"ready\n"
        yield
        assert running.poll() is None, "it exchanged nothing"
        running.kill()


@pytest.mark.usefixtures("_exchanging")
def test_nothing_can_be_exchanged_between_finding_and_reading(tmp: Path) -> None:
    asked = LogRequest((f"{tmp}/torchelastic_*", f"{tmp}/torchelastic_a/*") * 300, rank_user=str(ALICE))
    found = fetched(asked, tmp.parent / "out")
    assert set(contents(found)) == {b"hers"}
    assert any("is a link of" in why for why in found.missed)


def test_links_of_administrators_and_of_the_login_are_followed(tmp: Path) -> None:
    data, home = tmp.parent / "data" / "logs", tmp.parent / "home"
    data.mkdir(parents=True)
    (data / "a.log").write_bytes(b"x\n")
    home.mkdir()
    (home / "ascend").mkdir()
    (home / "ascend" / "log").symlink_to("../../data/logs")
    (tmp / "mine").symlink_to(data)
    for owner in (0, LOGIN):
        for path in (home, home / "ascend", home / "ascend" / "log", tmp / "mine"):
            os.chown(path, owner, owner, follow_symlinks=False)
        for pattern in ("~/ascend/log", "~/ascend/*/*.log", f"{tmp}/mine/*.log", "ascend/log"):
            out = tmp.parent / f"out{owner}{len(pattern)}"
            found = fetched(LogRequest((pattern,)), out, env={"HOME": str(home)}, user=owner or None)
            assert contents(found) == [b"x\n"], (owner, pattern, found)


def test_root_follows_no_link_of_a_user_below_a_path_that_was_typed(tmp: Path) -> None:
    home = tmp.parent / "u"
    home.mkdir()
    (home / "own.log").write_bytes(b"hers\n")
    (home / "link.log").symlink_to(key(tmp))
    (home / "hard.log").hardlink_to(key(tmp))
    given(home, home / "own.log", home / "link.log")
    found = fetched(LogRequest((f"{home}/*.log",)), tmp.parent / "out")
    assert contents(found) == [b"hers\n"]
    assert len(found.missed) == 2


@pytest.mark.parametrize("name", ["a.log", "*.log", ""])
def test_a_way_that_is_closed_is_told(name: str, tmp: Path) -> None:
    for mode in (0o700, 0o744):
        inside = folder(tmp.parent, f"job{mode:o}")
        (inside / "a.log").write_bytes(b"x\n")
        inside.chmod(mode)
        found = fetched(LogRequest((f"{inside}/{name}",)), tmp.parent / f"out{mode}", user=LOGIN)
        assert found.missed == (f"{inside}: may not be {'looked into' if name else 'read'} by this user",)


def test_closed_folders_that_nobody_named_are_only_told(tmp: Path) -> None:
    """The caller's own folder is searched on each host, and is often closed to the login there."""
    folder(tmp.parent, "job").chmod(0o700)
    found = fetched(LogRequest(folders=(f"{tmp.parent}/job",)), tmp.parent / "out", user=LOGIN)
    assert f"{tmp.parent}/job: may not be looked into by this user" in found.told
    assert not any("/job" in why for why in found.missed)


def test_no_member_of_a_group_has_what_is_roots_alone_read_by_another_name(tmp: Path) -> None:
    project = tmp.parent / "project"
    project.mkdir()
    (project / "log").symlink_to(key(tmp).parent)
    os.chown(project, 0, ALICE)
    project.chmod(0o2775)
    key(tmp).rename(project / "x.log")
    (project / "a.log").write_bytes(b"ours\n")
    found = fetched(LogRequest((f"{project}/*.log", f"{project}/log/*")), tmp.parent / "out")
    assert contents(found) == [b"ours\n"]
    assert len(found.missed) == 2


def test_root_reads_what_a_container_or_a_member_of_the_group_wrote_for_a_user(tmp: Path) -> None:
    project = folder(tmp.parent, "project")
    (project / "log").mkdir(mode=0o755)
    for name, owner, group, mode in (
        ("log/root.log", 0, 0, 0o644),
        ("log/key.log", 0, 0, 0o600),
        ("member.log", LOGIN, ALICE, 0o640),
        ("own.log", ALICE, ALICE, 0o600),
        ("secret.log", 0, 0, 0o640),
    ):
        (project / name).write_text(f"{name}\n")
        os.chown(project / name, owner, group)
        (project / name).chmod(mode)
    (project / "log" / "link").symlink_to(key(tmp).parent)
    project.chmod(0o2770)
    found = fetched(LogRequest((f"{project}/log/link/*", str(project))), tmp.parent / "out")
    assert set(contents(found)) == {b"log/root.log\n", b"member.log\n", b"own.log\n"}
    assert len(found.missed) == 3


def test_what_one_user_plants_does_not_crowd_out_what_is_said_of_others(tmp: Path) -> None:
    for number in range(200):
        (tmp / f"torchelastic_{number}").symlink_to("nowhere")
        (tmp / f"torchelastic_f{number}").write_bytes(b"x\n")
        os.chown(tmp / f"torchelastic_{number}", LOGIN, LOGIN, follow_symlinks=False)
        os.chown(tmp / f"torchelastic_f{number}", LOGIN, LOGIN)
    (folder(tmp, "torchelastic_z") / "log").write_bytes(b"hers\n")
    given(tmp / "torchelastic_z" / "log")
    missed = fetched(wanted(tmp), tmp.parent / "out").missed
    assert any(why.startswith(f"{tmp}/torchelastic_z (1 file) belongs to ") for why in missed), missed
    assert len(missed) < 50


@pytest.mark.long
def test_what_was_not_counted_is_named_all_the_same(tmp: Path) -> None:
    crowd = folder(tmp)
    for number in range(MOST_COUNTED):
        (crowd / str(number)).touch()
    (folder(tmp, "torchelastic_b") / "log").write_bytes(b"hers\n")
    missed = fetched(wanted(tmp), tmp.parent / "out").missed
    assert any(why.startswith(f"{tmp}/torchelastic_b belongs to ") for why in missed), missed

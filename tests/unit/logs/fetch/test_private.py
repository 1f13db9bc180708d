"""The folder of fetched logs: private, removed at the end, or by the next run if this one is killed."""

import os
import stat
import tempfile
from pathlib import Path

import pytest

from doctor.logs.fetch.private import PREFIX, private_folder


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_it_is_private_and_removed(place: Path) -> None:
    with private_folder() as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        (folder / "node1").mkdir()
        (folder / "node1" / "log").write_bytes(b"x")
    assert not list(place.iterdir())


def test_those_of_the_dead_are_removed_and_those_of_the_living_stay(place: Path) -> None:
    dead = place / f"{PREFIX}dead"
    dead.mkdir(mode=0o700)
    (dead / "log").write_bytes(b"x")
    with private_folder() as living, private_folder() as another:
        assert not dead.exists()
        assert living.exists()
        assert another.exists()


def test_what_is_not_such_a_folder_stays(place: Path) -> None:
    target = place / "target"
    target.mkdir(mode=0o700)
    (place / f"{PREFIX}link").symlink_to(target)
    (place / f"{PREFIX}file").write_bytes(b"x")
    (place / f"{PREFIX}open").mkdir()
    (place / f"{PREFIX}open").chmod(0o755)
    if os.geteuid() == 0:
        (place / f"{PREFIX}theirs").mkdir(mode=0o700)
        os.chown(place / f"{PREFIX}theirs", 65534, -1)
    before = set(place.iterdir())
    with private_folder():
        pass
    assert set(place.iterdir()) == before

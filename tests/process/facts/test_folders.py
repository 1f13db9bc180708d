"""The look at the folders that a job needs: the real program, on this machine."""

import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from checks.folders import FOLDERS, MANY, MOST_NAMES, Folder
from doctor.api import Ask, Run
from tests.support.captures import printed

SHELLS = [[shell] for shell in ("dash", "bash", "busybox") if shutil.which(shell)]


def look(*folders: Path, path: str = "", shell: Sequence[str] = ("sh",)) -> Mapping[int, Folder]:
    assert isinstance(FOLDERS.command, Run)
    text = FOLDERS.command.text(Ask("a", folders=tuple(map(str, folders))))
    env = {"PATH": f"{path}:/usr/sbin:/usr/bin:/sbin:/bin"}
    done = subprocess.run(
        [*shell, *(["sh"] if shell == ["busybox"] else []), "-c", text],
        env=env,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    return printed(FOLDERS, done.stdout)


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_what_a_folder_is(shell: list[str], tmp_path: Path) -> None:
    whole, copy, other, odd = (tmp_path / name for name in ("whole", "copy", "other", "o 'd\\040 $x"))
    for folder in (whole, copy, other, odd):
        folder.mkdir()
    for folder in (whole, copy):
        for name in ("a", "b\\nc", "-d", "é"):
            (folder / name).touch()
    (other / "a").touch()
    (tmp_path / "file").touch()
    found = look(whole, copy, other, odd, tmp_path / "file", tmp_path / "none", Path("/"), shell=shell)
    assert [found[n].kind for n in range(1, 8)] == ["folder"] * 4 + ["file", "missing", "folder"]
    assert [found[n].entries for n in (1, 2, 3, 4)] == [4, 4, 1, 0]
    assert found[1].names == found[2].names != found[3].names
    for n in (1, 4, 7):
        assert found[n].mount.startswith("/")
        assert (found[n].free or 0) > 0
        assert found[n].type


@pytest.mark.parametrize(("program", "kind"), [("ls", "folder"), ("df", "")])
def test_one_that_does_not_answer_delays_no_other(program: str, kind: str, tmp_path: Path) -> None:
    """Late names are no fault. A dead server's folder may exist in the cache, but df asks the server."""
    (tmp_path / "bin").mkdir()
    slow = tmp_path / "bin" / program
    slow.write_text(f'#!/bin/sh\ncase "$*" in *stale*) exec sleep 8;; esac\nexec /bin/{program} "$@"\n')
    slow.chmod(0o755)
    stale, good = tmp_path / "stale", tmp_path / "good"
    stale.mkdir()
    good.mkdir()
    began = time.monotonic()
    found = look(stale, good, path=str(tmp_path / "bin"))
    assert time.monotonic() - began < 7
    assert (found[1].kind, found[1].entries) == (kind, None)
    assert (found[2].kind, found[2].entries) == ("folder", 0)


def test_a_folder_with_very_many_names(tmp_path: Path) -> None:
    for number in range(MOST_NAMES + 5):
        (tmp_path / f"{number}").touch()
    assert look(tmp_path)[1].names == MANY

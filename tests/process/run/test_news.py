"""The command of --notify: it is given the report, and nothing of it is left."""

from pathlib import Path

import psutil
import pytest

from doctor.run import news
from doctor.run.folder import RunFolder
from doctor.run.news import Newsroom
from tests.support.command import await_true


def newsroom(folder: Path, command: str) -> Newsroom:
    return Newsroom(RunFolder(folder, "2026-11-20T10:00:00Z", "", 7), command, raw=False)


def children() -> set[int]:
    return {each.pid for each in psutil.Process().children(recursive=True)}


def test_what_it_is_given_and_that_nothing_is_left(tmp_path: Path) -> None:
    before = children()
    room = newsroom(tmp_path, f'(echo "$DOCTOR_SUMMARY"; cat) >> {tmp_path}/notes')
    for number in (1, 2):
        room.publish(f"hang-{number}", "rank 1 hangs", "the report\n", {})
    room.close()
    assert (tmp_path / "notes").read_text().count("the report\n") == 2
    assert children() == before


def test_it_is_reaped_while_the_job_runs(tmp_path: Path) -> None:
    before = children()
    room = newsroom(tmp_path, "true")
    room.publish("hang-1", "rank 1 hangs", "", {})

    def gone() -> bool:
        room.reap()
        return children() == before

    await_true(gone, "the end of the command")


def test_one_that_takes_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(news, "NOTIFIES", 0.5)
    before = children()
    room = newsroom(tmp_path, "sleep 600")
    room.publish("hang-1", "rank 1 hangs", "", {})
    room.close()
    await_true(lambda: children() == before, "the end of the command")

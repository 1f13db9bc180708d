"""Files that are read by separate processes give the same results as here, and no process is left."""

import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import doctor.logs.read
from doctor.logs.loss.collect import LossCollector
from doctor.logs.model import Logs
from doctor.logs.read import read
from doctor.logs.reading import readers
from doctor.logs.reading.file_scan import Scan
from doctor.logs.reading.scan import scan
from doctor.logs.sources import ReadLimits
from doctor.logs.sources.patience import LATE, TOO_LONG, Patience
from doctor.logs.symptoms.load import load_symptoms
from doctor.logs.symptoms.match import Matcher

LOST = "RuntimeError: [../gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.2]:1234"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(readers, "LARGE", 1000)
    monkeypatch.setattr(doctor.logs.read, "cores", lambda: 2)
    for rank in range(3):
        lines = [f"[rank{rank}]: step {step} loss {3 - step / 400:.4f}" for step in range(1, 900)]
        (tmp_path / f"rank{rank}.log").write_text(
            "\n".join([*lines, *[f"[rank{rank}]: {LOST}"] * (rank == 1)])
        )
    return tmp_path


def logs_of(folder: Path, **more: Any) -> Logs:
    return read([folder], Matcher(load_symptoms().symptoms), loss=LossCollector, now=1.8e9, **more)


def test_what_the_processes_have_read_is_counted_here(folder: Path) -> None:
    moved: list[tuple[int, int]] = []
    logs_of(folder, moved=lambda done, of: moved.append((done, of)))
    total = sum(path.stat().st_size for path in folder.iterdir())
    assert moved[-1] == (total, total)


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The processes that were started."""
    found: list[int] = []

    def fork() -> int:
        pid = begin()
        if pid:
            found.append(pid)
        return pid

    begin = os.fork
    monkeypatch.setattr(os, "fork", fork)
    return found


def none_left(forked: Sequence[int]) -> bool:
    for pid in forked:
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
            return False
    return bool(forked)


def test_it_is_the_same(folder: Path, forked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = logs_of(folder)
    assert none_left(forked)
    monkeypatch.setattr(doctor.logs.read, "cores", lambda: 1)
    assert repr(at_once) == repr(logs_of(folder))
    assert [file.name[-9:] for file in at_once.files] == ["rank0.log", "rank1.log", "rank2.log"]
    assert at_once.sightings
    assert len(at_once.curves) == 3


def test_without_processes_it_is_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fork() -> int:
        raise BlockingIOError("Resource temporarily unavailable")

    usual = logs_of(folder)
    monkeypatch.setattr(os, "fork", fork)
    assert repr(logs_of(folder)) == repr(usual)


def test_one_that_is_killed_is_told(folder: Path, forked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(opened: Any, *rest: Any) -> Sequence[Scan]:
        if opened.name.endswith("rank1.log"):
            os.kill(os.getpid(), signal.SIGKILL)
        return scan(opened, *rest)

    monkeypatch.setattr(doctor.logs.read, "scan", killed)
    logs = logs_of(folder)
    assert logs.missed
    (left_out,) = logs.left_out
    assert left_out.endswith("rank1.log: the process that read it ended before it was done (signal 9)")
    assert len(logs.files) == 2
    assert none_left(forked)


def test_an_interrupt_leaves_none(folder: Path, forked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(name: str) -> None:
        if name.endswith("rank1.log"):
            raise KeyboardInterrupt

    monkeypatch.setattr(doctor.logs.read, "scan", lambda *_: time.sleep(600))
    with pytest.raises(KeyboardInterrupt):
        logs_of(folder, seen=stop)
    assert none_left(forked)


def test_one_whose_parent_was_killed_ends_at_its_next_piece(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, end = os.pipe()

    def endless(opened: Any, *_: Any) -> Sequence[Scan]:
        os.write(end, b"%d\n" % os.getpid())
        while True:
            opened.stream.patience.check()
            time.sleep(0.01)

    monkeypatch.setattr(doctor.logs.read, "scan", endless)
    parent = os.fork()
    if parent == 0:
        try:
            logs_of(folder)
        finally:
            os._exit(0)
    assert os.read(told, 100)
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    os.close(end)
    while os.read(told, 100):  # ends once nobody can write any more
        pass
    os.close(told)


def test_limits_hold_there(folder: Path) -> None:
    logs = logs_of(folder, limits=ReadLimits(seconds=-60.0, seconds_a_megabyte=0.0))
    assert not logs.files
    assert logs.missed


def test_one_that_is_stopped_does_not_hold_up_the_deadline(
    folder: Path, forked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(opened: Any, *rest: Any) -> Sequence[Scan]:
        if opened.name.endswith("rank1.log"):
            os.kill(os.getpid(), signal.SIGSTOP)
        return scan(opened, *rest)

    monkeypatch.setattr(doctor.logs.read, "scan", stopped)
    monkeypatch.setattr(readers, "GRACE", 0.2)
    logs = logs_of(folder, deadline=2.0)
    assert f"rank1.log: {LATE}" in "".join(logs.left_out)
    assert none_left(forked)


def test_a_signal_right_after_the_fork_ends_the_child_alone(
    folder: Path, forked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a second copy of this program would run on."""
    begin = os.fork

    def fork() -> int:
        pid = begin()
        if not pid:
            os.kill(os.getpid(), signal.SIGINT)
        return pid

    monkeypatch.setattr(os, "fork", fork)
    (told,) = logs_of(folder).left_out
    assert told.endswith("(signal 2)")
    assert told.count("rank") == 3
    assert none_left(forked)


def test_results_that_are_too_large_together_are_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "MOST_BYTES", 10)
    (told,) = logs_of(folder).left_out
    assert told.endswith("the process that read it found more than fits into memory")


def test_the_work_of_one_that_was_killed_counts() -> None:
    lost: list[str] = []
    patience = Patience(ReadLimits(seconds=1.0))
    opened: Any = SimpleNamespace(name="a", stream=SimpleNamespace(patience=patience))

    def burn() -> Sequence[Scan]:
        while time.process_time() < 1.5:
            pass
        os.kill(os.getpid(), signal.SIGKILL)
        return ()

    with readers.Readers((), 2, lambda name, _: lost.append(name)) as several:
        several.start(opened, burn, lambda _: None)
        assert not patience.over
        several.finish()
    assert (lost, patience.over) == (["a"], TOO_LONG)

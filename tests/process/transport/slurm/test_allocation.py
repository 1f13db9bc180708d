"""salloc, as programs here stand in for it: for how long it is asked, and how long its answer may take."""

import os
from pathlib import Path

import pytest

from doctor.errors import UsageError
from doctor.transport.slurm.allocation import Allocation


def asked(seconds: float | None, salloc: str, folder: Path) -> str:
    """The words that salloc was given."""
    for name, body in (("scontrol", ":"), ("salloc", salloc)):
        (folder / name).write_text(f'#!/bin/sh\necho "$*" >>{folder}/{name}.log\n{body}\n')
        (folder / name).chmod(0o755)
    environ = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    Allocation(["node1"], seconds, environ).close()
    return (folder / "salloc.log").read_text()


@pytest.mark.parametrize(("seconds", "minutes"), [(None, 31), (60, 2), (7200, 121)])
def test_nodes_are_asked_for_as_long_as_the_run_may_take(
    seconds: float | None, minutes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert f"--time={minutes} " in asked(seconds, "echo 4711; exec cat", tmp_path)


def test_a_slurm_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(UsageError, match="Slurm has not answered within 1 s"):
        asked(1, "exec cat", tmp_path)

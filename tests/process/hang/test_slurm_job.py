"""`doctor hang --job ID`: its nodes are the hosts, and its ranks are the job."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from doctor.cli.hang import of_slurm
from doctor.errors import UsageError
from doctor.exam.request import HostFlags, Request, WayFlags
from doctor.hang.options import HangWishes
from doctor.transport.slurm.squeue import slurm_job

WISHES = HangWishes(slurm_job="4712_2")
BARE = Request("hang")


@pytest.fixture
def squeue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Slurm in which a task of a job array runs."""
    for name, said in (("squeue", f"4713|4712|2|RUNNING|{os.getuid()}|node[1-2]"), ("srun", "")):
        (tmp_path / name).write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\necho "{said}"\n')
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("SQUEUE_USERS", "nobody")
    return tmp_path


def slurm_of(environ: Mapping[str, str]) -> tuple[str | None, str | None]:
    return environ.get("SLURM_JOB_ID"), environ.get("SLURM_JOB_NODELIST")


def test_the_owner_reaches_the_nodes_by_srun(squeue: Path) -> None:
    request, wishes, environ = of_slurm(BARE, WISHES)
    assert (request.who.hosts, wishes.slurm_job) == ((), "4713")
    assert slurm_of(environ) == ("4713", "node[1-2]")
    assert "--jobs=4712_2" in (squeue / "asked").read_text()


@pytest.mark.parametrize("how", ["ssh", "no srun", "another user"])
def test_else_they_are_hosts_like_others(how: str, squeue: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if how == "no srun":
        (squeue / "srun").unlink()
    elif how == "another user":
        monkeypatch.setattr(os, "getuid", lambda: 4_000_000)
    request = Request("hang", way=WayFlags(transport="ssh")) if how == "ssh" else BARE
    asked, wishes, environ = of_slurm(request, WISHES)
    assert (asked.who.hosts, wishes.slurm_job) == (("node1", "node2"), "4713")
    assert environ is os.environ


def test_hosts_that_are_named_need_no_squeue(squeue: Path) -> None:
    request = Request("hang", who=HostFlags(hosts=("node9",)))
    assert of_slurm(request, WISHES)[:2] == (request, WISHES)
    assert not (squeue / "asked").exists()


def test_without_squeue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UsageError, match="no squeue on the PATH") as error:
        slurm_job("4711")
    assert error.value.hint == "Name its nodes as well: doctor hang HOSTS --job 4711"

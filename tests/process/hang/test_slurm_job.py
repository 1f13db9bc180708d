"""`--job ID`: the nodes of a Slurm job are the hosts, and for `hang` its ranks are the job."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from doctor.errors import UsageError
from doctor.exam.request import HostFlags, Request, WayFlags
from doctor.exam.slurm_job import of_slurm
from doctor.transport.slurm.squeue import slurm_job

OF_JOB = HostFlags(slurm_job="4712_2")
BARE = Request("check", who=OF_JOB)


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
    request, environ, number = of_slurm(BARE)
    assert (request.who.hosts, number) == ((), "4713")
    assert slurm_of(environ) == ("4713", "node[1-2]")
    assert "--jobs=4712_2" in (squeue / "asked").read_text()


@pytest.mark.usefixtures("squeue")
def test_another_job_around_the_command_says_nothing_about_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_TASKS_PER_NODE", "8")
    for around, tasks in (("7", None), ("4713", "8")):
        monkeypatch.setenv("SLURM_JOB_ID", around)
        environ = of_slurm(BARE)[1]
        assert (slurm_of(environ), environ.get("SLURM_TASKS_PER_NODE")) == (("4713", "node[1-2]"), tasks)


@pytest.mark.parametrize("how", ["ssh", "no srun", "another user", "a user to log in as"])
def test_else_they_are_hosts_like_others(how: str, squeue: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if how == "no srun":
        (squeue / "srun").unlink()
    elif how == "another user":
        monkeypatch.setattr(os, "getuid", lambda: 4_000_000)
    ways = {"ssh": WayFlags(transport="ssh"), "a user to log in as": WayFlags(user="mara")}
    asked, environ, number = of_slurm(replace(BARE, way=ways.get(how, WayFlags())))
    assert (asked.who.hosts, number) == (("node1", "node2"), "4713")
    assert environ is os.environ


def test_hosts_that_are_named_need_no_squeue(squeue: Path) -> None:
    who = replace(OF_JOB, hosts=("node9",))
    assert of_slurm(Request("hang", who=who))[0].who == HostFlags(hosts=("node9",))
    with pytest.raises(UsageError, match="named in two ways: by --job and by name"):
        of_slurm(Request("check", who=who))
    assert not (squeue / "asked").exists()


def test_without_squeue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UsageError, match="no squeue on the PATH") as error:
        slurm_job("4711")
    assert error.value.hint == "Name its nodes: HOSTS."

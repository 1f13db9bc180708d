"""How a smoke agent starts its ranks, and what it reports if it cannot."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from doctor.smoke.agents import smoke_script
from tests.process.mesh.test_agent import interpreter
from tests.support.cases import cases
from tests.support.smoke.agent import JOINING, Open, agents


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Open]:
    yield from agents(tmp_path)


def test_what_the_ranks_start_with(agent: Open) -> None:
    """Only the login and the launch choose its interface."""
    names = ["OMP_NUM_THREADS", "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "HCCL_SOCKET_IFNAME", "MINE"]
    run = agent()
    run.start(
        1,
        f"say(ev='seen', env=[os.environ.get(n) for n in {names}], cwd=os.getcwd(),"
        " stdin=os.read(0, 9).decode(), fds=[os.readlink('/proc/self/fd/' + n) for n in '012'],"
        " asked=signal.getsignal(signal.SIGINT))",
        env={"MINE": "1", "NCCL_SOCKET_IFNAME": "ib0"},
    )
    seen = run.event("seen")
    assert seen["env"] == ["1", None, "ib0", None, "1"]
    assert (seen["cwd"], seen["stdin"], seen["asked"]) == ("/", "", 0)


def test_a_rank_holds_only_its_own_pipes(agent: Open) -> None:
    run = agent()
    run.start(2, "say(ev='fds', fds=[os.readlink(f.path) for f in os.scandir('/proc/self/fd')])")
    first, second = run.event("fds")["fds"], run.event("fds")["fds"]
    pipes = [{name for name in fds if name.startswith("pipe:")} for fds in (first, second)]
    assert len(pipes[0]) == len(pipes[1]) == 3
    assert not pipes[0] & pipes[1]


def test_when_threads_run_each_rank_gets_its_own_interpreter(agent: Open) -> None:
    """A child that is forked while threads run may wait forever for a lock."""
    torch = "import threading, time; __version__ = '1'\n"
    torch += "threading.Thread(target=time.sleep, args=(600,)).start()"
    run = agent(torch=torch)
    act = (
        "say(ev='up', parent=os.getppid(), place=place, threads=len(os.listdir('/proc/self/task')))\n"
        "print('bye'); raise ValueError('x')"
    )
    run.start(2, act, store=True)
    up = [run.event("up"), run.event("up")]
    assert sorted(event["place"] for event in up) == [0, 1]
    assert {event["parent"] for event in up} == {run.forkserver_pid()}
    assert {event["threads"] for event in up} == {2}
    while len(run.said("exit")) < 2 or not run.said("store"):
        assert run.hear(10)
    assert all(said["code"] == 3 and "bye\n" in said["words"] for said in run.said("exit"))
    assert len([line for line in run.pids().values() if "forkserver" in line]) == 2  # the store is one, too


@pytest.mark.parametrize(
    ("init", "port"),
    [
        ("self, address, port, master_listen_fd, **options): self.port = port", None),
        ("self, address, port, is_master, wait_for_workers, timeout): self.port = port or 4567", 4567),
    ],
)
def test_the_store_listens_on_the_given_address_if_torch_allows_it(agent: Open, init: str, port: int) -> None:
    run = agent(store=f"class TCPStore:\n  def __init__({init}")
    run.start(store=True)
    said = run.until("store")["port"]
    assert said == port if port else said > 1023


def test_a_store_that_ends_is_reported(agent: Open) -> None:
    run = agent(store="class TCPStore:\n  def __init__(self, *_, **__): raise RuntimeError('address in use')")
    run.start(store=True)
    assert "the rendezvous store ended early: " in run.until("trouble")["text"]
    assert "address in use" in run.said("trouble")[0]["text"]


@cases
def test_an_invalid_start_command_is_refused(agent: Open, wrong: dict[str, Any]) -> None:
    run = agent()
    run.start(told=wrong)
    assert "did not understand" in run.until("trouble")["text"]
    run.until("bye")


def test_reverse_dns_is_timed(agent: Open) -> None:
    run = agent()
    run.start(head="127.0.0.1")
    assert 0 <= run.until("dns")["seconds"] < 60


@pytest.mark.parametrize("version", ["3.6", "3.7", "3.8", "3.9", "3.10", "3.12", "3.13"])
def test_the_agent_runs_on_old_and_new_pythons(agent: Open, version: str) -> None:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"no Python {version} here")
    run = agent(python=python)
    assert run.said("ready")[0]["python"].startswith(version + ".")
    run.start(2, JOINING, python=python)
    run.send(do="join")
    run.until("pages", lambda said: all(row["page"][2] == 5 for row in said["ranks"]))
    run.send(do="stacks")
    assert "in run" in run.until("stacks")["stacks"]["10"]
    run.stop()


def _without_torch() -> str | None:
    path = shutil.which("python3", path="/usr/bin:/bin")
    asked = path and subprocess.run([path, "-c", "import torch"], capture_output=True)
    return path if asked and asked.returncode else None


@cases
def test_a_broken_torch(agent: Open, torch: str, words: str) -> None:
    run = agent(torch=torch)
    run.start()
    assert re.search(words, run.until("trouble")["text"])
    run.until("bye")
    assert run.said("imported") == []


def test_no_torch(agent: Open) -> None:
    python = _without_torch()
    if python is None:
        pytest.skip("the system's Python has torch, or is not there")
    run = agent(torch=None)
    run.start(python=python)
    assert run.until("trouble")["text"] == (
        f"{python} cannot import torch: ModuleNotFoundError: No module named 'torch'"
    )


def test_an_interpreter_that_does_not_exist(agent: Open) -> None:
    run = agent()
    run.start(python="/opt/nowhere/python")
    assert "cannot start /opt/nowhere/python: " in run.until("trouble")["text"]


def test_the_module_of_a_rank_cannot_be_imported(agent: Open) -> None:
    run = agent(modules={"rank": "import torch.no_such_thing"})
    run.start()
    assert "cannot import the smoke run with torch 9.9 and Python 3" in run.until("trouble")["text"]


def test_a_sitecustomize_that_ends_the_interpreter(agent: Open) -> None:
    run = agent()
    (run.modules / "sitecustomize.py").write_text(
        "import os; os.write(2, b'licence expired\\n'); os._exit(9)"
    )
    run.start()
    assert run.until("trouble")["text"].endswith("ended early (exit status 9): licence expired")


def test_no_interpreter_for_the_agent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("doctor.agents.bootstrap.PYTHONS", ("/opt/nowhere/python",))
    script = smoke_script()
    run = subprocess.run(script.command, shell=True, input=script.stdin, capture_output=True, cwd=tmp_path)
    assert run.stdout.splitlines()[-1] == b'{"say":"none","detail":"no Python 3.6 or later was found"}'

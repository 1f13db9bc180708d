"""Stuck processes that are really stuck, and which part of their command lines leaves the host."""

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from doctor.api import Capture, Run
from doctor.facts.processes import PROCESSES, Processes
from doctor.judge.engine import Facts
from tests.support.captures import every_fact
from tests.support.cases import from_cases
from tests.support.probing import HERE, NOBODY, ask

SECONDS = 60
SECRET = ("--lr", "1", "--wandb-key", "ZZLEAK1", "--pw", "ZZLEAK2", "ZZLEAK3")
RUNS = f"echo up; sleep {SECONDS}; :"
# Between vfork and exec, the parent is in state D; its child waits for a writer that never comes.
HANGS = from_cases(__file__, "HANGS", str)
each_shell = pytest.mark.parametrize("shell", HERE)


class Crowd:
    """Processes that have secrets on their command lines."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, *words: str, program: str, user: int | None = None) -> int:
        process = subprocess.Popen(
            (*words, *SECRET), executable=program, stdout=subprocess.PIPE, start_new_session=True, user=user
        )
        self.started.append(process)
        assert process.stdout
        assert process.stdout.readline() == b"up\n"
        return process.pid

    def run(self, name: str, *words: str) -> int:
        """Run a healthy process, as another user if this one may do that."""
        user = NOBODY if os.geteuid() == 0 else None
        return self.start(name, "-c", RUNS, *words, program="/bin/sh", user=user)

    def hang(self) -> int:
        words = ("/opt/train/hangs", "-ISc", HANGS, str(self.folder / "fifo"))
        pid = self.start(*words, program=sys.executable)
        while psutil.Process(pid).status() != psutil.STATUS_DISK_SLEEP:
            time.sleep(0.01)
        return pid

    def stop(self) -> None:
        for process in self.started:
            for child in psutil.Process(process.pid).children():
                child.kill()
            process.kill()
            process.wait()
            assert process.stdout
            process.stdout.close()


@pytest.fixture
def crowd(tmp_path: Path) -> Iterator[Crowd]:
    made = Crowd(tmp_path)
    yield made
    made.stop()


def seen(shell: str) -> tuple[str, Processes]:
    heard = ask([PROCESSES], shell)
    value = Facts({"here": heard}).get("here", PROCESSES)
    assert isinstance(value, Processes)
    return heard.captures[PROCESSES.name].stdout, value


@each_shell
def test_of_a_stuck_process_the_program_and_of_a_healthy_one_nothing(shell: str, crowd: Crowd) -> None:
    healthy = {
        crowd.run("torchrun", "--nproc-per-node=2", "train.py"),
        crowd.run("python3", "-m", "torch.distributed.run"),
        crowd.run("python3", "from multiprocessing.spawn import spawn_main"),
    }
    stuck = crowd.hang()
    stdout, value = seen(shell)
    assert "ZZLEAK" not in stdout
    shown = {process.pid: process.command for process in value.shown}
    assert shown[stuck] == "/opt/train/hangs"
    assert not shown.keys() & healthy


def test_no_fact_tells_of_a_healthy_process_of_another_user(crowd: Crowd) -> None:
    crowd.run("torchrun", "--nproc-per-node=2", "train.py")
    heard = ask(list(every_fact().values()), HERE[0])
    assert "ZZLEAK" not in str(heard)


@each_shell
def test_of_the_first_process_the_program(shell: str, crowd: Crowd) -> None:
    """In a container, the first process may be any program with any options."""
    crowd.hang()
    _, value = seen(shell)
    assert value.init == psutil.Process(1).cmdline()[0].split()[0]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a PID namespace")
def test_of_a_worker_without_its_launcher_also_what_makes_it_one() -> None:
    assert isinstance(PROCESSES.command, Run)
    assert isinstance(PROCESSES.command.shell, str)
    orphan = shlex.join(("sh", "-c", RUNS, "from multiprocessing.spawn import spawn_main", *SECRET))
    # The first process of the namespace is its parent, and the probe has its own session.
    begun = "until grep -q spawn_main /proc/$!/cmdline; do :; done"
    first = f"{orphan} >/dev/null & {begun}; setsid -w sh -c {shlex.quote(PROCESSES.command.shell)}; :"
    apart = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", first)
    ran = subprocess.run(apart, capture_output=True, text=True, check=True)
    found = PROCESSES.parse(Capture(PROCESSES.name, 0, ran.stdout))
    assert found.init == "sh"
    assert [process.command for process in found.shown] == ["sh multiprocessing.spawn"]
    assert "ZZLEAK" not in ran.stdout

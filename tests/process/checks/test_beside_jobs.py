"""This machine, examined while jobs run on it: they decide nothing, unless --launch live names one."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.cases import from_cases
from tests.support.commands import doctor

EXAM = from_cases(__file__, "EXAM", str)
WAITS = "import time; print('up', flush=True); time.sleep(60)\n"
SAVES = from_cases(__file__, "SAVES", str)


@dataclass
class Jobs:
    """Jobs of one program, by whose name a test tells them from those of tests that run beside it."""

    folder: Path
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)
    program: str = field(default_factory=lambda: f"train_{os.getpid()}_{time.monotonic_ns()}.py")

    def write(self, text: str) -> str:
        (self.folder / self.program).write_text(text)
        return str(self.folder / self.program)

    def start(self, env: Mapping[str, str | int], *words: str, user: int | None = None) -> None:
        clean = {"PATH": os.environ["PATH"], "HOME": "/tmp", **{name: str(env[name]) for name in env}}
        process = subprocess.Popen(
            words or (sys.executable, self.write(WAITS)),
            env=clean,
            stdout=subprocess.PIPE,
            start_new_session=True,
            user=user,
        )
        self.started.append(process)
        assert process.stdout
        assert process.stdout.readline() == b"up\n"


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    with tempfile.TemporaryDirectory() as folder:  # another user cannot enter that of pytest
        os.chmod(folder, 0o755)
        made = Jobs(Path(folder))
        yield made
        for process in made.started:
            os.killpg(
                process.pid, signal.SIGTERM
            )  # torchrun ends its ranks, which have sessions of their own
            process.wait(20)
            assert process.stdout
            process.stdout.close()


def ranks(*numbers: int, world: int = 4, **more: str | int) -> list[dict[str, str | int]]:
    env = {"WORLD_SIZE": world, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": 29677, **more}
    return [{"RANK": number, "LOCAL_RANK": number, "LOCAL_WORLD_SIZE": world, **env} for number in numbers]


BESIDE: dict[str, tuple[list[dict[str, str | int]], str]] = {
    "a rank is missing": (ranks(0, 1, 3), ""),
    "all but rank 0 have ended": (ranks(0), ""),
    "a rank exists twice": (ranks(0, 1, 1, 3), "RANK=1 is given 2 times"),
    "a rank is impossible": (ranks(0, 1, 2, 7), "RANK is out of range"),
    "the master is impossible": (
        ranks(0, 1, MASTER_ADDR="tcp://node1:29500"),
        "neither an address nor the name",
    ),
    "the ranks differ": (ranks(0, 1, 2) + ranks(3, HCCL_BUFFSIZE=7), "HCCL_BUFFSIZE differs"),
}


def check(jobs: Jobs, *options: str) -> tuple[int, str]:
    exam = jobs.folder / "exam.yaml"
    exam.write_text(EXAM)
    ran = doctor("check", "--local", "--exam", str(exam), *options)
    return ran.returncode, " ".join((ran.stdout + ran.stderr).split())


@pytest.mark.parametrize("name", BESIDE)
def test_a_job_that_runs_is_judged_only_if_it_is_named(name: str, jobs: Jobs) -> None:
    envs, fault = BESIDE[name]
    for env in envs:
        jobs.start(env)
    code, text = check(jobs)
    assert (code, "a job runs on" in text, jobs.program in text) == (0, True, False), text
    code, text = check(jobs, "--launch", "live")
    assert (jobs.program in text, fault in text) == (bool(fault), True), text
    assert code == 1 or not fault


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of somebody else")
def test_a_job_of_another_user_is_not_read(jobs: Jobs) -> None:
    named = jobs.folder / "python3"  # the interpreter of the tests may be root's own
    shutil.copy("/bin/sh", named)
    for env in ranks(0, 1, 1):
        jobs.start(env, str(named), jobs.write("echo up; sleep 60 & wait\n"), user=65534)
    code, text = check(jobs)
    assert (code, jobs.program in text) == (0, False), text
    _, text = check(jobs, "--launch", "live")
    assert jobs.program not in text


def test_a_job_that_saves_its_last_checkpoint(jobs: Jobs) -> None:
    """Ranks 1 and 2 have ended with 0, and torchrun waits for rank 0. The node was drained for it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    torchrun = (sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=3", f"--master_port={port}")
    jobs.start({"OMP_NUM_THREADS": 1}, *torchrun, jobs.write(SAVES))
    for named in ((), ("--launch", "live")):
        code, text = check(jobs, *named)
        assert ("a job runs on" in text, jobs.program in text) == (True, False), text
        assert code == 0 or named


def test_live_and_a_file_are_two_answers(tmp_path: Path) -> None:
    (tmp_path / "live").write_text("export MASTER_ADDR=127.0.0.1\npython train.py\n")
    both = doctor("check", "--local", "--launch", "live", "--launch", "./live", cwd=tmp_path)
    assert (both.returncode, "a file of that name is ./live" in both.stderr) == (2, True)
    file = doctor("check", "--local", "--launch", "./live", "--only", "launch-timeouts", cwd=tmp_path)
    assert "launch: shell script in live" in file.stdout

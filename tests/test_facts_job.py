"""The user's own training processes, really running, and looked for by the fact's own shell."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from doctor.api import Capture
from doctor.engine import Facts
from doctor.errors import NotUnderstood
from doctor.facts.job import PROCESSES_OF_JOBS, JobProcess
from doctor.model import Missing
from tests.captures import printed
from tests.probing import HERE, ask

SECONDS = 60
"""After which a process of these tests ends by itself."""
RANK = f"""
import multiprocessing, os, sys, time
def wait(): time.sleep({SECONDS})
if __name__ == "__main__":
    for method in sys.argv[1].split(","):
        if method:
            multiprocessing.get_context(method).Process(target=wait, daemon=True).start()
    time.sleep(float(sys.argv[2]) if len(sys.argv) > 2 and sys.argv[2].isdigit() else 0)
    print("up", flush=True)
    time.sleep({SECONDS})
"""
TORCH = {"RANK": "3", "LOCAL_RANK": "3", "WORLD_SIZE": "8", "MASTER_ADDR": "node1", "MASTER_PORT": "29500"}


class Bench:
    """Starts processes with a mark of their own, by which a test tells them from everybody else's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mark = f"m{os.getpid()}x{time.monotonic_ns()}"
        self.script = folder / f"train_{self.mark}.py"
        self.script.write_text(RANK)
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, env: Mapping[str, str], *words: str, user: int | None = None) -> subprocess.Popen[bytes]:
        """One process, up and with all its children."""
        clean = {"PATH": os.environ["PATH"], "HOME": "/tmp", "MS_MARK": self.mark, **env}
        process = subprocess.Popen(
            words or (sys.executable, str(self.script), ""),
            env=clean,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            user=user,
        )
        self.started.append(process)
        assert process.stdout
        assert process.stdout.readline() == b"up\n"
        return process

    def stop(self) -> None:
        for process in self.started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            assert process.stdout
            process.stdout.close()

    def seen(self, shell: str, env: Mapping[str, str] | None = None) -> list[JobProcess]:
        value = Facts({"here": ask([PROCESSES_OF_JOBS], shell, env)}).get("here", PROCESSES_OF_JOBS)
        assert not isinstance(value, Missing), value
        return [process for process in value if process.env.get("MS_MARK") == self.mark]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    tmp_path.chmod(0o755)
    made = Bench(tmp_path)
    yield made
    made.stop()


each_shell = pytest.mark.parametrize("shell", HERE)


@each_shell
def test_a_rank(shell: str, bench: Bench) -> None:
    rank = bench.start(
        {**TORCH, "HCCL_BUFFSIZE": "two\nlines\n", "MY_SECRET": "s3cret", "NCCL_TOKEN": "t0ken"}
    )
    (found,) = bench.seen(shell)
    assert (found.pid, found.parent) == (rank.pid, os.getpid())
    assert found.env["RANK"] == "3"
    assert found.env["HCCL_BUFFSIZE"] == "two\nlines\n"
    assert "MY_SECRET" not in found.env
    assert found.command == (sys.executable, str(bench.script), "")


def test_nothing_else_leaves_the_host(bench: Bench) -> None:
    bench.start(
        {**TORCH, "MY_VALUE": "s3cret", "NCCL_TOKEN": "t0ken"},
        *(sys.executable, str(bench.script), "", "--password", "pa55word", "--api-key=k3yk3y"),
    )
    heard = ask([PROCESSES_OF_JOBS], HERE[0])
    capture = heard.captures[PROCESSES_OF_JOBS.name]
    assert bench.mark in capture.stdout
    for secret in ("MY_VALUE", "s3cret", "t0ken", "pa55word", "k3yk3y"):
        assert secret not in capture.stdout


@each_shell
def test_helpers_of_a_rank_are_not_ranks(shell: str, bench: Bench) -> None:
    """Loaders of data are forked or spawned with everything that the rank was told."""
    rank = bench.start(TORCH, sys.executable, str(bench.script), "fork,spawn,fork")
    assert [process.pid for process in bench.seen(shell)] == [rank.pid]


@each_shell
def test_a_shell_around_a_rank_is_no_rank(shell: str, bench: Bench) -> None:
    """`bash -c "python train.py; :"` is told the same."""
    words = ("sh", "-c", f"{sys.executable} {bench.script} fork; :")
    around = bench.start(TORCH, *words)
    (found,) = bench.seen(shell)
    assert found.parent == around.pid


@each_shell
def test_a_program_that_spawns_its_ranks(shell: str, bench: Bench) -> None:
    env = {"MASTER_ADDR": "node1", "MASTER_PORT": "29500"}
    parent = bench.start(env, sys.executable, str(bench.script), "spawn,spawn")
    deadline = time.monotonic() + 20
    while not (found := bench.seen(shell)) and time.monotonic() < deadline:
        time.sleep(0.2)  # the spawned ones are up a moment later
    assert [(process.pid, process.spawns) for process in found] == [(parent.pid, True)]


@each_shell
def test_a_launcher_without_a_rank(shell: str, bench: Bench, tmp_path: Path) -> None:
    """It is known by its command line alone, and its ranks beside it."""
    torchrun = tmp_path / "torchrun"
    torchrun.write_text(
        "import os, subprocess, sys, time\n"
        f"env = {{**os.environ, **{TORCH!r}}}\n"
        f"rank = subprocess.Popen([sys.executable, {str(bench.script)!r}, ''], env=env)\n"
        f"time.sleep({SECONDS})\n"
    )
    agent = bench.start({}, sys.executable, str(torchrun), "--nnodes=2", str(bench.script), "")
    launcher, rank = sorted(bench.seen(shell), key=lambda process: process.pid != agent.pid)
    assert launcher.command[1:3] == (str(torchrun), "--nnodes=2")
    assert "RANK" not in launcher.env
    assert (rank.parent, rank.env["RANK"]) == (agent.pid, "3")


@pytest.mark.parametrize(
    "env",
    [{"MASTER_ADDR": "node1"}, {"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"}, {"RANK_TABLE_FILE": "/x"}],
)
def test_what_merely_inherited_a_variable_is_no_job(env: dict[str, str], bench: Bench) -> None:
    bench.start(env)
    assert bench.seen(HERE[0]) == []


def test_what_only_speaks_of_a_launcher_is_no_job(bench: Bench) -> None:
    bench.start({}, sys.executable, str(bench.script), "", "torchrun", "msrun")
    assert bench.seen(HERE[0]) == []


def test_the_doctor_is_no_job(bench: Bench, tmp_path: Path) -> None:
    """It may be started inside a rank; so may its probe."""
    doctor = tmp_path / "doctor"
    shutil.copy(bench.script, doctor)
    bench.start(TORCH, sys.executable, str(doctor), "")
    assert bench.seen(HERE[0], {**TORCH, "MS_MARK": bench.mark}) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of somebody else")
@each_shell
def test_processes_of_others_are_not_read(shell: str, bench: Bench) -> None:
    bench.start(TORCH, "/bin/sh", "-c", f"echo up; exec sleep {SECONDS}", user=65534)
    assert bench.seen(shell) == []


@pytest.mark.skipif(shutil.which("busybox") is None, reason="needs busybox")
def test_with_a_grep_that_cannot_read_lines_that_end_with_nul(bench: Bench, tmp_path: Path) -> None:
    """Small builds of busybox have no `grep -z`."""
    folder = tmp_path / "small"
    folder.mkdir()
    for applet in subprocess.run(["busybox", "--list"], capture_output=True, text=True).stdout.split():
        (folder / applet).symlink_to(str(shutil.which("busybox")))
    (folder / "grep").unlink()
    (folder / "grep").write_text(
        '#!/bin/sh\ncase $1 in -*z*) echo "grep: unrecognized option: z" >&2; exit 2;; esac\n'
        'exec busybox grep "$@"\n'
    )
    (folder / "grep").chmod(0o755)
    rank = bench.start({**TORCH, "HCCL_BUFFSIZE": "two\nlines"}, sys.executable, str(bench.script), "fork")
    (found,) = bench.seen("busybox", {"PATH": f"{folder}:{os.environ['PATH']}"})
    assert (found.pid, found.env["HCCL_BUFFSIZE"]) == (rank.pid, "two\nlines")


@each_shell
def test_a_host_without_jobs_is_cheap(shell: str) -> None:
    """One grep over all processes, and nothing else."""
    began = time.monotonic()
    Facts({"here": ask([PROCESSES_OF_JOBS], shell)}).get("here", PROCESSES_OF_JOBS)
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("jobs\n", ()),
        (
            "jobs\np 7 1 0\ne RANK=1\ne HOME=/x\na\tpython\tt.py\n",
            (JobProcess(7, 1, {"RANK": "1"}, ("python", "t.py")),),
        ),
        ("jobs\np 7 1 0\ne RANK=1\n", ()),
        ("jobs\np 7 1 0\ne RANK=1\na\t\n", ()),
        ("jobs\np 7 1 0\ne RANK=1\na\tpython\t-m\tdoctor\n", ()),
    ],
)
def test_what_is_printed(text: str, expected: tuple[JobProcess, ...]) -> None:
    assert printed(PROCESSES_OF_JOBS, text) == expected


@pytest.mark.parametrize(
    "text", ["", "p 1 1 0\n", "jobs\np x 1 0\n", "jobs\np 1 1 0\nmore\n", "jobs\np 1 1\n"]
)
def test_what_is_not_understood(text: str) -> None:
    with pytest.raises(NotUnderstood):
        PROCESSES_OF_JOBS.parse(Capture(PROCESSES_OF_JOBS.name, 0, text))

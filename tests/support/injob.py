"""Jobs whose ranks call `doctor … --in-job`, started by torchrun or mpirun, and their exit codes."""

import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import psutil
import pytest

from tests.lab import Host, Lab
from tests.lab.controller import REPOSITORY
from tests.lab.processes import command, numbers, processes
from tests.support.cases import from_cases

JOINED = "has reached rank 0"
TORCHRUN = str(Path(sys.executable).with_name("torchrun"))
PORT = 29617
PATIENCE = 300.0
RANK = from_cases(__file__, "RANK", str)
"""torchrun turns two dollar signs into one."""
ENDED = re.compile(r"^code (\d+) (\w+)$", re.MULTILINE)


@dataclass(slots=True)
class Job:
    """A running job; its ranks' outputs go to files that are read while it runs."""

    starts: list[subprocess.Popen[bytes]] = field(default_factory=list)
    files: list[IO[bytes]] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "\n".join(Path(file.name).read_text(errors="replace") for file in self.files)

    @property
    def codes(self) -> dict[int, int]:
        return {int(rank): int(code) for rank, code in ENDED.findall(self.text) if code.isdecimal()}

    def wait(self, ranks: Sequence[int]) -> dict[int, int]:
        """Wait for these ranks; returns their exit codes."""
        await_true(lambda: set(ranks) <= self.codes.keys(), lambda: self.text)
        return self.codes

    def start(self, argv: Sequence[str], env: Mapping[str, str]) -> None:
        file = tempfile.NamedTemporaryFile(prefix="injob-", delete=False)  # noqa: SIM115
        self.files.append(file)
        self.starts.append(
            subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, env={**env}
            )
        )

    def close(self) -> None:
        for process in self.starts:
            process.kill()
            process.wait()
        for file in self.files:
            file.close()
            Path(file.name).unlink()


def await_true(true: Callable[[], bool], said: Callable[[], str] = str) -> None:
    until = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < until, said()
        time.sleep(0.05)


def environment(**more: str) -> dict[str, str]:
    path = os.environ.get("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
    return {
        "PATH": f"{Path(sys.executable).parent}:{path}",
        "HOME": "/root",
        "LC_ALL": "C.UTF-8",
        "PYTHONPATH": str(REPOSITORY),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        **more,
    }


def rank_argv(*arguments: str) -> list[str]:
    """What each rank runs: doctor, and then a line with its exit code."""
    return ["sh", "-c", RANK, "rank", sys.executable, "-m", "doctor", *arguments, "--in-job"]


@contextmanager
def torchrun(hosts: Sequence[Host], ranks: int, *arguments: str, **env: str) -> Iterator[Job]:
    """One torchrun on each host, as people start it by hand."""
    job = Job()
    try:
        for number, host in enumerate(hosts):
            host.dirty = True
            words = [*torchrun_argv(hosts, ranks, number), "--no-python"]
            job.start(host.enter(["env", "-C", "/", *words, *rank_argv(*arguments)]), environment(**env))
        yield job
    finally:
        job.close()


@contextmanager
def mpirun(lab: Lab, hosts: Sequence[Host], ranks: int, *arguments: str, **env: str) -> Iterator[Job]:
    """mpirun on the controller, which starts its daemons on the hosts over SSH."""
    for host in hosts:
        host.dirty = True
    job = Job()
    try:
        start_mpirun(job, lab, hosts, ranks, rank_argv(*arguments), environment(**env))
        yield job
    finally:
        job.close()


JSON = "/run/doctor.json"


def led_by_mpirun(lab: Lab, hosts: Sequence[Host], *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command that one rank a host runs, as if it were one process; all end with its exit code."""
    words = [JSON if word == "-" else word for word in arguments]
    with mpirun(lab, hosts, 1, *words) as job:
        codes = job.wait(range(len(hosts)))
        text = re.sub(r"\x1b\[[0-9;]*m", "", job.text).replace("\r", "")
    assert len({*codes.values()}) == 1, text
    if JSON in words:
        text = Path(f"/proc/{hosts[0].pid}/root{JSON}").read_text()
    return subprocess.CompletedProcess(words, codes[0], text, text)


def start_mpirun(
    job: Job,
    lab: Lab,
    hosts: Sequence[Host],
    ranks: int,
    argv: Sequence[str],
    env: Mapping[str, str],
    user: str = "root",
) -> None:
    """Start this many ranks on each host, as this user there; they get these variables."""
    ssh = f"ssh -F {lab.ssh_config} -l {user}"
    words = ["mpirun", "--allow-run-as-root", "--mca", "plm_rsh_agent", ssh]
    words += ["--host", ",".join(f"{host.name}:{ranks}" for host in hosts), "-np", str(ranks * len(hosts))]
    passed = [word for name in env if name != "HOME" for word in ("-x", name)]
    job.start(lab.enter([*words, *passed, *argv], cwd="/"), {**env, "HOME": str(lab.home)})


def torchrun_argv(hosts: Sequence[Host], ranks: int, number: int, port: int = PORT) -> list[str]:
    """The beginning of torchrun's command line on the host with this number."""
    return [
        TORCHRUN,
        f"--nnodes={len(hosts)}",
        f"--nproc-per-node={ranks}",
        f"--node-rank={number}",
        f"--master-addr={hosts[0].address}",
        f"--master-port={port}",
    ]


def pid_of(host: Host, rank: int) -> int:
    """The process id, on its host, of a rank that has called doctor; 0 if there is none."""
    for process in processes(host.pid):
        with suppress(psutil.NoSuchProcess):
            environ, line = process.environ(), command(process)
            mine = str(rank) in (environ.get("RANK"), environ.get("OMPI_COMM_WORLD_RANK"))
            if mine and re.match(r"\S*python.* -m doctor ", line):
                return numbers(process.pid)[-1]
    return 0


@dataclass(slots=True)
class Ranks:
    """Ranks on this machine, started one by one with the variables that any launcher sets."""

    world: int
    folder: Path
    port: int
    more: Mapping[str, str] = field(default_factory=dict)
    started: dict[int, subprocess.Popen[str]] = field(default_factory=dict)

    def environment(self, rank: int) -> dict[str, str]:
        said = {"RANK": str(rank), "WORLD_SIZE": str(self.world), "MASTER_PORT": str(self.port)}
        kept = {name: text for name, text in os.environ.items() if name not in ("LOCAL_RANK", "MASTER_ADDR")}
        return {**kept, "MASTER_ADDR": "localhost", **said, **self.more}

    @property
    def report(self) -> Path:
        return self.folder / "report.json"

    def start(self, *ranks: int, argv: Sequence[str] = ()) -> None:
        check = ["check", "--exam", "host", "--only", "shm-*", "--json", str(self.report)]
        doctor = [sys.executable, "-m", "doctor", *(argv or check), "--in-job"]
        for rank in ranks:
            self._start(rank, doctor)

    def start_other(self, rank: int, argv: Sequence[str]) -> None:
        """Start a rank of the job that does not call doctor."""
        self._start(rank, argv)

    def _start(self, rank: int, argv: Sequence[str]) -> None:
        with self.errors(rank).open("w") as errors:
            self.started[rank] = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=REPOSITORY,
                env=self.environment(rank),
            )

    def ends(self, *ranks: int) -> dict[int, tuple[int, str, str]]:
        """The exit code and the output of each of these ranks."""
        found = {}
        for rank in ranks:
            out, _ = self.started[rank].communicate(timeout=PATIENCE)
            found[rank] = (self.started[rank].returncode, out, self.errors(rank).read_text())
        return found

    def await_joined(self, rank: int) -> None:
        """Wait until rank 0, started with -v, reports that the rank has joined."""
        await_true(lambda: JOINED in self.errors(rank).read_text())

    def errors(self, rank: int) -> Path:
        return self.folder / f"errors.{rank}"

    def close(self) -> None:
        for process in self.started.values():
            process.kill()
            process.communicate()


@pytest.fixture
def make_ranks(tmp_path: Path) -> Iterator[Callable[..., Ranks]]:
    """A function that takes the number of ranks, and variables for all of them."""
    made: list[Ranks] = []

    def make(world: int, **more: str) -> Ranks:
        made.append(Ranks(world, tmp_path, free_port(), more))
        return made[-1]

    yield make
    for ranks in made:
        ranks.close()


def free_port() -> int:
    with socket.create_server(("localhost", 0)) as server:
        port: int = server.getsockname()[1]
        return port

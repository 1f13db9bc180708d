"""Real training processes of the user, found by the fact's own shell script."""

import contextlib
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil
import pytest

from doctor.api import Ask, Run
from doctor.facts.job import PROCESSES_OF_JOBS
from doctor.facts.network import LISTENERS
from doctor.job.launch.processes import JobProcess
from doctor.judge.engine import Facts
from doctor.model import MissingFact
from tests.support.cases import cases, from_cases
from tests.support.commands import ALONE, DOCTOR, doctor, environment
from tests.support.probing import HERE, ask

SECONDS = 60
"""Seconds after which a process of these tests ends by itself."""
RANK = from_cases(__file__, "RANK", str)
TORCH = {"RANK": "3", "LOCAL_RANK": "3", "WORLD_SIZE": "8", "MASTER_ADDR": "node1", "MASTER_PORT": "29500"}


class Bench:
    """Starts processes with a mark, by which a test distinguishes them from all others."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mark = f"m{os.getpid()}x{time.monotonic_ns()}"
        self.script = folder / f"train_{self.mark}.py"
        self.script.write_text(RANK)
        self.torchrun = folder / "torchrun"
        self.torchrun.write_text(f"import time\nprint('up', flush=True)\ntime.sleep({SECONDS})\n")
        self.started: list[subprocess.Popen[bytes]] = []

    def start(
        self,
        env: Mapping[str, str],
        *words: str,
        user: int | None = None,
        folder: Path | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start one process, with all its children."""
        clean = {"PATH": os.environ["PATH"], "HOME": "/tmp", "NCCL_MARK": self.mark, **env}
        process = subprocess.Popen(
            words or (sys.executable, str(self.script), ""),
            env=clean,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            user=user,
            cwd=folder,
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
        assert not isinstance(value, MissingFact), value
        return [process for process in value if process.env.get("NCCL_MARK") == self.mark]


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
    assert found.command == (sys.executable, str(bench.script))


SECRET_VARIABLES = from_cases(__file__, "SECRET_VARIABLES", dict[str, str])
SECRET_WORDS = ("", "0", "hidden7", "--password", "hidden8", "--key=hidden9", "--multiprocessing-distributed")


@each_shell
def test_nothing_else_leaves_the_host(shell: str, bench: Bench) -> None:
    """Neither other variables, nor the arguments of the program."""
    bench.start({**TORCH, **SECRET_VARIABLES}, sys.executable, str(bench.script), *SECRET_WORDS)
    agent = (sys.executable, str(bench.torchrun), "--nnodes=2", "--log_dir", "hidden0", str(bench.script))
    bench.start({}, *agent, *SECRET_WORDS)
    heard = ask([PROCESSES_OF_JOBS], shell)
    capture = heard.captures[PROCESSES_OF_JOBS.name]
    assert bench.mark in capture.stdout
    assert "--nnodes=2" in capture.stdout
    assert "hidden" not in capture.stdout
    assert not SECRET_VARIABLES.keys() & set(re.findall(r"\w+", capture.stdout))


def test_nothing_else_reaches_a_recording(bench: Bench, tmp_path: Path) -> None:
    bench.start({**TORCH, **SECRET_VARIABLES}, sys.executable, str(bench.script), *SECRET_WORDS)
    saved = tmp_path / "saved.json"
    command = (sys.executable, "-m", "doctor", "check", "--local", "--save", str(saved))
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert saved.exists(), ran.stderr
    text = saved.read_text() + ran.stdout
    assert bench.mark in text
    assert "hidden" not in text
    assert not [name for name in SECRET_VARIABLES if name in text]


@each_shell
def test_a_loop_that_sets_no_rank(shell: str, bench: Bench) -> None:
    """LOCAL_RANK and WORLD_SIZE are enough for a program on one host."""
    env = {"LOCAL_RANK": "1", "WORLD_SIZE": "8"}
    rank = bench.start(env)
    assert [process.pid for process in bench.seen(shell)] == [rank.pid]


@each_shell
def test_helpers_of_a_rank_are_not_ranks(shell: str, bench: Bench) -> None:
    """Data loaders are forked or spawned with the whole environment of the rank."""
    rank = bench.start(TORCH, sys.executable, str(bench.script), "fork,spawn,fork")
    assert [process.pid for process in bench.seen(shell)] == [rank.pid]


@each_shell
def test_a_shell_around_a_rank_is_not_a_rank(shell: str, bench: Bench) -> None:
    """`bash -c "python train.py; :"` has the same environment."""
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
        time.sleep(0.2)  # the spawned processes start a moment later
    assert [(process.pid, process.spawns) for process in found] == [(parent.pid, True)]


@each_shell
def test_a_launcher_without_a_rank(shell: str, bench: Bench, tmp_path: Path) -> None:
    """It is known by its command line alone, and its ranks are listed with it."""
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


@cases
def test_a_process_that_only_inherited_a_variable_is_not_a_job(env: dict[str, str], bench: Bench) -> None:
    bench.start(env)
    assert bench.seen(HERE[0]) == []


def test_a_process_that_only_names_a_launcher_is_not_a_job(bench: Bench) -> None:
    bench.start({}, sys.executable, str(bench.script), "", "torchrun", "msrun")
    assert bench.seen(HERE[0]) == []


def test_the_doctor_is_not_a_job(bench: Bench, tmp_path: Path) -> None:
    """It may be started inside a rank; so may its probe."""
    doctor = tmp_path / "doctor"
    shutil.copy(bench.script, doctor)
    bench.start(TORCH, sys.executable, str(doctor), "")
    assert bench.seen(HERE[0], {**TORCH, "NCCL_MARK": bench.mark}) == []


@each_shell
def test_what_the_doctor_starts_and_what_starts_it_are_not_jobs(shell: str, bench: Bench) -> None:
    """As in a job script: a launcher starts doctor, and doctor calls srun."""
    doctor, srun = bench.folder / "doctor", bench.folder / "srun"
    below = "import subprocess, sys; subprocess.run([sys.executable, *%r])\n"
    srun.write_text(bench.script.read_text())
    doctor.write_text(below % ([str(srun), ""],))
    bench.torchrun.write_text(below % (["-u", str(doctor), "preflight"],))
    bench.start(TORCH, sys.executable, str(bench.torchrun), "--nnodes=2", "train.py")
    assert bench.seen(shell) == []
    rank = bench.start(TORCH)
    assert [process.pid for process in bench.seen(shell)] == [rank.pid]


NEEDS_NAMESPACES = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a network namespace")


@NEEDS_NAMESPACES
@each_shell
def test_a_rank_in_another_network_namespace_is_marked(shell: str, bench: Bench) -> None:
    rank = (sys.executable, str(bench.script), "")
    inside = bench.start({**TORCH, "RANK": "1"}, "unshare", "-n", *rank)
    here = bench.start(TORCH, *rank)
    assert {each.pid: each.outside for each in bench.seen(shell)} == {inside.pid: True, here.pid: False}


@NEEDS_NAMESPACES
@pytest.mark.parametrize("enter", [(), ("unshare", "-n")], ids=["here", "in a container"])
def test_a_launch_is_held_against_the_addresses_of_its_own_namespace(
    enter: tuple[str, ...], bench: Bench
) -> None:
    """The address of a master in a container is not an address of the host, and need not be one. Processes of
    other tests are not seen.
    """
    alone = {**TORCH, "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "198.18.77.1"}
    apart = bench.start(alone, *ALONE, *enter, sys.executable, str(bench.script), "")
    (rank,) = psutil.Process(apart.pid).children()
    beside = ["nsenter", "-t", str(rank.pid), "--pid", "--mount", *DOCTOR]
    report = bench.folder / "report.json"
    words = ["check", "--local", "--launch", "live", "--only", "master-not-here", "--json", str(report)]
    ran = subprocess.run([*beside, *words], env=environment(), capture_output=True, text=True, timeout=60)
    assert report.exists(), ran.stderr
    found = [each for each in json.loads(report.read_text())["findings"] if bench.mark in json.dumps(each)]
    assert bool(found) is not bool(enter), found
    assert ("another network namespace" in " ".join(ran.stdout.split())) is bool(enter)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of somebody else")
@each_shell
def test_processes_of_others_are_not_read(shell: str, bench: Bench) -> None:
    bench.start(TORCH, "/bin/sh", "-c", f"echo up; exec sleep {SECONDS}", user=65534)
    assert bench.seen(shell) == []


def test_a_linker_that_complains_is_no_lack_of_grep() -> None:
    assert isinstance(PROCESSES_OF_JOBS.command, Run)
    command = ["sh", "-c", PROCESSES_OF_JOBS.command.text(Ask("a"))]
    env = {**os.environ, "LD_PRELOAD": "/none/lib.so"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("jobs\n")


def test_without_a_grep_that_reads_lines_that_end_with_nul(bench: Bench, tmp_path: Path) -> None:
    """Small builds of busybox have no `grep -z`: then it is unknown which jobs run."""
    grep = tmp_path / "small" / "grep"
    grep.parent.mkdir()
    grep.write_text('#!/bin/sh\necho "grep: unrecognized option: z" >&2\nexit 2\n')
    grep.chmod(0o755)
    bench.start(TORCH)
    heard = ask([PROCESSES_OF_JOBS], HERE[0], {"PATH": f"{grep.parent}:{os.environ['PATH']}"})
    value = Facts({"here": heard}).get("here", PROCESSES_OF_JOBS)
    assert isinstance(value, MissingFact)
    assert not value.absent


@each_shell
def test_reading_a_host_without_jobs_is_cheap(shell: str) -> None:
    """One grep over all processes, and nothing else."""
    began = _cpu_of_children()
    Facts({"here": ask([PROCESSES_OF_JOBS], shell)}).get("here", PROCESSES_OF_JOBS)
    assert _cpu_of_children() - began < 5


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


TABLE = {"RANK_TABLE_FILE": "./rank_table.json", "RANK_SIZE": "8"}


@each_shell
def test_ranks_that_were_told_their_device_alone(shell: str, bench: Bench) -> None:
    """As the loop of a guide starts them, each in a folder of its own, with a helper that inherits
    everything.
    """
    started = []
    for device in range(2):
        folder = bench.folder / f"device {device}"
        folder.mkdir()
        started.append(bench.start({**TABLE, "DEVICE_ID": str(device)}, folder=folder))
    helper = (sys.executable, "-c", f"print('up', flush=True); import time; time.sleep({SECONDS})")
    inherits = (
        sys.executable,
        "-c",
        f"import subprocess; subprocess.run({[*helper]!r})",
    )
    bench.start({**TABLE, "DEVICE_ID": "2", "RANK_TABLE_FILE": "/job/table.json"}, *inherits)
    found = {process.env["DEVICE_ID"]: process for process in bench.seen(shell)}
    assert [found[str(n)].pid for n in range(2)] == [process.pid for process in started]
    assert [found[str(n)].folder for n in range(2)] == [str(bench.folder / f"device {n}") for n in range(2)]
    assert found["2"].folder is None
    assert len(bench.seen(shell)) == 3


def three_devices(folder: Path) -> None:
    """The rank table of one server, in which device 0 is rank 2."""
    rows = [
        {"device_id": str(d), "device_ip": f"192.168.1.{d + 1}", "rank_id": str((d + 2) % 3)}
        for d in range(3)
    ]
    servers = [{"server_id": "192.0.2.7", "device": rows}]
    table = {"version": "1.0", "server_count": "1", "server_list": servers, "status": "completed"}
    (folder / "rank_table.json").write_text(json.dumps(table))


@pytest.mark.parametrize("devices", [(0, 1, 2), (1, 2), (0, 1, 5)])
def test_a_job_that_runs_is_held_against_the_table_that_it_reads(
    devices: tuple[int, ...], bench: Bench
) -> None:
    """Neither its table nor its ranks were named on the command line: its processes show both. A rank that
    does not run may have ended.
    """
    three_devices(bench.folder)
    for device in devices:
        folder = bench.folder / f"device{device}"
        folder.mkdir()
        bench.start({"RANK_TABLE_FILE": "../rank_table.json", "DEVICE_ID": str(device)}, folder=folder)
    report = bench.folder / "report.json"
    ran = doctor(
        *("check", "--local", "--launch", "live", "--only", "launch-*,master-not-here", "--json", str(report))
    )
    assert report.exists(), ran.stderr
    mine = [each for each in json.loads(report.read_text())["findings"] if bench.mark in json.dumps(each)]
    if 5 not in devices:
        assert mine == []
        return
    (finding,) = mine
    assert finding["check"] == "launch-ranks"
    assert "DEVICE_ID is not in the rank table" in finding["summary"]
    assert ran.returncode == 1


def test_who_holds_a_port_and_who_has_started_it() -> None:
    """A child of this process holds it twice (IPv4 and IPv6), like a rank that its launcher has started."""
    code = (
        "import socket, sys; s = socket.create_server(('127.0.0.1', 0)); port = s.getsockname()[1];"
        "six = socket.create_server(('::1', port), family=socket.AF_INET6);"
        "print(port, flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout
        port = int(child.stdout.readline())
        name = Path(f"/proc/{child.pid}/comm").read_text().strip()
        heard = ask([LISTENERS], HERE[0], ports=(port,))
        found = Facts({"here": heard}).get("here", LISTENERS)
        child.communicate()
    assert not isinstance(found, MissingFact)
    held = [(each.address, each.process, each.pids) for each in found if each.port == port]
    who = f"{name} (pid {child.pid})", (child.pid, os.getpid())
    assert held == [("127.0.0.1", *who), ("::1", *who)]


@pytest.mark.parametrize("whose", ["another program's", "a login over SSH", "whoever asks"])
def test_a_port_that_the_kernel_gave_to_a_connection(whose: str) -> None:
    """The kernel refuses a listener there. What doctor itself was given is free again when it ends."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server_port = server.getsockname()[1]
        code = (
            f"import socket, sys; s = socket.create_connection(('127.0.0.1', {server_port}));"
            "print(s.getsockname()[1], flush=True); sys.stdin.read()"
        )
        command = [sys.executable, "-c", code]
        with (
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child,
            socket.create_connection(("127.0.0.1", server_port)) as own,
        ):
            assert child.stdout
            theirs = int(child.stdout.readline())
            asked = own.getsockname()[1] if whose == "whoever asks" else theirs
            login = server_port if whose == "a login over SSH" else 22
            env = {"SSH_CONNECTION": f"127.0.0.1 {theirs} 127.0.0.1 {login}"}
            heard = ask([LISTENERS], HERE[0], env, ports=(asked,))
            with pytest.raises(OSError, match="in use"), socket.create_server(("127.0.0.1", asked)):
                pass
            child.communicate()
    found = Facts({"here": heard}).get("here", LISTENERS)
    assert not isinstance(found, MissingFact)
    assert [each.peer for each in found if each.port == server_port] == [""]
    held = [(each.pids[0], each.peer) for each in found if each.port == asked]
    peer = f"127.0.0.1:{server_port}"
    assert held == ([(child.pid, peer)] if whose == "another program's" else [])


@NEEDS_NAMESPACES
def test_a_port_that_is_bound_in_another_network_namespace_is_free_here() -> None:
    code = (
        "import socket, sys; s = socket.create_server(('0.0.0.0', 29517));"
        "print('up', flush=True); sys.stdin.read()"
    )
    command = ["unshare", "-n", sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as inside:
        assert inside.stdout
        assert inside.stdout.readline() == b"up\n"
        heard = ask([LISTENERS], HERE[0], ports=(29517,))
        found = Facts({"here": heard}).get("here", LISTENERS)
        assert not [each for each in found if each.port == 29517]
        inside.communicate()

"""Runs one job in the lab to its end, and stores its logs without the paths of this machine."""

import gzip
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil

from tests.lab import Host, Lab
from tests.lab.container import Memory
from tests.lab.controller import REPOSITORY
from tests.support.cases import from_cases
from tests.support.injob import TORCHRUN, Job, environment, start_mpirun
from tests.trials.logs import slurm
from tests.trials.logs.cases import PORT, Case

JOBS = REPOSITORY / "tests/samples/logs/jobs"
TRAINING = Path(__file__).with_name("train.py")
REDIRECTED = "/tmp/logs"
TIMEOUT = 25
PATIENCE = 200.0
ALONE = 75.0
"""Seconds that the other processes have after one has failed; then they are ended, as a person would do."""
LARGE = 100_000
LAYOUTS = from_cases(__file__, "LAYOUTS", dict[str, tuple[str, ...]])


def run(lab: Lab, case: Case, raw: Path) -> None:
    """Run the job to its end, with its logs in the folder `raw`; the fault is still there afterwards."""
    case.prepare(lab)
    hosts = list(lab)[: case.hosts]
    for host in hosts:
        host.dirty = True
    before = kernel_lines()[-1:]
    with ExitStack() as held:
        shares = {index: Memory(size, f"job-{index}") for index, size in case.memory.items()}
        for share in shares.values():
            held.callback(share.remove)
        job = {"mpirun": _mpirun, "srun": _srun}.get(case.layout, _torchruns)
        job(lab, hosts, case, raw, shares)
    if case.layout == "redirects":
        _fetch(hosts, raw)
    for index in case.memory:
        killed = [line for line in since(before) if "oom" in line or "out of memory" in line]
        (raw / f"{hosts[index].name}.dmesg").write_text("".join(f"{line}\n" for line in killed))


def kernel_lines() -> list[str]:
    return subprocess.run(["dmesg"], capture_output=True, text=True, check=False).stdout.splitlines()


def since(before: Sequence[str]) -> list[str]:
    """The kernel's messages after the line `before`."""
    lines = kernel_lines()
    return lines[max((at + 1 for at, line in enumerate(lines) if line in before), default=0) :]


def _to_its_end(job: Job, paths: Sequence[Path]) -> None:
    """Or until our patience ends; the outputs of its programs go to these files."""
    try:
        end = time.monotonic() + PATIENCE
        while any(each.poll() is None for each in job.starts) and time.monotonic() < end:
            if any(each.poll() for each in job.starts):
                end = min(end, time.monotonic() + ALONE)
            time.sleep(0.2)
        _end(job.starts)
        for file, path in zip(job.files, paths, strict=True):
            shutil.copyfile(file.name, path)
    finally:
        job.close()


def _end(started: Sequence[subprocess.Popen[bytes]]) -> None:
    """End what still runs, and wait a little for its last output."""
    for each in started:
        for child in psutil.Process(each.pid).children() if each.poll() is None else ():
            child.terminate()
    for each in started:
        with suppress(subprocess.TimeoutExpired):
            each.wait(10)


def _torchruns(_: Lab, hosts: Sequence[Host], case: Case, raw: Path, shares: Mapping[int, Memory]) -> None:
    job, paths = Job(), []
    for index, host in enumerate(hosts):
        if index in case.absent:
            continue
        master = case.master.get(index, hosts[0].address)
        meet = {
            "static": [
                *(f"--node-rank={index}", f"--master-addr={master}", f"--master-port={PORT}"),
                f"--rdzv-conf=timeout={TIMEOUT}",
            ],
            "c10d": [
                *("--rdzv-backend=c10d", f"--rdzv-endpoint={master}:{PORT}", "--rdzv-id=train"),
                f"--rdzv-conf=join_timeout={TIMEOUT},timeout={TIMEOUT}",
            ],
        }[case.rendezvous]
        words = [TORCHRUN, f"--nnodes={len(hosts)}", f"--nproc-per-node={case.ranks}", *meet]
        argv = host.enter(["env", "-C", "/", *words, *LAYOUTS[case.layout], str(TRAINING)])
        if index in shares:
            argv = ["sh", "-c", 'echo 0 >"$0"; exec "$@"', str(shares[index].folder / "cgroup.procs"), *argv]
        job.start(argv, environment(TIMEOUT=str(TIMEOUT), **case.env))
        paths.append(raw / f"{host.name}.log")
    _to_its_end(job, paths)


def _mpirun(lab: Lab, hosts: Sequence[Host], case: Case, raw: Path, _: Mapping[int, Memory]) -> None:
    env = environment(TIMEOUT=str(TIMEOUT), MASTER_ADDR=hosts[0].address, MASTER_PORT=str(PORT), **case.env)
    job = Job()
    start_mpirun(job, lab, hosts, case.ranks, [sys.executable, str(TRAINING)], env)
    _to_its_end(job, [raw / "mpirun.log"])


def _srun(lab: Lab, hosts: Sequence[Host], case: Case, raw: Path, _: Mapping[int, Memory]) -> None:
    slurm.run(lab, hosts, case, raw, TRAINING, TIMEOUT)


def _fetch(hosts: Sequence[Host], raw: Path) -> None:
    """torchrun's own folder on each host."""
    for host in hosts:
        theirs = Path(f"/proc/{host.pid}/root{REDIRECTED}")
        for run in sorted(theirs.glob("*")):
            shutil.copytree(run, raw / host.name, dirs_exist_ok=True)


# Remove the paths of this machine.

PLACES = (
    (re.escape(str(TRAINING.parent)), "/home/user/job"),
    (re.escape(sys.prefix), "/opt/venv"),
    (re.escape(os.path.realpath(sys.base_prefix)), "/opt/python"),
    (re.escape(str(REPOSITORY)), "/home/user/job"),
    (r"/tmp/cluster-doctor-lab-[\w-]+/home", "/home/user"),
    (r"/tmp/cluster-doctor-lab-[\w-]+/ssh_config", "/home/user/.ssh/config"),
    (r"/tmp/cluster-doctor-lab-[\w-]+", "/home/user/.ssh"),
    (r"/cluster-doctor-lab-\d+-", "/jobs/"),
    (rf"(?<![\w-]){re.escape(socket.gethostname())}(?![\w-])", "head"),
)


def rewritten(text: str) -> str:
    for pattern, place in PLACES:
        text = re.sub(pattern, place, text)
    return text


def write(raw: Path, folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
    for path in sorted(path for path in raw.rglob("*") if path.is_file()):
        target = folder / path.relative_to(raw)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = rewritten(path.read_bytes().decode("utf-8", "surrogateescape")).encode(
            "utf-8", "surrogateescape"
        )
        if len(text) > LARGE:
            target = target.with_name(f"{target.name}.gz")
            text = gzip.compress(text, mtime=0)
        target.write_bytes(text)

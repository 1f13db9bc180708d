"""Trials on several hosts: torchrun on each of them, and srun under Slurm."""

import os
import shlex
import signal
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lab import Host, Lab
from tests.lab.slurm import Slurm
from tests.lab.slurmjob import submit
from tests.support.command import relays
from tests.support.injob import Job, await_true, environment, torchrun_argv
from tests.support.paths import ROOT
from tests.trials.command.kinds import Draw
from tests.trials.command.seen import PATIENCE, Seen, left, parsed

JOB = str(ROOT / "tests/support/command_job.py")
FOLDER = "/tmp/train"
PIPE = "mkfifo pipe; cat pipe >out & exec >pipe;"


def give_logins(lab: Lab, host: Host) -> str:
    """Hosts have a /tmp of their own, so they cannot read the files of the lab."""
    place = lab.ssh_config.parent
    for name in ("ssh_config", "known_hosts", "id_ed25519"):
        text = (place / name).read_text().replace(str(place), "/root/lab")
        host.write(f"/root/lab/{name}", text, 0o600)
    return "/root/lab/ssh_config"


@contextmanager
def by_torchrun_on_hosts() -> Iterator[Callable[[Draw], Seen]]:
    """`doctor run` around torchrun on each of two hosts, with a rank each."""
    with Lab(2) as lab:
        yield lambda draw: _on_hosts(lab, draw)


def _on_hosts(lab: Lab, draw: Draw) -> Seen:
    mark, job, runs = f"mark-{uuid.uuid4()}", Job(), True
    env = environment(**draw.environment, MARK=mark, PYTHONUNBUFFERED="1")
    try:
        for number, host in enumerate(lab.hosts):
            config = give_logins(lab, host)
            host.do('rm -rf "$1"; mkdir -p "$1"', FOLDER)
            run = ["doctor", "run", "--ssh-config", config, "node[1-2]", "--no-preflight", *draw.kind.options]
            words = [*torchrun_argv(lab.hosts, 1, number, draw.port), JOB]
            line = shlex.join([sys.executable, "-m", *run, "--json", "run.json", "--", *words])
            there = ["sh", "-c", f"cd {FOLDER}; {PIPE if draw.by_pipe else 'exec >out;'} exec {line} 2>err"]
            if draw.kind.fault == "shm":
                host.shm("32m")
            job.start(host.enter(there), env)
        first = lab.hosts[0]
        _cut_off(draw, lab, lambda name: _read(first, name))
        if draw.kind.ends in ("interrupted", "kill", "network"):
            runs = _strike(draw, mark, lambda: _read(first, "out"))
        code = job.starts[0].wait(PATIENCE)
        if draw.kind.fault == "network":  # nobody can end what runs there
            job.starts[1].kill()
        job.starts[1].wait(PATIENCE)
        return _seen(draw, mark, code, runs, lambda name: _read(first, name))
    finally:
        job.close()
        lab.reset()


def _cut_off(draw: Draw, lab: Lab, read: Callable[[str], str]) -> None:
    """The other host loses its network, and doctor has to tell."""
    if draw.kind.fault == "network":
        await_true(lambda: "step 3 " in read("out"), lambda: read("err"))
        lab.hosts[1].link_down()
        await_true(lambda: _names_lost(read("err")), lambda: read("err"))


def _seen(draw: Draw, mark: str, code: int, runs: bool, read: Callable[[str], str]) -> Seen:
    """What is in the files of the job."""
    still = 0 if draw.kind.fault == "network" else left(mark)
    code = -(code - 128) if draw.kind.ends == "kill" and code > 128 else code
    return Seen(read("out"), code, parsed(read("run.json")), still, runs, read("err"))


def _strike(draw: Draw, mark: str, printed: Callable[[], str]) -> bool:
    """Send the signal of a trial to the doctor that leads; returns whether its command ran."""
    if draw.kind.ends != "kill":
        await_true(lambda: "step 3 " in printed(), printed)
    else:
        time.sleep(draw.moment)
    found = {pid: _words(pid) for pid in relays(mark)}
    doctors = [pid for pid, words in sorted(found.items()) if b"doctor" in words[:3] and b"run" in words[:4]]
    leads = doctors[:1]
    runs = any(
        b"command_job.py" in b" ".join(words) and b"run" not in words[:4] and _are_together(pid, leads)
        for pid, words in found.items()
    )
    for pid in leads:
        os.kill(pid, signal.SIGKILL if draw.kind.ends == "kill" else signal.SIGINT)
    if draw.kind.ends == "kill" and not runs:  # the other host would wait for the first one
        for pid in doctors[1:]:
            os.kill(pid, signal.SIGINT)
    return runs


def _are_together(pid: int, others: list[int]) -> bool:
    """Whether it runs on the host of these."""
    try:
        return {os.readlink(f"/proc/{each}/ns/pid") for each in others} == {
            os.readlink(f"/proc/{pid}/ns/pid")
        }
    except OSError:
        return False


def _names_lost(err: str) -> bool:
    """Whether it is told that the host without a network does not answer, and what for."""
    return "doctor: nothing moves" in err and "node2" in err.partition("doctor: nothing moves")[2]


def _words(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def _read(host: Host, name: str) -> str:
    return host.do('cat "$1" 2>/dev/null || true', f"{FOLDER}/{name}")


@contextmanager
def by_srun() -> Iterator[Callable[[Draw], Seen]]:
    """`doctor run` in a batch script of Slurm, around srun on two nodes."""
    with Lab(2) as lab:
        slurm = Slurm(lab).start()
        try:
            yield lambda draw: _by_srun(slurm, draw)
        finally:
            slurm.close()


def _by_srun(slurm: Slurm, draw: Draw) -> Seen:
    mark = f"mark-{uuid.uuid4()}"
    given = {**draw.environment, "MARK": mark, "PYTHONUNBUFFERED": "1"}
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in given.items())
    run = shlex.join(["doctor", "run", "--no-preflight", *draw.kind.options, "--json", "run.json"])
    master = f"env MASTER_ADDR={{master_addr}} MASTER_PORT={draw.port}"
    srun = f"{master} srun --ntasks-per-node=1 {sys.executable} {JOB}"
    out = PIPE if draw.by_pipe else "exec >out;"
    script = f"{exports}cd $JOB\n{out} {run} -- {srun} 2> err\necho $? > code\n"
    if draw.kind.ends == "kill":  # Slurm ends a job with its script
        script += f"while pgrep -f {shlex.quote(JOB)} >/dev/null; do sleep 0.2; done\n"
    if draw.kind.fault == "shm":
        for host in slurm.lab.hosts:
            host.shm("32m")
    limit = ["--time=1"] if draw.kind.ends == "limit" else []
    job, runs = submit(slurm, script, *limit, nodes=2), True
    try:
        _cut_off(draw, slurm.lab, job.file)
        if draw.kind.ends in ("interrupted", "network"):
            await_true(lambda: "step 3 " in job.file("out"), lambda: job.file("err"))
            job.cancel()
        elif draw.kind.ends == "kill":
            runs = _strike(draw, mark, lambda: job.file("out"))
        await_true(lambda: job.over or bool(job.file("code")), lambda: job.file("err"))
        said = job.file("code").strip()
        code = int(said) if said else 130 if draw.kind.ends in ("interrupted", "network", "limit") else -1
        return _seen(draw, mark, code, runs, job.file)
    finally:
        job.cancel()
        if any(host.dirty for host in slurm.lab.hosts):
            slurm.reset()

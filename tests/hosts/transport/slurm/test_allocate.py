"""`--transport srun --allocate` from a login node: the nodes are taken for the run, and given back."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.lab.slurm import Slurm
from tests.lab.slurmjob import environment, submit

DOCTOR = (sys.executable, "-m", "doctor")
ALLOCATE = ("--transport", "srun", "--allocate")


def doctor(slurm: Slurm, *words: str) -> subprocess.CompletedProcess[str]:
    return slurm.run([*DOCTOR, *words, *ALLOCATE], env=environment())


def jobs(slurm: Slurm) -> str:
    return slurm.run(["squeue", "--noheader", "--format=%j %T"]).stdout.strip()


def test_nodes_are_taken_and_given_back(slurm: Slurm) -> None:
    slurm.lab["node2"].shm("16m")
    done = doctor(slurm, "check", "node[1-2]", "--only", "shm-small", "--json", "-")
    assert done.returncode == 1, done.stdout + done.stderr
    said = json.loads(done.stdout)
    assert said["run"]["transport"] == "srun"
    (fault,) = (each for each in said["findings"] if each["status"] == "fail")
    assert fault["hosts"] == ["node2"]
    assert "--transport srun --allocate" in json.dumps(said), "the commands that are suggested take them, too"
    slurm.await_nodes()


def test_a_killed_run_gives_them_back(slurm: Slurm) -> None:
    words = [*DOCTOR, "smoke", "node[1-2]", "--steps", "1000", "--python", sys.executable, *ALLOCATE]
    running = subprocess.Popen(
        slurm.lab.enter(words),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**slurm.lab.environment(), "SLURM_CONF": slurm.config, **environment()},
        start_new_session=True,
    )
    until = time.monotonic() + 60
    while "doctor RUNNING" not in jobs(slurm):
        assert time.monotonic() < until
        assert running.poll() is None
        time.sleep(0.1)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    slurm.await_nodes()


@pytest.fixture
def unshared(slurm: Slurm) -> Iterator[None]:
    """A node has one job at a time, as it usually is."""
    change = ["scontrol", "update", "PartitionName=all"]
    slurm.run([*change, "OverSubscribe=EXCLUSIVE"])
    yield
    slurm.run([*change, "OverSubscribe=FORCE:16"])


@pytest.mark.usefixtures("unshared")
def test_nodes_that_slurm_does_not_give(slurm: Slurm) -> None:
    job = submit(slurm, "echo began\nsleep 100\n", nodes=1)
    try:
        job.await_word("began", 60)
        taken = doctor(slurm, "check", "node[1-4]")
        assert taken.returncode == 2
        assert "--allocate: Slurm does not give node[1-4] now: " in taken.stderr
        assert "squeue -w 'node[1-4]' shows who has them" in " ".join(taken.stderr.split())
        unknown = doctor(slurm, "check", "node[7-8]")
        assert unknown.returncode == 2
        assert "--allocate: Slurm does not give node[7-8] now: " in unknown.stderr
    finally:
        job.cancel()
    by_ssh = slurm.run([*DOCTOR, "check", "node1", "--allocate"], env=environment())
    assert by_ssh.returncode == 2
    assert "Type: --transport srun --allocate" in by_ssh.stderr


def test_a_node_that_is_down_is_left_out(slurm: Slurm) -> None:
    slurm.run(["scontrol", "update", "nodename=node2", "state=down", "reason=fan"])
    done = doctor(slurm, "check", "node[1-2]", "--only", "shm-small,host-unreachable", "--json", "-")
    assert done.returncode == 1, done.stdout + done.stderr
    said = json.loads(done.stdout)
    (fault,) = (each for each in said["findings"] if each["status"] == "fail")
    assert (fault["check"], fault["hosts"]) == ("host-unreachable", ["node2"])
    assert "Slurm reports the node as DOWN" in fault["summary"]

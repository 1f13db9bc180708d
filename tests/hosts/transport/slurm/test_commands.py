"""Every command over srun, with `--job` and with `--allocate`: what it finds does not depend on the way."""

import json
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.lab.slurm import Slurm
from tests.lab.slurmjob import Job, environment, submit
from tests.support.hang.ranks import JOB

pytestmark = pytest.mark.long
Run = Callable[..., "subprocess.CompletedProcess[str]"]
DOCTOR = (sys.executable, "-m", "doctor")
PYTHON = ("--python", sys.executable)
TRAINS = f"""
export FAULT=none FOLDER=$JOB MASTER_ADDR=$(hostname) MASTER_PORT=29657 OMP_NUM_THREADS=1
srun --overlap --ntasks-per-node=1 sh -c \
  'export RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS; {sys.executable} {JOB}'
"""
NO_ROOM = "RuntimeError: unable to write to file </torch_1_2_3>: No space left on device (28)\n"


@pytest.fixture
def job(slurm: Slurm) -> Iterator[Job]:
    """One that trains on node1 and node2."""
    job = submit(slurm, TRAINS, "--ntasks-per-node=1", nodes=2)
    end = time.monotonic() + 150
    while int(job.file("step.0") or 0) < 3:
        assert time.monotonic() < end, job.output
        assert not job.over, job.output
        time.sleep(0.2)
    yield job
    job.cancel()


@pytest.fixture(params=["srun", "--job", "--allocate", "--in-job"])
def run(request: pytest.FixtureRequest, slurm: Slurm, job: Job) -> Run:
    ways = {
        "srun": ("node[1-2]", "--transport", "srun"),
        "--job": ("--job", job.number),
        "--allocate": ("node[1-2]", "--transport", "srun", "--allocate"),
    }
    inside = {"SLURM_JOB_ID": job.number} if request.param == "srun" else None

    def by_slurm(*words: str) -> subprocess.CompletedProcess[str]:
        if request.param == "--in-job":
            step = ["srun", f"--jobid={job.number}", "--overlap", "--nodes=2", "--ntasks-per-node=1"]
            return slurm.run([*step, *DOCTOR, *words, "--in-job"], env=environment())
        at = words.index("--") if "--" in words else len(words)
        argv = [*DOCTOR, *words[:at], *ways[request.param], *words[at:]]
        return slurm.run(argv, env=environment(inside))

    return by_slurm


def said(done: "subprocess.CompletedProcess[str]") -> str:
    return " ".join((done.stdout + done.stderr).split())


def test_hosts_answer_and_train(run: Run) -> None:
    facts = run("facts")
    assert facts.returncode == 0, said(facts)
    assert "2 hosts reported" in facts.stdout
    for command in ("smoke", "preflight"):
        trained = run(command, "--steps", "4", *PYTHON)
        assert trained.returncode == 0, said(trained)
        assert re.search(r"[24] ranks \(2 hosts × [12]\)", trained.stdout)


@pytest.mark.parametrize("run", ["srun", "--allocate"], indirect=True)
def test_a_command_starts_behind_a_preflight(run: Run) -> None:
    """With `--job` it does not: it would not start on the nodes of the job."""
    begun = run("run", "--no-smoke", "--exam", "host", "--", "echo", "it has begun")
    assert begun.returncode == 0, said(begun)
    assert "it has begun" in begun.stdout


def test_a_job_that_moves_is_looked_at(run: Run) -> None:
    hang = run("hang", "--json", "-")
    assert hang.returncode == 0, said(hang)
    assert json.loads(hang.stdout)["hang"]["job"]["ranks"] == 2
    slow = run("slow", "--for", "4", "--json", "-")
    assert slow.returncode in (0, 3), said(slow)
    assert json.loads(slow.stdout)["slow"]["job"]["ranks"] == 2


def test_a_fault_is_found_in_logs_and_proved(run: Run, slurm: Slurm) -> None:
    node = slurm.lab["node2"]
    node.shm("16m")
    node.do(f"printf %s {shlex.quote(NO_ROOM)} >/tmp/train.log")
    found = run("logs", "--path", "/tmp/train.log")
    assert found.returncode == 1, said(found)
    assert "FAIL  node2: torch found no room in the shared memory of its host" in found.stdout
    (check,) = (line.strip() for line in found.stdout.splitlines() if "doctor check node2 --only" in line)
    proved = slurm.run(["sh", "-c", check], env=environment())
    assert proved.returncode == 1, said(proved)
    assert "FAIL  node2" in proved.stdout


def test_ranks_read_the_output_of_their_job(slurm: Slurm) -> None:
    job = submit(slurm, f"echo {shlex.quote(NO_ROOM.strip())}; echo begun; sleep 200", nodes=2)
    try:
        job.await_word("begun")
        step = ["srun", f"--jobid={job.number}", "--overlap", "--nodes=2", "--ntasks-per-node=1"]
        found = slurm.run([*step, *DOCTOR, "logs", "--in-job", "--json", "-"], env=environment())
        assert found.returncode == 1, said(found)
        assert "no room in the shared memory" in found.stdout
    finally:
        job.cancel()


@pytest.mark.parametrize("run", ["srun", "--job", "--allocate"], indirect=True)
def test_hosts_without_devices_have_no_rank_table(run: Run, tmp_path: Path) -> None:
    table = run("ranktable", "make", "--output", str(tmp_path / "table.json"))
    assert table.returncode == 1, said(table)
    assert "node[1-2] NPU 0  there is no NPU" in table.stdout + table.stderr


def test_a_log_is_proved_by_the_nodes_of_a_job(slurm: Slurm, job: Job, tmp_path: Path) -> None:
    slurm.lab["node2"].shm("16m")
    log = tmp_path / "train.log"
    log.write_text(NO_ROOM)
    argv = [*DOCTOR, "explain", str(log), "--check", "node[1-2]", "--transport", "srun"]
    proved = slurm.run(argv, env=environment({"SLURM_JOB_ID": job.number}))
    assert proved.returncode == 1, said(proved)
    assert "proved: shm-small fails on node2" in proved.stdout
    allocated = slurm.run([*argv, "--allocate"], env=environment())
    assert "proved: shm-small fails on node2" in allocated.stdout, said(allocated)

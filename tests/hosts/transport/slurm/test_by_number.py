"""`--job N` from outside the allocation: the nodes of the job are examined, and their logs are read."""

import json
import subprocess
import sys

from tests.lab.slurm import Slurm
from tests.lab.slurmjob import environment, submit

WAITS = "echo 'RuntimeError: the disk of the dataset is gone' >&2\necho began\nsleep 240\n"


def test_every_command_reaches_the_nodes_of_a_job_by_its_number(slurm: Slurm) -> None:
    def doctor(*words: str) -> subprocess.CompletedProcess[str]:
        return slurm.run([sys.executable, "-m", "doctor", *words], env=environment())

    job = submit(slurm, WAITS, nodes=2)
    try:
        job.await_word("began", 60)
        slurm.lab["node2"].shm("16m")
        found = doctor("check", "--job", job.number, "--only", "shm-small", "--json", "-")
        assert found.returncode == 1, found.stdout + found.stderr
        said = json.loads(found.stdout)
        assert [each["name"] for each in said["hosts"]] == ["node1", "node2"]
        (fault,) = (each for each in said["findings"] if each["status"] == "fail")
        assert (fault["check"], fault["hosts"]) == ("shm-small", ["node2"])
        left = doctor("check", "--job", job.number, "--exclude", "node2", "--only", "shm-small")
        assert left.returncode == 0, left.stdout + left.stderr
        facts = doctor("facts", "--job", job.number)
        assert facts.returncode == 0, facts.stdout + facts.stderr
        assert facts.stdout.startswith("node[1-2]  2 hosts reported"), facts.stdout
        logs = doctor("logs", "--job", job.number)
        assert "the disk of the dataset is gone" in " ".join(logs.stdout.split()), logs.stdout + logs.stderr
        trained = doctor("preflight", "--job", job.number, "--exclude", "node2", "--steps", "4")
        assert trained.returncode == 0, trained.stdout + trained.stderr
        assert "gloo" in trained.stdout
        twice = doctor("check", "node1", "--job", job.number)
        assert twice.returncode == 2
        assert "named in two ways: by --job and by name" in twice.stderr
    finally:
        job.cancel()
    job.ended()
    over = doctor("check", "--job", job.number)
    assert over.returncode == 2
    assert "it does not run now: CANCELLED" in over.stderr

"""`doctor logs` on the hosts of a Slurm job, through srun."""

import json
import sys

from tests.lab.slurm import Slurm


def test_logs_come_by_srun_too(slurm: Slurm) -> None:
    for host in slurm.lab:
        host.do("mkdir /tmp/job; yes said | head -n 100000 >/tmp/job/a.log")
    asked = ("logs", "--transport", "srun", "--path", "/tmp/job/*.log", "--json", "-")
    done = slurm.run(["salloc", "-Q", "-N4", sys.executable, "-m", "doctor", *asked])
    assert done.returncode == 3, done.stderr  # nothing in them is of a job
    assert len(json.loads(done.stdout)["logs"]["fetched_from"]) == 4

"""A step of a real Slurm that runs on the node while the exam looks at it."""

from __future__ import annotations

import sys
import time

from tests.lab.errors import LabError
from tests.lab.slurmjob import submit
from tests.trials.node.jobs import RANK
from tests.trials.node.situation import Group, Stage

SLURM = Group("Beside a step of Slurm")
PATIENCE = 90.0
STEP = "export FOLDER=$JOB/marks\nmkdir -p $FOLDER\nsrun --ntasks=2 {python} {rank} {does}\n"


def _step(name: str, does: str) -> None:
    def act(stage: Stage) -> None:
        script = STEP.format(python=sys.executable, rank=RANK, does=does)
        job = submit(stage.slurm(), script, "--nodelist=node1", "--ntasks=2", nodes=1)
        end = time.monotonic() + PATIENCE
        while not [*job.folder.glob("marks/there*")]:
            if time.monotonic() > end:
                raise LabError(f"the step did not start: {job.output}")
            time.sleep(0.1)

    SLURM.add(name, act)


_step("a step computes", "sleeps")
_step("rank 0 saves, the other has ended", "saves")
_step("a rank crashed, its children are left", "crashes")

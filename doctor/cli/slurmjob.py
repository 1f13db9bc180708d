"""`doctor hang --job ID`: the hosts are the nodes of a job of Slurm."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import replace

from doctor.hang.asked import HangWishes
from doctor.run.request import Request
from doctor.transport.slurm.squeue import slurm_job


def of_slurm(request: Request, wishes: HangWishes) -> tuple[Request, HangWishes, Mapping[str, str]]:
    """Hosts that are named stay; else those of the job; in its variables if srun is to reach them."""
    who = request.who
    if wishes.slurm_job is None or who.hosts or who.hostfile or who.local or who.rank_table:
        return request, wishes, os.environ
    job = slurm_job(wishes.slurm_job)
    if len(job.numbers) == 1:
        wishes = replace(wishes, slurm_job=job.numbers[0])
    environ = job.environ(os.environ)
    by_srun = request.way.transport in ("auto", "srun") and shutil.which("srun")
    if environ is not None and by_srun and who.inventory is None:
        return request, wishes, environ
    return replace(request, who=replace(who, hosts=job.nodes)), wishes, os.environ

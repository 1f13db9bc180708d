"""The nodes of the Slurm job that `--job` names, as the hosts of a request."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import replace

from doctor.errors import UsageError
from doctor.exam.request import Request

OF_THE_JOB = ("hang", "slow", "logs")
"""The commands that ask for the job itself, so that its hosts may be named as well."""


def of_slurm(request: Request) -> tuple[Request, Mapping[str, str], str | None]:
    """With the nodes of its Slurm job; the environment for srun is that of a step of it; its number."""
    who, way, number = request.who, request.way, request.who.slurm_job
    if number is None:
        return request, os.environ, None
    from doctor.transport.slurm.squeue import slurm_job

    if who.named or request.ready:
        if request.command in OF_THE_JOB:
            return replace(request, who=replace(who, slurm_job=None)), os.environ, number
        raise UsageError(
            "The hosts are named in two ways: by --job and by name.",
            "--job means all nodes of the job; --exclude leaves some out.",
        )
    job = slurm_job(number)
    number = job.numbers[0] if len(job.numbers) == 1 else number
    environ = job.environ(os.environ)
    by_srun = way.transport in ("auto", "srun") and not way.asks_for_ssh() and shutil.which("srun")
    if environ is not None and by_srun and who.inventory is None:
        return request, environ, number
    return replace(request, who=replace(who, hosts=job.nodes, slurm_job=None)), os.environ, number

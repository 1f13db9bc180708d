"""What the flags, and the files they name, say about the job; they override the inventory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from doctor.errors import UsageError
from doctor.job.launch import read_launch_files
from doctor.job.parallel import read_layout
from doctor.job.wishes import JobWishes
from doctor.model import Backend, Sourced
from doctor.run.request import JobFlags, Request


def apply_flags(request: Request, wishes: JobWishes) -> JobWishes:
    """Everything that was asked of the job; flags override files."""
    job = request.job
    wishes = replace(wishes, expect={**wishes.expect, **pairs(request.what.expect)})
    if job.backend != "auto":
        wishes = replace(wishes, backend=_backend(job))
    if job.master_port is not None:
        wishes = replace(wishes, master_port=Sourced(job.master_port, "--master-port"))
    if job.ranks_per_host is not None:
        wishes = replace(wishes, ranks_per_host=Sourced(job.ranks_per_host, "--ranks-per-host"))
    if job.launch:
        wishes = replace(wishes, launch=read_launch_files(job.launch))
    if job.plan:
        wishes = replace(wishes, layout=Sourced(read_layout(job.plan), "--plan"))
    return wishes


def pairs(texts: Sequence[str]) -> Mapping[str, str]:
    """What --expect says."""
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UsageError(f"--expect {text!r} is not KEY=VALUE.", "For example: --expect nofile=100000")
        found[key.strip()] = value.strip()
    return found


def _backend(job: JobFlags) -> Sourced[Backend]:
    names = [backend.value for backend in Backend]
    if job.backend not in names:
        raise UsageError(f"--backend: there is no {job.backend!r}; there are auto, {', '.join(names)}.")
    return Sourced(Backend(job.backend), "--backend")

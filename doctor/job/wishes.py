"""What is asked of the job by the command line, the inventory and the files that they name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from doctor.job.launch import Launch
from doctor.job.parallel import Layout
from doctor.model import Backend, Sourced, TableFile

SLURM = "slurm"
"""The source of what a Slurm allocation says."""


@dataclass(frozen=True, slots=True)
class JobWishes:
    """What is asked of the job; None is "not said". `env` is the inventory's `launch`."""

    backend: Sourced[Backend] | None = None
    head: Sourced[str] | None = None
    master_port: Sourced[int] | None = None
    ranks_per_host: Sourced[int] | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    expect: Mapping[str, str] = field(default_factory=dict)
    launch: Launch | None = None
    table: TableFile | None = None
    layout: Sourced[Layout] | None = None

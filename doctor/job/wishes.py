"""What the command line, the inventory and the files that they name request of the job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from doctor.job.launch.process_env import Launch
from doctor.job.parallel import Layout
from doctor.model import Backend, Framework, SourcedValue, TableFile

SLURM = "slurm"
"""The source of values from a Slurm allocation."""


@dataclass(frozen=True, slots=True)
class JobWishes:
    """What is requested of the job; None means "not given". `env` is the inventory's `launch`."""

    backend: SourcedValue[Backend] | None = None
    head: SourcedValue[str] | None = None
    master_port: SourcedValue[int] | None = None
    ranks_per_host: SourcedValue[int] | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    expect: Mapping[str, str] = field(default_factory=dict)
    launch: Launch | None = None
    table: TableFile | None = None
    layout: SourcedValue[Layout] | None = None
    framework: SourcedValue[Framework] | None = None
    live: bool = False
    """The job is the one that runs on the hosts: its processes say how it was started."""

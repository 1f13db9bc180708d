"""The options of `doctor hang`, and those that choose a job."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from doctor.text.option import any_option, live_option


@dataclass(frozen=True, slots=True, kw_only=True)
class JobWishes:
    """Which of the jobs that run on the hosts is meant, and what shows its stacks."""

    PANEL: ClassVar[str] = "The job"

    pid: int | None = any_option("--pid PID", "Only the job of this process.", min=1, max=2**22)
    master_port: int | None = any_option(
        "--master-port PORT", "Only the job that meets at this port.", min=1, max=65_535
    )
    slurm_job: str | None = any_option("--job ID", "Only this Slurm job; without HOSTS, look at its nodes.")
    user: str | None = any_option("--rank-user NAME", "Only the job of this user.")
    pyspy: tuple[Path, ...] = live_option(
        "--pyspy FILE", "py-spy, or its wheel, for hosts with another CPU.", default=()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HangWishes(JobWishes):
    apart: float = live_option("--for S", "Seconds between the two looks.", default=2.0, min=0.2, max=60)
    limit: float = any_option(
        "--limit S", "Seconds without progress that count as a hang.", default=60.0, min=1, max=86_400
    )
    watch: bool = live_option("--watch", "Look every 10 s, until the job hangs or ends.", default=False)
    check: bool = live_option("--check", "Run the check that the report suggests.", default=False)

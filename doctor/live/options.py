"""The options that choose one of the jobs that run on the hosts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from doctor.text.option import any_option, live_option

if TYPE_CHECKING:
    from doctor.live.evidence import JobChoice


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningJobWishes:
    """Which of the jobs that run on the hosts is meant, and what shows its stacks."""

    PANEL: ClassVar[str] = "The job"

    limit: float | None = any_option("--limit S", min=1, max=86_400)
    pid: int | None = any_option("--pid PID", min=1, max=2**22)
    master_port: int | None = any_option(
        "--master-port PORT", "Only the job that meets at this port.", min=1, max=65_535
    )
    slurm_job: str | None = any_option("--job ID", "Only this Slurm job; without HOSTS, look at its nodes.")
    user: str | None = any_option("--rank-user NAME")
    pyspy: tuple[Path, ...] = live_option("--pyspy FILE", default=())

    def choice(self, recorded: JobChoice | None = None) -> JobChoice:
        """What the judgement depends on. Options that were not given are those of the recording."""
        from msgspec.structs import replace  # it takes long, and help needs only the options

        from doctor.live.evidence import JobChoice

        limit = recorded.limit if self.limit is None and recorded else self.limit
        mine = JobChoice(
            limit=limit, pid=self.pid, master_port=self.master_port, slurm_job=self.slurm_job, user=self.user
        )
        if recorded is None or any(each is not None for each in mine.of_job):
            return mine
        return replace(recorded, limit=limit)

"""What a person asks of `doctor hang`, beside the hosts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class HangWishes:
    """`apart` and `limit` are seconds: between two looks, and of standing still that are a hang.
    The others choose a job.
    """

    apart: float
    limit: float
    pid: int | None
    master_port: int | None
    slurm_job: str | None = None
    user: str | None = None
    watch: bool = False
    """Look again and again."""
    check: bool = False
    """Examine at once what the judgement suggests."""
    pyspy: tuple[Path, ...] = ()
    """For hosts of another machine than this one: programs, or wheels with them."""

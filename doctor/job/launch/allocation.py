"""The nodes of a Slurm job, from its variables."""

from __future__ import annotations

from collections.abc import Mapping

from doctor.errors import UsageError
from doctor.text.nodeset import unfold


def allocated(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The nodes of the allocation, in Slurm's order."""
    return _nodes(environ.get("SLURM_JOB_NODELIST", "")) if environ.get("SLURM_JOB_ID") else ()


def first_node(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The first node of the step, or of the job if there is no step."""
    return _nodes(environ.get("SLURM_STEP_NODELIST") or environ.get("SLURM_JOB_NODELIST") or "")[:1]


def _nodes(text: str) -> tuple[str, ...]:
    try:
        return tuple(unfold(text)) if text else ()
    except UsageError:
        return ()

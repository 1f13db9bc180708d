"""The allocation of a scheduler: the nodes of a Slurm job, and scripts that run in one."""

import re
from collections.abc import Mapping
from functools import lru_cache

from doctor.errors import UsageError
from doctor.text.nodeset import unfold

_SCHEDULED = re.compile(
    r"^#\s?(?:SBATCH|PBS|BSUB|COBALT|MSUB|OAR|PJM|DSUB|\$ -|flux:)"
    r"|\b(?:SLURM|PBS|LSB|COBALT|OAR|PJM|FLUX)_[A-Z]|\bPE_HOSTFILE\b"
    r"|\b(?:sbatch|salloc|srun|[bqd]sub|msub|oarsub|kubectl|flux (?:run|batch|submit|alloc))\b",
    re.MULTILINE,
)


@lru_cache(8)
def is_scheduled(text: str) -> bool:
    """Whether a script has a word of a scheduler or of pods, which then give launchers their hosts."""
    return _SCHEDULED.search(text) is not None


def allocated(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The nodes of the allocation, in Slurm's order."""
    return nodes(environ.get("SLURM_JOB_NODELIST", "")) if environ.get("SLURM_JOB_ID") else ()


def first_node(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The first node of the step, or of the job if there is no step."""
    return nodes(environ.get("SLURM_STEP_NODELIST") or environ.get("SLURM_JOB_NODELIST") or "")[:1]


def nodes(text: str) -> tuple[str, ...]:
    """The names of a node set; none if it is not one."""
    try:
        return tuple(unfold(text)) if text else ()
    except UsageError:
        return ()

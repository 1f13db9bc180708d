"""Whether the NVIDIA GPUs of a host are free for the job."""

import re
from collections.abc import Iterator, Mapping, Sequence

from doctor.api import (
    EXPECT,
    NVIDIA,
    PLAN,
    Damage,
    Expect,
    JobPlan,
    Problem,
    Undecided,
    check,
    maybe,
)
from doctor.facts.gpus import Gpu, Gpus
from doctor.facts.nvidia.gpus import (
    GPU_HEALTH,
    GPU_PROCESSES,
    GPUS,
    GpuProcess,
    NvidiaHealth,
)
from doctor.rules.gpus import busy_gpus, cuda_gpus

SERVICES = re.compile(r"nvidia-cuda-mps-(server|control)|nv-hostengine|X(org|wayland)|gnome-shell|kwin_\w+")
"""Processes that use a GPU although no job runs there."""


@check(
    "gpu-busy",
    GPUS,
    maybe(GPU_PROCESSES),
    maybe(GPU_HEALTH),
    PLAN,
    EXPECT,
    damage=Damage.BLOCKED,
    remedy="free-gpu",
    vendor=NVIDIA,
)
def gpu_busy(
    gpus: Gpus,
    processes: tuple[GpuProcess, ...] | None,
    health: Mapping[int, NvidiaHealth] | None,
    plan: JobPlan,
    expect: Expect,
) -> Iterator[Problem]:
    """A GPU is in use by another job, or keeps the memory of one.

    Why it matters: two jobs on one GPU run out of its memory, or slow each other down; a leftover process
    holds the memory until it is ended.

    How it is known: the compute processes that nvidia-smi lists, and more memory in use than on an idle GPU
    (1024 MB; gpu_idle_mb); nvidia-smi hides the processes of other containers. GPUs in MIG mode are not
    judged.

    What to do: find the owners of these processes, and end the leftovers. If they are the job's own, run the
    examination before it starts.
    """
    if not (gpus.listed or gpus.silent or gpus.denied):
        raise Undecided("nvidia-smi lists no GPU")
    whole = [
        gpu for gpu in cuda_gpus(gpus, plan) if not (health and gpu.index in health and health[gpu.index].mig)
    ]
    own = {gpu.index: _on(gpu, processes or ()) for gpu in whole}
    used = {gpu.index: gpu.used_mb for gpu in whole}
    yield from busy_gpus(used, own, expect.gpu_idle_mb, "nvidia-smi --query-compute-apps")


def _on(gpu: Gpu, processes: Sequence[GpuProcess]) -> list[GpuProcess]:
    return [p for p in processes if p.uuid == gpu.uuid and not SERVICES.fullmatch(p.name)]

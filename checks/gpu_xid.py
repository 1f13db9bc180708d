"""Faults of GPUs, NVLinks and the PCIe bus that the NVIDIA driver wrote into the kernel log."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from doctor.api import (
    EXPECT,
    NVIDIA,
    PLAN,
    Damage,
    Expect,
    JobPlan,
    Problem,
    check,
    maybe,
)
from doctor.facts.gpus import Gpus
from doctor.facts.nvidia.gpus import GPU_HEALTH, GPUS, NvidiaHealth
from doctor.facts.nvidia.xid import xids
from doctor.facts.processes import KERNEL_LOG, KernelLine
from doctor.rules.gpus import cuda_gpus, logged
from doctor.rules.kernel_log import read_log


@check(
    "gpu-xid",
    KERNEL_LOG,
    maybe(GPUS),
    maybe(GPU_HEALTH),
    PLAN,
    EXPECT,
    damage=Damage.LOAD,
    remedy="look-into-gpu",
    vendor=NVIDIA,
)
def gpu_xid(
    lines: tuple[KernelLine, ...],
    gpus: Gpus | None,
    health: Mapping[int, NvidiaHealth] | None,
    plan: JobPlan,
    expect: Expect,
) -> Iterator[Problem]:
    """The kernel log of the last 24 hours holds Xids that accuse a GPU, an NVLink or the PCIe bus.

    Why it matters: an Xid is the driver's own record of a fault. After an Xid that requires a reset, the GPU
    fails or hangs until it is reset, even if everything else looks healthy.

    What to do: reset the GPU, or restart the host if the GPU has fallen off the bus; if the same Xid comes
    back, have the GPU examined. Xids that a program causes (13, 31, 43, 45 and others) are not counted. If
    the driver reports that no action is needed any more, the Xid is only a warning.
    """
    log = read_log(lines, expect)
    mine = cuda_gpus(gpus, plan) if gpus and not gpus.silent else ()
    fit = {
        gpu.bus
        for gpu in mine
        if health and gpu.index in health and health[gpu.index].action.lower() == "none"
    }
    found = (replace(xid, fatal=xid.fatal and xid.bus not in fit) for xid in xids(log.lines))
    yield from logged(log, found, gpus, mine, 0, "no such Xid")

"""Faults of GPUs, NVLinks and the PCIe bus that the NVIDIA driver wrote into the kernel log: its Xids.

NVIDIA's catalogue (https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html) says which of them
accuse the host. All others are left out: a program can cause them, or they mean nothing.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

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
from doctor.facts.gpus import Gpus, LoggedTrouble, bus_id
from doctor.facts.nvidia.gpus import GPU_HEALTH, GPUS, NvidiaHealth
from doctor.facts.processes import KERNEL_LOG, KernelLine
from doctor.rules.gpus import cuda_gpus, logged
from doctor.rules.kernel_log import read_log

LOST = 79
FATAL = {
    46: "the GPU stopped processing",
    48: "a memory error that could not be corrected (double-bit ECC)",
    62: "the GPU's microcontroller halted",
    64: "a bad memory row or page could not be retired",
    79: "the GPU has fallen off the bus",
    95: "a memory error that could not be contained",
    109: "a context switch timed out",
    110: "a security fault",
    119: "the GPU's firmware (GSP) did not answer",
    120: "the GPU's firmware (GSP) failed",
    136: "an NVLink could not be trained",
    140: "memory errors that could not be corrected",
    143: "the GPU could not be initialised",
    151: "the keys of the GPU could not be renewed",
    155: "an NVLink failed",
    156: "parts of the GPU were retired",
    158: "the GPU timed out for good",
    169: "a microcontroller of the GPU (SEC2) halted",
}
"""Errors whose immediate action is to reset the GPU or restart the machine."""
SERIOUS = {
    54: "auxiliary power is not connected",
    63: "a bad memory row or page was marked",
    74: "an NVLink error",
    92: "many memory errors were corrected",
    94: "a memory error was contained",
    121: "an error of the link between chips (C2C)",
    137: "an NVLink privilege error",
    157: "parts of the GPU could not be retired",
    144: "an NVLink error",
    145: "an NVLink error",
    146: "an NVLink error",
    147: "an NVLink error",
    148: "an NVLink error",
    149: "an NVLink error",
    150: "an NVLink error",
    159: "an error of the link between CPU and GPU (CHI)",
    167: "the PCIe link timed out",
    168: "part of the GPU's memory is lost",
    171: "a DRAM error that could not be corrected",
    172: "an SRAM error that could not be corrected",
}
"""Other faults of the hardware, after which the GPU continues."""
NVLINK5 = range(144, 151)
"""NVLink errors on Blackwell; the line itself says Fatal or Nonfatal."""


@dataclass(frozen=True, slots=True)
class Xid(LoggedTrouble):
    """One report that accuses the hardware."""

    number: int


_XID = re.compile(r"NVRM: Xid \(((?:PCI:)?[0-9A-Fa-f:.]{4,20})(?: [^)]{1,20})?\): (\d{1,5})\b")
"""`(PCI:0000:05:00): 79,`; in MIG mode `(PCI:0000:05:00 GPU-I:05): 94,`."""
_LOST = re.compile(r"NVRM: (?:The NVIDIA )?GPU ([0-9A-Fa-f:.]{4,20})\b.{0,80}fallen off the bus")


def xids(lines: Iterable[KernelLine]) -> tuple[Xid, ...]:
    """Those that accuse the hardware, in order. One line more says that a GPU fell off the bus."""
    found = [xid for line in lines if (xid := _xid(line))]
    lost = [xid for xid in found if xid.number == LOST]
    told = {xid.bus for xid in lost if _XID.search(xid.line.text)}
    remarks = [xid for xid in lost if not _XID.search(xid.line.text)]
    return tuple(xid for xid in found if xid.bus not in told or xid not in remarks)


def _xid(line: KernelLine) -> Xid | None:
    xid = _XID.search(line.text)
    lost = None if xid else _LOST.search(line.text)
    number = int(xid[2]) if xid else LOST if lost else 0
    meaning = FATAL.get(number) or SERIOUS.get(number)
    if meaning is None:
        return None
    where, told = xid or lost, xid[2] if xid else "79"
    fatal = number in FATAL or (number in NVLINK5 and re.search(r"\bFatal\b", line.text) is not None)
    return Xid(f"Xid {told}: {meaning}", fatal, bus_id(where[1]) if where else "", line, number)


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

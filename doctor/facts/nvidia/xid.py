"""Xids: errors that the NVIDIA driver writes to the kernel log when something goes wrong with a GPU.

NVIDIA's catalogue (https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html) says which of them
accuse the host. FATAL: the immediate action is to reset the GPU or restart the machine. SERIOUS: other faults
of the hardware, after which the GPU continues. All others are left out: a program can cause them, or they
mean nothing.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from doctor.facts.gpus import LoggedTrouble, bus_id
from doctor.facts.processes import KernelLine
from doctor.text.hostprogram import sections

LOST = 79
_TOLD = sections(__file__, "xid.txt")
FATAL, SERIOUS = ({int(number): told for number, told in _TOLD[kind].items()} for kind in _TOLD)
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
    where = xid or lost
    fatal = number in FATAL or (number in NVLINK5 and re.search(r"\bFatal\b", line.text) is not None)
    return Xid(f"Xid {number}: {meaning}", fatal, bus_id(where[1]) if where else "", line, number)

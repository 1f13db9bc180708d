"""What the amdgpu driver writes to the kernel log when a GPU is reset or reports hardware errors."""

import re
from collections.abc import Iterable

from doctor.facts.gpus import LoggedTrouble, bus_id
from doctor.facts.processes import KernelLine

_WHERE = re.compile(r"\bamdgpu (?P<bus>[0-9A-Fa-f:.]{4,20}):")
_KINDS = (
    (
        r"(?<!\d)[1-9]\d{0,17} (?:new )?uncorrectable hardware errors detected",
        "hardware errors that could not be corrected",
        True,
    ),
    (r"GPU reset(?:\(\d{1,9}\))? failed", "the GPU could not be reset", True),
    (r"GPU reset begin", "the GPU was reset", False),
)
"""Pattern, meaning, and whether it accuses the hardware: a program alone can cause a reset."""


def troubles(lines: Iterable[KernelLine]) -> tuple[LoggedTrouble, ...]:
    """The lines that accuse a GPU, in the order of the log."""
    return tuple(trouble for line in lines if (trouble := _trouble(line)))


def _trouble(line: KernelLine) -> LoggedTrouble | None:
    if "amdgpu" not in line.text:
        return None
    for pattern, meaning, fatal in _KINDS:
        if re.search(pattern, line.text):
            where = _WHERE.search(line.text)
            return LoggedTrouble(f"kernel log: {meaning}", fatal, bus_id(where["bus"]) if where else "", line)
    return None

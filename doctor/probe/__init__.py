"""The probe: facts -> one script for a host (`script`), and the host's answer -> captures (`read`)."""

from doctor.probe.answer import HostAnswer, read
from doctor.probe.ask import script, through
from doctor.probe.frames import DAMAGED, FILES, LAST, NOT_INSTALLED, NOT_STOPPED, THERE

__all__ = [
    "DAMAGED",
    "FILES",
    "LAST",
    "NOT_INSTALLED",
    "NOT_STOPPED",
    "THERE",
    "HostAnswer",
    "read",
    "script",
    "through",
]

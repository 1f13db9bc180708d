"""The probe: facts -> one script for a host (`script`), and the host's answer -> captures (`read`)."""

from doctor.probe.answer import HostAnswer, read
from doctor.probe.ask import script, through
from doctor.probe.frames import (
    ABSENT,
    DAMAGED,
    FILES,
    FRAME,
    LAST,
    NOT_STOPPED,
    THERE,
    TOKEN,
    new_token,
)

__all__ = [
    "ABSENT",
    "DAMAGED",
    "FILES",
    "FRAME",
    "LAST",
    "NOT_STOPPED",
    "THERE",
    "TOKEN",
    "HostAnswer",
    "new_token",
    "read",
    "script",
    "through",
]

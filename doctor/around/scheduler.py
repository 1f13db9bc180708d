"""Why the scheduler ended a job, if it did."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping

_STATES = {
    "CANCELLED": "it was cancelled",
    "TIMEOUT": "its time limit was reached",
    "PREEMPTED": "it was preempted",
    "NODE_FAIL": "a node failed",
    "DEADLINE": "its deadline was reached",
}
PATIENCE = 5
"""Seconds: a job that is cancelled is killed soon."""


def why_ended(environ: Mapping[str, str] = os.environ) -> str:
    """What Slurm says about the end of this job; empty if it says nothing."""
    job = environ.get("SLURM_JOB_ID", "")
    if not re.fullmatch(r"[0-9]{1,10}", job):
        return ""
    try:
        said = subprocess.run(
            ["scontrol", "-o", "show", "job", job],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
    state = re.search(r"\bJobState=([A-Z_]+)", said)
    return _STATES.get(state[1], "") if state else ""

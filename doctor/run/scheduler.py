"""Why Slurm ended a job, if it did."""

import os
import re
from collections.abc import Mapping

_STATES = {
    "CANCELLED": "it was cancelled",
    "TIMEOUT": "its time limit was reached",
    "PREEMPTED": "it was preempted",
    "NODE_FAIL": "a node failed",
    "DEADLINE": "its deadline was reached",
}
_REASONS = {
    "TimeLimit": _STATES["TIMEOUT"],
    "NodeDown": _STATES["NODE_FAIL"],
    "Preempted": _STATES["PREEMPTED"],
    "DeadLine": _STATES["DEADLINE"],
}
COMPLETING = "COMPLETING"
PATIENCE = 5
"""Seconds: a job that is cancelled is killed soon."""


def why_ended(environ: Mapping[str, str] = os.environ) -> str:
    """What Slurm says about the end of this job; empty if it did not end it."""
    job = environ.get("SLURM_JOB_ID", "")
    if not re.fullmatch(r"[0-9]{1,10}", job):
        return ""
    from doctor.transport.slurm.squeue import scontrol  # seldom needed

    return read_end(scontrol("job", job, environ, PATIENCE))


def read_end(said: str) -> str:
    """What a line of `scontrol show job` says about the end of a job whose script still runs."""
    state = re.search(r"\bJobState=([A-Z_]+)(?: Reason=(\w+))?", said)
    if state is None:
        return ""
    if state[1] == COMPLETING:
        return _REASONS.get(state[2] or "", "it was cancelled, or its hosts were taken")
    return _STATES.get(state[1], "")

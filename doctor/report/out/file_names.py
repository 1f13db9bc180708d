"""How the files of a run are called."""

import re
from collections.abc import Mapping


def job_id(environ: Mapping[str, str]) -> str:
    """The job id of the scheduler, fit for a file name; empty if there is none."""
    names = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID", "OAR_JOB_ID")
    said = next((environ[name] for name in names if environ.get(name)), "")
    return re.sub(r"[^A-Za-z0-9._-]", "_", said)[:40].strip(".-_")


def run_name(started: str, job: str, pid: int, *, interrupted: bool = False) -> str:
    """`doctor-20261120T101500Z-4711-1234`: the time, the job and the process."""
    when = "".join(filter(str.isalnum, started))
    parts = ("doctor", when, job, str(pid), "interrupted" if interrupted else "")
    return "-".join(part for part in parts if part)


def host_file(name: str) -> str:
    """The file of a host, whatever its name: `node1.json`; no two hosts share one, and none is hidden."""
    safe = re.sub(r"^\.|[^A-Za-z0-9._-]", lambda odd: "".join(f"%{b:02X}" for b in odd[0].encode()), name)
    return f"{safe}.json"

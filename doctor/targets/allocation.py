"""The hosts that a scheduler (Slurm, PBS or LSF) gave to this job, from the variables that it sets."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from doctor.devices import VENDORS
from doctor.errors import InputErrors, UsageError
from doctor.job.wishes import GPUS_OF_SLURM, SLURM, THIS_NODE
from doctor.model import Host, SourcedValue
from doctor.targets.hostfile import read_hostfile
from doctor.text.nodeset import unfold
from doctor.text.textfile import shown

NODE_FILES = ("PBS_NODEFILE", "LSB_DJOB_HOSTFILE")
"""Variables of PBS and LSF: each names a file with one line per slot."""
NAME_THEM = """\
Name them: HOSTS such as 'node[1-4]' or node1..4, -F HOSTFILE, --inventory FILE or --rank-table FILE.
A job of Slurm, PBS or LSF has them in SLURM_JOB_NODELIST, PBS_NODEFILE or LSB_DJOB_HOSTFILE.
--local is this machine alone."""


def allocation(environ: Mapping[str, str]) -> tuple[tuple[Host, ...], str] | None:
    """The hosts and their source. Raises UsageError if the source cannot be read."""
    nodelist = environ.get("SLURM_JOB_NODELIST", "").strip()
    if nodelist:
        try:
            return tuple(Host(name, name) for name in unfold(nodelist)), SLURM
        except UsageError as error:
            raise UsageError(f"SLURM_JOB_NODELIST: {error.message}", error.hint) from None
    for variable in NODE_FILES:
        if file := environ.get(variable, "").strip():
            try:
                listed = read_hostfile(Path(file))
            except InputErrors as error:
                raise UsageError(f"{variable}: {error.message}", NAME_THEM) from None
            # A slot may be a processor, so slots are not a number of ranks.
            return tuple(replace(host, ranks=None) for host in listed), variable
    return None


def is_allocated(environ: Mapping[str, str]) -> bool:
    """Whether this runs in a job of a scheduler, and what is started here is given its hosts by it."""
    return any(environ.get(name) for name in ("SLURM_JOB_NODELIST", *NODE_FILES))


def devices_of(environ: Mapping[str, str]) -> Mapping[str, str]:
    """What the scheduler says about the devices of the job."""
    names = (*GPUS_OF_SLURM, THIS_NODE, *(name for vendor in VENDORS for name in vendor.visible))
    return {name: environ[name] for name in names if name in environ}


def refuse_lost_nodes(environ: Mapping[str, str]) -> None:
    """Refuse to examine this machine in place of a Slurm job's nodes if their names are lost."""
    if environ.get("SLURM_JOB_ID") and environ.get("SLURM_JOB_NUM_NODES", environ.get("SLURM_NNODES")) != "1":
        raise UsageError(
            f"The nodes of Slurm job {shown(environ['SLURM_JOB_ID'])} are unknown: "
            "SLURM_JOB_NODELIST is not set (lost in sudo, or on the way into a container?).",
            NAME_THEM,
        )


def slurm_tasks(environ: Mapping[str, str]) -> SourcedValue[int] | None:
    """If all nodes have the same number, as in `8(x4)`. A single task may be a launcher of more ranks."""
    if not (environ.get("SLURM_NTASKS") or environ.get("SLURM_NTASKS_PER_NODE")):
        return None
    same = re.fullmatch(r"([1-9][0-9]{0,3})(?:\(x[0-9]{1,6}\))?", environ.get("SLURM_TASKS_PER_NODE", ""))
    return SourcedValue(int(same[1]), SLURM) if same and int(same[1]) > 1 else None

"""What the command line, the inventory and the files that they name request of the job."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from doctor.job.launch.process_env import Launch
from doctor.job.needs import FolderNeed
from doctor.job.parallel import Layout
from doctor.model import Backend, Framework, SourcedValue, TableFile, Waiver

SLURM = "slurm"
"""The source of values from a Slurm allocation."""
JOB_GPUS = "SLURM_JOB_GPUS"
"""Slurm's list of the GPUs on one node."""
UNEVEN = ("SLURM_GPUS", "SLURM_GPUS_PER_TASK", "SLURM_GPUS_PER_SOCKET")
"""If GPUs were requested in one of these ways, nodes may have different numbers of them."""
OF_ONE_NODE = ("SLURM_GPUS_ON_NODE", JOB_GPUS)
"""They speak of the node on which Slurm set them, which it calls THIS_NODE: others may have more or fewer."""
THIS_NODE = "SLURMD_NODENAME"
GPUS_OF_SLURM = ("SLURM_GPUS_PER_NODE", *UNEVEN, *OF_ONE_NODE)


@dataclass(frozen=True, slots=True)
class JobWishes:
    """What is requested of the job; None means "not given". `env` is the inventory's `launch`."""

    backend: SourcedValue[Backend] | None = None
    head: SourcedValue[str] | None = None
    master_port: SourcedValue[int] | None = None
    ranks_per_host: SourcedValue[int] | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    expect: Mapping[str, str] = field(default_factory=dict)
    launch: Launch | None = None
    table: TableFile | None = None
    needs: tuple[FolderNeed, ...] = ()
    layout: SourcedValue[Layout] | None = None
    framework: SourcedValue[Framework] | None = None
    live: bool = False
    """The job is the one that runs on the hosts: its processes say how it was started."""
    waivers: tuple[Waiver, ...] = ()
    """The faults that are known and accepted."""
    allocated: Mapping[str, str] | None = None
    """What the scheduler says about devices, if the hosts are those of its allocation."""

    @property
    def of_job(self) -> bool:
        """Whether they are about one job, and not only about hosts."""
        ranks = self.ranks_per_host
        typed = ranks is not None and ranks.source.startswith("--")
        return bool(self.launch or self.layout or self.table or typed) or self.allocated is not None

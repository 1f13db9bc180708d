"""How a job is started, by the commands and variables of its processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from doctor.launch.command import read_command
from doctor.launch.told import Told, Way


def way_of(told: Sequence[Told]) -> Way:
    """What most processes say; a launcher that was seen decides, since its ranks look like others'."""
    launchers = Counter(way for each in told if (way := launcher_of(each)) is not None)
    if launchers:
        return launchers.most_common(1)[0][0]
    return Counter(_way(each) for each in told).most_common(1)[0][0] if told else "env"


def launcher_of(told: Told) -> Way | None:
    """None for what is no launcher, such as a rank."""
    command = read_command(told.command)
    return command.way if command else None


def _way(told: Told) -> Way:
    env = told.env
    if env.keys() & {"MS_ROLE", "MS_SCHED_HOST"}:
        return "dynamic cluster"
    if env.keys() & {"TORCHELASTIC_RUN_ID", "GROUP_RANK"}:
        return "torchrun"
    if env.keys() & {"OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "PMI_RANK"}:
        return "mpirun"
    if env.keys() & {"RANK_TABLE_FILE", "MINDSPORE_HCCL_CONFIG_PATH", "RANK_ID"}:
        return "rank table"
    if "SLURM_PROCID" in env:
        return "slurm"
    if told.command and told.loop:
        return "shell loop"
    if told.command and "MASTER_ADDR" in env and "RANK" not in env:
        return "mp.spawn"  # one process that was told where to meet, and not who it is
    return "python" if told.command else "env"

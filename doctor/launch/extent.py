"""Over how many hosts a job goes, by its own account."""

from __future__ import annotations

from collections.abc import Sequence

from doctor.launch.seats import TORCH, is_standalone, launcher, local_world_of, nodes_of, world_of
from doctor.launch.told import Launch


def spans_hosts(launch: Launch, hosts: Sequence[str | None], most_on_a_host: int) -> bool:
    """Whether the job runs on several hosts, by its own account, else by that of the plan.

    `hosts` are those of its processes; `most_on_a_host` is how many ranks the plan puts on one host, 0 when
    the plan has one host only.
    """
    if len({host for host in hosts if host is not None}) > 1:
        return True
    for told in launch.told:
        nodes, world, local = nodes_of(told), world_of(told), local_world_of(told)
        command = launcher(told)
        if nodes is not None:
            return nodes[1] > 1 and not is_standalone(told)
        if command is not None and command.way in TORCH and "nnodes" not in command.options:
            return False
        if world and local and None not in (world.value, local.value):
            return (world.value or 0) > (local.value or 0)
    if launch.complete and None not in hosts and not any(map(launcher, launch.told)):
        worlds = {w.value for told in launch.told if (w := world_of(told)) is not None}
        return not (worlds and worlds <= {len(launch.told), len(launch.told) - 1})
    world = next((w for told in launch.told if (w := world_of(told)) is not None), None)
    if world is not None and world.value is not None and most_on_a_host:
        return world.value > most_on_a_host
    return most_on_a_host > 0


def is_larger(launch: Launch, hosts: int) -> bool:
    """Whether the job has more hosts than so many, by its own account."""
    for told in launch.told:
        nodes, world, local = nodes_of(told), world_of(told), local_world_of(told)
        if nodes is not None and nodes[1] > hosts:
            return True
        if world and local and (world.value or 0) > hosts * (local.value or world.value or 0):
            return True
    return False

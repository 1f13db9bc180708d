"""A process's place in its job, from its variables: its rank, the number of ranks, its node, the master.

Each launcher has its own rules, in its row of `doctor.job.launch.launchers`. If a launcher itself was given a
WORLD_SIZE, its meaning depends on the platform.
"""

import ipaddress
import re
from typing import Literal

from doctor.job.launch.command import read_command
from doctor.job.launch.launcher import LauncherAgent, LaunchNumber, Master, RankVariables, Role, nodes_in
from doctor.job.launch.launchers import LAUNCHERS, LOCAL_WORLDS, MEETINGS, NUMBERS, PORTS, ROLES
from doctor.job.launch.process_env import ProcessEnv

DEVICE = "DEVICE_ID"
"""A device of the host; with a rank table it gives the rank of a process that has no number."""


def launcher(told: ProcessEnv) -> LauncherAgent | None:
    """The launcher that a process runs; None for a process that starts no ranks."""
    command = read_command(told.command)
    if command is None or command.launcher is None:
        return None
    return LauncherAgent(command.launcher, command, told.env, frozenset(told.unknown))


def role_of(told: ProcessEnv) -> Role | Literal["agent"]:
    if launcher(told):
        return "agent"
    name = role_variable(told)
    return ROLES[name].get(told.env[name], "rank") if name else "rank"


def role_variable(told: ProcessEnv) -> str | None:
    """The variable that says whether it is a rank or a scheduler, if its launcher has one."""
    return next((name for name in ROLES if name in told.env), None)


def rank_of(told: ProcessEnv) -> LaunchNumber | None:
    if told.seat is not None:
        return None if told.seat.rank is None else LaunchNumber(DEVICE, str(told.seat.rank))
    variables = _variables(told)
    return _number(told, variables.rank) if variables else None


def world_of(told: ProcessEnv) -> LaunchNumber | None:
    """How many ranks there are, from the variables that go with its own rank."""
    if told.seat is not None:
        return LaunchNumber("ranks in the rank table", str(told.seat.world))
    agent, variables = launcher(told), _variables(told)
    if agent is not None:
        slots = () if told.hosts_change or agent.launcher.outer else told.hosts.values()
        filled = LaunchNumber("slots of the hosts", str(sum(slots))) if slots and all(slots) else None
        return agent.world or filled
    if variables is not None:
        return _number(told, variables.world[0])
    return next((size for each in NUMBERS.values() if (size := _number(told, each.world[0]))), None)


def local_world_of(told: ProcessEnv) -> LaunchNumber | None:
    """How many ranks run on its host."""
    agent = launcher(told)
    if agent is not None:
        return agent.local_world
    return next((size for name in LOCAL_WORLDS if (size := _number(told, name))), None)


def node_rank_of(told: ProcessEnv) -> LaunchNumber | None:
    """The node rank of an agent, or of a file that describes a node. A process with a local rank is one rank
    of a node: Lightning starts them without RANK.
    """
    agent = launcher(told)
    if agent is not None:
        return agent.node_rank
    return _number(told, "NODE_RANK") if rank_of(told) is None and "LOCAL_RANK" not in told.env else None


def nodes_of(told: ProcessEnv) -> tuple[int, int] | None:
    """The fewest and the most hosts."""
    agent = launcher(told)
    return agent.nodes if agent is not None else nodes_in(told.env.get("NNODES", ""))


def master_of(told: ProcessEnv) -> Master | None:
    """Where the ranks meet; None if not given, unknown, or not a host of the job (etcd)."""
    agent = launcher(told)
    if agent is not None and agent.launcher.master is not None:
        return agent.launcher.master(agent)
    for each in MEETINGS:
        if told.env.get(each.master) and each.counts_in(told.env):
            return Master(told.env[each.master], told.env.get(each.port, ""), each.master, each.meeting)
    return None


def port_of(told: ProcessEnv) -> LaunchNumber | None:
    """The port where the ranks meet, even if the address is unknown."""
    agent = launcher(told)
    if agent is not None and agent.launcher.master is not None:
        return agent.launcher.port(agent)
    return next((number for name in PORTS if (number := _number(told, name))), None)


def starts_its_ranks(told: ProcessEnv) -> bool:
    """Whether it is a program that starts its own ranks and was not given any other host."""
    numbers = (rank_of(told), world_of(told), nodes_of(told), node_rank_of(told))
    return launcher(told) is None and numbers == (None,) * 4 and role_variable(told) is None


def is_loopback_name(address: str) -> bool:
    """Whether every host takes this address for itself."""
    name = address.strip("[]").partition("%")[0].lower()
    if re.fullmatch(r"(?:ip6-)?(?:localhost|loopback)(?:\d)?(?:\.localdomain\d?)?", name):
        return True
    try:
        found = ipaddress.ip_address(name)
    except ValueError:
        return False
    return found.is_loopback or found.is_unspecified


def _variables(told: ProcessEnv) -> RankVariables | None:
    """The first variables that give a rank; if the process has a role, those of the launcher with roles."""
    if launcher(told) is not None:
        return None
    role = role_variable(told)
    if role is not None:
        return next(each.ranks[0] for each in LAUNCHERS if each.role == role)
    return next((each for each in NUMBERS.values() if each.number_in(told.env)), None)


def _number(told: ProcessEnv, name: str) -> LaunchNumber | None:
    return LaunchNumber(name, told.env[name]) if told.env.get(name) else None


def goes_by_node_rank(process: ProcessEnv) -> bool:
    agent = launcher(process)
    return node_rank_of(process) is not None if agent is None else agent.launcher.goes_by_node_rank(agent)

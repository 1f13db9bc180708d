"""What is known about a launch: how it starts its ranks, and how many on each host."""

import re
from collections import Counter

from doctor.job.launch.expand import unknown
from doctor.job.launch.launcher import LaunchNumber
from doctor.job.launch.process_env import Launch, ProcessEnv
from doctor.job.launch.rank_env import launcher, local_world_of, nodes_of, rank_of, role_of, world_of
from doctor.job.launch.ranks import MOST_RANKS, ranks_of
from doctor.job.launch.table_reference import told_tables
from doctor.job.launch.wrappers import SCRIPTS

_SOURCE = re.compile(r"(.*):(\d+)(?: \([^()]*\))?", re.DOTALL)


def file_of(process: ProcessEnv) -> str:
    """The file of --launch that a process comes from."""
    match = _SOURCE.fullmatch(process.source) if process.command else None
    return match[1] if match else process.source


def ranks_by_script(launch: Launch) -> dict[str, list[ProcessEnv]]:
    """The ranks of scripts that start several ranks one by one; empty if any script does not."""
    found: dict[str, list[ProcessEnv]] = {}
    for process in launch.told:
        if launch.live or not process.command or process.loop or launcher(process):
            return {}
        ranks = found.setdefault(file_of(process), [])
        ranks += [process] if role_of(process) == "rank" else []
    return found if all(len(ranks) > 1 for ranks in found.values()) else {}


def world_said(launch: Launch) -> LaunchNumber | None:
    """How many ranks there are, if all processes that say so agree.

    WORLD_SIZE alone does not count: for a program that starts its own ranks it may be the number of hosts.
    """
    by_hand = len(ranks_of(launch)) < 2
    said = [
        world
        for process in launch.told
        if (world := world_of(process)) is not None
        and not may_start_more(process)
        and not (by_hand and world.said == "WORLD_SIZE" and rank_of(process) is None and not process.behind)
    ]
    values = {world.value for world in said}
    (value,) = values if len(values) == 1 else (None,)
    return said[0] if value is not None and 0 < value <= MOST_RANKS else None


def ranks_of_a_host(launch: Launch, hosts: int) -> int | None:
    """How many ranks it starts on each host; None if that is unknown or differs between hosts."""
    told = [process for process in launch.told if not may_start_more(process)]
    started = {number.value for process in told if (number := local_world_of(process))}
    started |= {process.share for process in told if process.share is not None}
    started |= {number.value for process in told if (number := asked_for(process)) and not launch.live}
    if 0 in started:
        if hosts == 1:
            return None  # there may be others in the hostfile
        started.discard(0)
    if not started:
        on = [Counter(each.on for each in ranks) for ranks in ranks_by_script(launch).values()]
        known = not any(unknown(host) for hosts in on for host in hosts)
        started = {number for hosts in on if known for number in hosts.values()}
    if started:
        return next(iter(started)) if len(started) == 1 else None
    world = world_said(launch)
    if world is None or world.value is None or launch.live:
        return None
    nodes = {nodes_of(process) for process in launch.told} - {None}
    for fewest, most in nodes if len(nodes) == 1 else ():  # type: ignore[misc]
        hosts = most if fewest == most else hosts
    return world.value // hosts if hosts and world.value % hosts == 0 else None


def asked_for(process: ProcessEnv) -> LaunchNumber | None:
    """How many ranks a program is asked to start, if it is neither a launcher nor a rank."""
    number = LaunchNumber("NPROC_PER_NODE", process.env.get("NPROC_PER_NODE", ""))
    return number if number.value and launcher(process) is None and rank_of(process) is None else None


def may_start_more(process: ProcessEnv) -> bool:
    """Whether it starts one process on each host, which may start more: a script, or a program that is given
    several devices.
    """
    agent = launcher(process)
    if agent is None or not agent.launcher.outer:
        return False
    ranks, nodes, each, devices = (agent.command.option(n) for n in ("ranks", "nnodes", "each", "gpus"))
    alone = each == "1" or (ranks is not None and ranks == nodes)
    return alone and (agent.command.program.endswith(SCRIPTS) or devices not in (None, "1"))


def understood(launch: Launch) -> str:
    """How the ranks are started, in a few words; "" for a running job or if nothing is known."""
    if launch.live:
        return ""
    words = [f"{_kind(launch)} in {launch.name}"]
    by_script, world = ranks_by_script(launch), world_said(launch)
    counts = [len(ranks) for ranks in by_script.values()]
    number = sum(counts) if counts else world.value if world else None
    if counts and world and world.value != number:
        words.append(f"{number} ranks ({world.said}={world.text})")
    elif number is not None:
        words.append(f"{number} {'rank' if number == 1 else 'ranks'}")
    words += [f"rank table {text}" for text in dict.fromkeys(t.text for t in told_tables(launch.told))][:3]
    return ", ".join(words)


def _kind(launch: Launch) -> str:
    launchers = dict.fromkeys(agent.launcher.name for each in launch.told if (agent := launcher(each)))
    if launchers:
        return " and ".join(launchers)
    if not any(process.command for process in launch.told):
        if not all(process.whole for process in launch.told):
            return "variables"
        return "one env dump" if len(launch.told) == 1 else f"{len(launch.told)} env dumps"
    loop = any(process.loop or process.source.endswith(")") for process in launch.told)
    return "shell loop" if loop else "shell script"

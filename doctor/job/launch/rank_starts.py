"""What is known about a launch: how it starts its ranks, and how many on each host."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from doctor.job.launch.command import read_command
from doctor.job.launch.launcher import DEFAULT_OF, LauncherAgent, ToldNumber
from doctor.job.launch.mentioned import Mentioned
from doctor.job.launch.process_env import Launch, ProcessEnv
from doctor.job.launch.rank_env import (
    launcher,
    local_world_of,
    master_of,
    nodes_of,
    port_of,
    rank_of,
    role_of,
    world_of,
)
from doctor.job.launch.ranks import MOST_RANKS, ranks_of
from doctor.job.launch.told_table import is_by_device, told_tables

_SOURCE = re.compile(r"(.*):(\d+)(?: \([^()]*\))?", re.DOTALL)


def file_of(process: ProcessEnv) -> str:
    """The file of --launch that a process comes from."""
    match = _SOURCE.fullmatch(process.source) if process.command else None
    return match[1] if match else process.source


def files_of(launch: Launch) -> dict[str, list[ProcessEnv]]:
    """The scripts, each with the processes that it starts."""
    found: dict[str, list[ProcessEnv]] = {}
    for process in launch.told:
        if process.command and not launch.live:
            found.setdefault(file_of(process), []).append(process)
    return found


def ranks_by_script(launch: Launch) -> dict[str, list[ProcessEnv]]:
    """The ranks of scripts that start several ranks one by one; empty if any script does not."""
    scripts = files_of(launch)
    found = {
        name: [process for process in processes if role_of(process) == "rank"]
        for name, processes in scripts.items()
    }
    if not launch.told or len(launch.told) != sum(map(len, scripts.values())):
        return {}
    if any(process.loop or launcher(process) for process in launch.told):
        return {}
    return found if all(len(ranks) > 1 for ranks in found.values()) else {}


def world_said(launch: Launch) -> ToldNumber | None:
    """How many ranks there are, if all processes that say so agree.

    WORLD_SIZE alone does not count: for a program that starts its own ranks it may be the number of hosts.
    """
    by_hand = len(ranks_of(launch)) < 2
    said = [
        world
        for process in launch.told
        if (world := world_of(process)) is not None
        and not (by_hand and world.said == "WORLD_SIZE" and rank_of(process) is None)
    ]
    values = {world.value for world in said}
    (value,) = values if len(values) == 1 else (None,)
    return said[0] if value is not None and 0 < value <= MOST_RANKS else None


def ranks_of_a_host(launch: Launch, hosts: int) -> int | None:
    """How many ranks it starts on each host; None if that is unknown or differs between hosts."""
    started = {number.value for process in launch.told if (number := local_world_of(process))}
    started |= {process.share for process in launch.told if process.share is not None}
    started |= {
        number.value for process in launch.told if (number := _asked_for(process)) and not launch.live
    }
    if 0 in started:
        if hosts == 1:
            return None  # there may be others in the hostfile
        started.discard(0)
    if not started:
        started = {len(ranks) for ranks in ranks_by_script(launch).values()}
    if started:
        return next(iter(started)) if len(started) == 1 else None
    world = world_said(launch)
    if world is None or world.value is None or launch.live:
        return None
    nodes = {nodes_of(process) for process in launch.told} - {None}
    for fewest, most in nodes if len(nodes) == 1 else ():  # type: ignore[misc]
        hosts = most if fewest == most else hosts
    return world.value // hosts if hosts and world.value % hosts == 0 else None


def _asked_for(process: ProcessEnv) -> ToldNumber | None:
    """How many ranks a program is asked to start, if it is neither a launcher nor a rank."""
    number = ToldNumber("NPROC_PER_NODE", process.env.get("NPROC_PER_NODE", ""))
    return number if number.value and launcher(process) is None and rank_of(process) is None else None


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


def not_understood(launch: Launch) -> Iterator[str]:
    """The open questions about how many ranks it starts."""
    if launch.live:
        return
    yield from launch.unread
    yield from _mentioned(launch)
    yield from dict.fromkeys(text for process in launch.told for text in _open_questions(launch, process))


def _open_questions(launch: Launch, process: ProcessEnv) -> Iterator[str]:
    agent = launcher(process)
    if agent is not None:
        asked = agent.command.option("gpus")
        if process.share and asked == str(process.share) and not agent.command.option("each"):
            yield f"{agent.launcher.name} is taken to start a rank for each of the {asked} devices of a host"
        elif not process.share and world_of(process) is None and local_world_of(process) is None:
            yield (
                f"the number of ranks that {agent.launcher.name} starts is not in {file_of(process)}"
                f"{_unknown(agent, 'ranks', 'nnodes', 'nproc_per_node')}"
            )
        elif process.share == 0:
            yield f"how many ranks {agent.launcher.name} starts on each host is not in {file_of(process)}"
        met = _ports(launch) or port_mentioned(launch) or agent.standalone
        if not met and (words := _unknown(agent, *_MEETING)):
            yield f"where the ranks meet is not in {file_of(process)}{words}"
    elif not process.command and not process.whole:
        yield f"nothing in {process.source} is known to start ranks"
    elif process.command and process.loop:
        yield f"the number of turns of the loop around {process.source} is unknown"
    elif _asked_for(process):
        return
    elif process.command and world_said(launch) is None and len(ranks_of(launch)) < 2:
        command = read_command(process.command)
        program = command.program if command and command.program else process.command[-1]
        yield f"the number of ranks is in {program}"
    elif is_by_device(process):
        return  # the rank table has it
    elif not process.command and world_of(process) is None and local_world_of(process) is None:
        yield f"{process.source} does not say how many ranks there are"


_MEETING = ("master_addr", "master_port", "rdzv_endpoint")


def _unknown(agent: LauncherAgent, *names: str) -> str:
    """The options among these whose values are unknown, as written."""
    given = agent.command.options
    words = [f"{agent.spelled(name)} {given[name][:80]}" for name in names if _is_open(agent, name)]
    return f" ({', '.join(words)})" if words else ""


def _is_open(agent: LauncherAgent, name: str) -> bool:
    return bool(agent.command.options.get(name)) and agent.command.option(name) is None


def _ports(launch: Launch) -> set[str]:
    return {port.text for port in _told_ports(launch)}


def _mentioned(launch: Launch) -> Iterator[str]:
    """The ports and addresses in its text that no process is known to be given."""
    used, examined = _ports(launch), [each.text for each in port_mentioned(launch)][-1:]
    for each in launch.mentioned:
        where = _where(each)
        if each.kind != "port" or each.text in used:
            continue
        if examined == [each.text]:
            yield f"{where}; whether the job uses it is not known, and it is examined"
        elif all(port.said.startswith(DEFAULT_OF) for port in _told_ports(launch)):
            yield f"{where}, but is not known to be used: --master-port {each.text} examines it"
    for each in _address_mentioned(launch):
        yield f"{_where(each)}, but may not be used"


def _where(each: Mentioned) -> str:
    return f"{each.kind} {each.text} is in line {each.line} of {each.file} (`{each.words}`)"


def port_mentioned(launch: Launch) -> tuple[Mentioned, ...]:
    """The ports in its text, if it is not known where the ranks meet."""
    if _ports(launch) or any(agent.standalone for process in launch.told if (agent := launcher(process))):
        return ()
    return tuple(each for each in launch.mentioned if each.kind == "port")


def _told_ports(launch: Launch) -> list[ToldNumber]:
    return [port for process in launch.told if (port := port_of(process))]


def _address_mentioned(launch: Launch) -> tuple[Mentioned, ...]:
    if any(map(master_of, launch.told)):
        return ()
    return tuple(each for each in launch.mentioned if each.kind == "address")


def other_jobs(processes: Sequence[ProcessEnv]) -> Iterator[str]:
    """The other jobs that a script starts, in words."""
    for process in processes[:3]:
        agent, world, port = launcher(process), world_of(process), port_of(process)
        if agent is not None:
            ranks = f", {world.text} ranks" if world and world.value else ""
            met = f", port {port.text} ({port.said})" if port else ""
            yield f"another launch is not examined: {process.source}, {agent.launcher.name}{ranks}{met}"

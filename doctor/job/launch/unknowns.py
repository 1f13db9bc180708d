"""What is not known about a launch, and ports and addresses in its text that it may not use."""

from collections.abc import Iterator, Sequence

from doctor.job.launch.command import read_command
from doctor.job.launch.endpoint_mentions import EndpointMention
from doctor.job.launch.launcher import DEFAULT_OF, LauncherAgent, LaunchNumber
from doctor.job.launch.process_env import Launch, ProcessEnv
from doctor.job.launch.rank_env import launcher, local_world_of, master_of, port_of, world_of
from doctor.job.launch.rank_starts import asked_for, file_of, may_start_more, world_said
from doctor.job.launch.ranks import ranks_of
from doctor.job.launch.table_reference import is_by_device

_MEETING = ("master_addr", "master_port", "rdzv_endpoint")


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
        elif may_start_more(process):
            many = f"how many ranks {agent.command.program} starts there is not known"
            yield f"{agent.launcher.name} starts one process on each host: {many}"
        elif not process.share and world_of(process) is None and local_world_of(process) is None:
            yield (
                f"the number of ranks that {agent.launcher.name} starts is not in {file_of(process)}"
                f"{_unknown(agent, 'ranks', 'nnodes', 'nproc_per_node')}"
            )
        elif process.share == 0:
            yield f"how many ranks {agent.launcher.name} starts on each host is not in {file_of(process)}"
        met = _told_ports(launch) or port_mentioned(launch) or agent.standalone
        if not met and (words := _unknown(agent, *_MEETING)):
            yield f"where the ranks meet is not in {file_of(process)}{words}"
    elif not process.command and not process.whole:
        yield f"nothing in {process.source} is known to start ranks"
    elif process.command and process.loop:
        yield f"the number of turns of the loop around {process.source} is unknown"
    elif asked_for(process):
        return
    elif process.command and world_said(launch) is None and len(ranks_of(launch)) < 2:
        command = read_command(process.command)
        program = command.program if command and command.program else process.command[-1]
        yield f"the number of ranks is in {program}"
    elif is_by_device(process):
        return  # the rank table has it
    elif not process.command and world_of(process) is None and local_world_of(process) is None:
        yield f"{process.source} does not say how many ranks there are"


def _unknown(agent: LauncherAgent, *names: str) -> str:
    """The options among these whose values are unknown, as written."""
    given = agent.command.options
    unknown = [name for name in names if given.get(name) and agent.command.option(name) is None]
    words = [f"{agent.spelled(name)} {given[name][:80]}" for name in unknown]
    return f" ({', '.join(words)})" if words else ""


def _mentioned(launch: Launch) -> Iterator[str]:
    """The ports and addresses in its text that no process is known to be given."""
    ports = _told_ports(launch)
    used, examined = {port.text for port in ports}, [each.text for each in port_mentioned(launch)][-1:]
    for each in launch.mentioned:
        where = _where(each)
        if each.kind != "port" or each.text in used:
            continue
        if examined == [each.text]:
            yield f"{where}; whether the job uses it is not known, and it is examined"
        elif all(port.said.startswith(DEFAULT_OF) for port in ports):
            yield f"{where}, but is not known to be used: --master-port {each.text} examines it"
    for each in launch.mentioned:
        if each.kind == "address" and not any(map(master_of, launch.told)):
            yield f"{_where(each)}, but may not be used"


def _where(each: EndpointMention) -> str:
    if not each.line:
        return f"{each.kind} {each.text} is {each.words}"
    return f"{each.kind} {each.text} is in line {each.line} of {each.file} (`{each.words}`)"


def port_mentioned(launch: Launch) -> tuple[EndpointMention, ...]:
    """The ports in its text, if it is not known where the ranks meet."""
    if _told_ports(launch) or any(
        agent.standalone for process in launch.told if (agent := launcher(process))
    ):
        return ()
    return tuple(each for each in launch.mentioned if each.kind == "port")


def _told_ports(launch: Launch) -> list[LaunchNumber]:
    return [port for process in launch.told if (port := port_of(process))]


def other_jobs(processes: Sequence[ProcessEnv]) -> Iterator[str]:
    """The other jobs that a script starts, in words."""
    for process in processes[:3]:
        agent, world, port = launcher(process), world_of(process), port_of(process)
        if agent is not None:
            ranks = (
                f", {world.text} {'rank' if world.value == 1 else 'ranks'}" if world and world.value else ""
            )
            met = f", port {port.text} ({port.said})" if port else ""
            yield f"another launch is not examined: {process.source}, {agent.launcher.name}{ranks}{met}"

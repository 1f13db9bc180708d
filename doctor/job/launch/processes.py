"""Running processes -> the jobs that they belong to."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from doctor.job.launch import rank_env
from doctor.job.launch.command import read_command
from doctor.job.launch.launchers import LAUNCHERS, MEETINGS
from doctor.job.launch.process_env import Launch, ProcessEnv
from doctor.text.grouped import grouped


@dataclass(frozen=True, slots=True)
class JobProcess:
    """A process of a job, with those variables and words of its command line that matter to the job.

    `spawns`: it started ranks by multiprocessing, whose variables only they know. `folder` is its working
    directory, if it was given a relative path of a rank table. `outside`: it is in another network namespace,
    so the host's addresses and ports say nothing about it.
    """

    pid: int
    parent: int
    env: Mapping[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    spawns: bool = False
    folder: str | None = None
    outside: bool = False


Key = Callable[[ProcessEnv], Hashable]


def _values(*names: str) -> Key:
    return lambda told: tuple(told.env.get(name) for name in names)


def _host(told: ProcessEnv) -> Hashable:
    return told.host


_KEYS = (
    *(_values(each.step) for each in LAUNCHERS if each.step),
    *(_values(*names) for names in dict.fromkeys((each.master, each.port) for each in reversed(MEETINGS))),
    _values("RANK_TABLE_FILE"),
    _host,
)
"""What distinguishes two jobs of one program."""


def launch_of_processes(by_host: Mapping[str, Sequence[JobProcess]]) -> tuple[Launch, ...]:
    """One launch for each job that uses the network of its host.

    Jobs are distinguished by their program and by an id from a scheduler or torchrun. Beyond that, processes
    with different masters are separate jobs only if each of these is complete, or if they have the same ranks
    on one host: otherwise the difference is the fault to be found.
    """
    told = [
        ProcessEnv(f"process {p.pid}", host, p.env, p.command, pid=p.pid, parent=p.parent, folder=p.folder)
        for host, processes in by_host.items()
        for p in processes
        if not p.outside
    ]
    launches = [
        Launch(program, tuple(group), complete=False, live=True)
        for program, same in grouped((_program(each), each) for each in told).items()
        for by_id in _by_id(same)
        for group in _split(by_id)
    ]
    return tuple(sorted(launches, key=lambda launch: launch.name))


def _program(told: ProcessEnv) -> str:
    command = read_command(told.command)
    if command is not None and command.program:
        return command.program
    return told.command[0].rpartition("/")[2] if told.command else "?"


def _id(told: ProcessEnv) -> str | None:
    agent = rank_env.launcher(told)
    for each in LAUNCHERS:
        id = told.env.get(each.job_id) or (each.job_id_option and agent and agent.given(each.job_id_option))
        if id and id != each.no_job_id:
            return f"{each.name} {id}"
    return None


def _by_id(told: Sequence[ProcessEnv]) -> list[list[ProcessEnv]]:
    """The processes grouped by job id; those without an id join the only id, if there is just one."""
    groups = grouped((_id(each), each) for each in told)
    without: list[ProcessEnv] = []
    for each in groups.pop(None, []):
        started = [g for g in groups.values() if any((r.host, r.parent) == (each.host, each.pid) for r in g)]
        (started[0] if started else without).append(each)
    if without and len(groups) == 1:
        next(iter(groups.values())).extend(without)
    elif without:
        groups[None] = without
    return list(groups.values())


def _home(told: ProcessEnv) -> str | None:
    """The host of a job that by its own variables stays on one host, so that no other process can join it."""
    master = rank_env.master_of(told)
    if master is not None and not rank_env.is_loopback_name(master.address):
        return None
    nodes, world, local = rank_env.nodes_of(told), rank_env.world_of(told), rank_env.local_world_of(told)
    if rank_env.launcher(told) is not None and nodes is not None:
        return told.host if nodes == (1, 1) else None
    if master is not None and rank_env.starts_its_ranks(told):
        return told.host
    return told.host if world and local and world.value == local.value is not None else None


def _split(told: list[ProcessEnv]) -> Iterator[list[ProcessEnv]]:
    """The separate jobs among these processes."""
    ranks = [each for each in told if rank_env.role_of(each) != "agent"] or told
    agents = [] if ranks is told else [each for each in told if rank_env.role_of(each) == "agent"]
    for key in (_home, *_KEYS):
        parts = _apart(list(grouped((key(each), each) for each in ranks).values()), key)
        if len(parts) > 1:
            for part in parts:
                yield from _split([*part, *_agents_of(part, agents, parts)])
            return
    yield told


def _apart(parts: list[list[ProcessEnv]], key: Key) -> list[list[ProcessEnv]]:
    """The parts that are separate jobs, and everything else together."""
    if key is _home or all(map(_is_whole, parts)) or _side_by_side(parts):
        return parts
    whole = [part for part in parts if key is not _host and _is_whole(part)]
    rest = [each for part in parts if not any(part is one for one in whole) for each in part]
    alone = any(rank_env.role_of(each) == "rank" for each in rest)  # a scheduler is part of its workers' job
    return [*whole, rest] if alone else [rest + [each for part in whole for each in part]]


def _agents_of(
    part: list[ProcessEnv], agents: Sequence[ProcessEnv], parts: Sequence[list[ProcessEnv]]
) -> list[ProcessEnv]:
    """The agents that started the ranks of `part`, or that are the only ones on its hosts."""
    found = []
    for agent in agents:
        near = [[each for each in some if each.host == agent.host] for some in parts]
        started = [any(each.parent == agent.pid for each in some) for some in near]
        owns = started if any(started) else map(bool, near)
        owners = [some for some, own in zip(parts, owns, strict=True) if own]
        if len(owners) == 1 and owners[0] is part:
            found.append(agent)
    return found


def _is_whole(told: Sequence[ProcessEnv]) -> bool:
    """Whether every rank is there exactly once, according to the processes themselves."""
    ranks = [each for each in told if rank_env.role_of(each) == "rank"]
    worlds = {size.value for each in told if (size := rank_env.world_of(each)) is not None}
    numbers = {number.value for each in ranks if (number := rank_env.rank_of(each)) is not None}
    schedulers = sum(rank_env.role_of(each) == "scheduler" for each in told)
    if worlds != {len(ranks)}:
        return False
    if not numbers:
        return schedulers == 1
    return numbers == set(range(len(ranks))) and schedulers < 2


def _side_by_side(parts: Sequence[Sequence[ProcessEnv]]) -> bool:
    """Whether every two parts have the same rank on the same host, or at loopback addresses, which one job
    never has.
    """

    def place(rank: ProcessEnv) -> str | None:
        master = rank_env.master_of(rank)
        return "" if master is not None and rank_env.is_loopback_name(master.address) else rank.host

    ranks = ([each for each in part if rank_env.role_of(each) == "rank"] for part in parts)
    seats = [{(place(one), rank.value) for one in part if (rank := rank_env.rank_of(one))} for part in ranks]
    return all(one & other for i, one in enumerate(seats) for other in seats[:i])

"""Launchers without ranks: what their words and variables say about the job that they are to start."""

from dataclasses import dataclass

from doctor.job.launch.command import kept_words
from doctor.job.launch.launcher import Launcher, Master
from doctor.job.launch.process_env import ProcessEnv
from doctor.job.launch.rank_env import launcher, master_of
from doctor.live.evidence import JobMember
from doctor.text.nodeset import is_host, is_ip


@dataclass(frozen=True, slots=True)
class Starter:
    """A launcher without ranks."""

    member: JobMember
    launcher: Launcher
    program: str
    nodes: tuple[int, int]
    """The fewest and the most hosts."""
    node: int | None
    """Its number among the launchers; None if they are not numbered."""
    each: int | None
    """How many ranks each launcher starts."""
    master: Master

    @property
    def host(self) -> str:
        return self.member.host

    @property
    def name(self) -> str:
        return self.launcher.name


def starter_of(member: JobMember) -> Starter | None:
    """None if its ranks need no other host, or nothing says where they meet."""
    told = _told(member)
    agent, master = launcher(told), master_of(told)
    if agent is None or master is None or agent.nodes is None or agent.nodes[1] < 2 or not master.port:
        return None
    numbered = agent.launcher.goes_by_node_rank(agent)
    given = agent.node_rank
    node = given.value if given else (None if agent.unknown("node_rank") else 0)
    each = agent.local_world.value if agent.local_world else None
    return Starter(
        member, agent.launcher, agent.command.program, agent.nodes, node if numbered else None, each, master
    )


def called(member: JobMember) -> tuple[str, ...]:
    """The name that a launcher without ranks calls; empty if it calls an address, or is no such launcher."""
    master = master_of(_told(member)) if member.words else None
    return (master.address,) if master and is_host(master.address) and not is_ip(master.address) else ()


def _told(member: JobMember) -> ProcessEnv:
    return ProcessEnv(
        f"process {member.pid}", member.host, member.env, kept_words(member.words), pid=member.pid
    )

"""A launch as a whole: what all its processes agree on, and whether it spans hosts."""

from collections.abc import Mapping, Sequence

from doctor.job.launch.launcher import DEFAULT_OF
from doctor.job.launch.launchers import LAUNCHERS
from doctor.job.launch.process_env import Launch, ProcessEnv
from doctor.job.launch.rank_env import (
    is_loopback_name,
    launcher,
    local_world_of,
    master_of,
    nodes_of,
    port_of,
    starts_its_ranks,
    world_of,
)
from doctor.job.launch.ranks import is_share, ranks_of
from doctor.job.launch.variables import PER_PROCESS


def common_env(launch: Launch) -> Mapping[str, str]:
    """The variables on which the processes agree.

    An option of a launcher counts as the variable it stands for, unless it is a loopback address. What the
    ranks were given overrides what their launchers were given.
    """
    agents = [told for told in launch.told if launcher(told)]
    return {**_agreed_values(agents), **_agreed_values([told for told in launch.told if not launcher(told)])}


def _agreed_values(told: Sequence[ProcessEnv]) -> dict[str, str]:
    seen = [_env_with_options(each) for each in told]
    names = dict.fromkeys(name for said in seen for name in said if not PER_PROCESS.fullmatch(name))
    agreed = {}
    for name in names:
        values = {said[name] for said in seen if name in said}
        missing = any(name not in said and each.whole for said, each in zip(seen, told, strict=True))
        if len(values) == 1 and not missing:
            agreed[name] = values.pop()
    return agreed


def _env_with_options(told: ProcessEnv) -> dict[str, str]:
    agent, master, said = launcher(told), master_of(told), dict(told.env)
    if agent and master:
        address = agent.launcher.master_variables[0]
        if not is_loopback_name(master.address):
            said[address] = master.address
    met = port_of(told) if agent else None
    if agent and met and met.text not in ("", "0"):
        said[agent.launcher.master_variables[1]] = met.text
    return said


def default_of(launch: Launch, port: str) -> str:
    """Whose default this port is, if no process was given it; "" if one was."""
    said = [met.said for told in launch.told if (met := port_of(told)) and met.text == port]
    owners = [text.removeprefix(DEFAULT_OF) for text in said if text.startswith(DEFAULT_OF)]
    return f"{owners[0]}'s default" if owners and len(owners) == len(said) else ""


def spans_hosts(launch: Launch, hosts: Sequence[str | None], several: bool, most_on_a_host: int) -> bool:
    """Whether the job runs on several hosts, according to itself, otherwise according to the plan.

    `hosts` are those of its processes. The plan has `several` hosts or one, and at most `most_on_a_host`
    ranks on one host (0: unknown). If ranks are missing on the only host that has any, this does not prove
    that there are other hosts, unless the ranks present are exactly the share of one of several hosts. If the
    job runs, it proves nothing: they may have ended, or come later.
    """
    if len({host for host in hosts if host is not None}) > 1:
        return True
    if launch.live and _is_all_here(launch):
        return False
    said = [each for told in launch.told if (each := _has_more(told, 1)) is not None]
    if said:
        return said[0]
    if launch.live:
        return False
    here = None not in hosts
    world = next((w for told in launch.told if (w := world_of(told)) is not None), None)
    size = world.value if world is not None else None
    if launch.complete and here and not any(map(launcher, launch.told)):
        present = ranks_of(launch)
        if size is None or size in (len(launch.told), len(launch.told) - 1):
            return size is None
        fits = len(present) <= most_on_a_host  # else the plan knows less than what was seen
        return size > most_on_a_host if fits else several and is_share(present, size)
    return size > most_on_a_host if size is not None and several and most_on_a_host else several


def _is_all_here(launch: Launch) -> bool:
    """Whether all ranks run where they were seen, by the world size or because they start their own ranks."""
    ranks = ranks_of(launch)
    worlds = {world.value for told in ranks if (world := world_of(told)) is not None}
    return worlds == {len(ranks)} or all(map(starts_its_ranks, launch.told))


def port_is_drawn(launch: Launch, port: int) -> bool:
    """Whether the ranks meet at a port that was drawn at random, a new one at each start of the job.

    This happens with torchrun --standalone, or with a rendezvous, whose endpoint is not where the ranks meet.
    """
    agents = [agent for told in launch.told if (agent := launcher(told))]
    given = {master.port for told in launch.told if launcher(told) and (master := master_of(told))}
    by_launcher = any(agent.standalone for agent in agents) or "0" in given
    by_ranks = any(
        told.env.get(each.job_id, each.no_job_id) != each.no_job_id
        for told in launch.told
        for each in LAUNCHERS
        if each.no_job_id and launcher(told) is None
    )
    return str(port) not in given and (by_launcher or by_ranks)


def is_larger(launch: Launch, hosts: int) -> bool:
    """Whether the job has more than this number of hosts, according to itself."""
    return any(_has_more(told, hosts) for told in launch.told)


def _has_more(told: ProcessEnv, hosts: int) -> bool | None:
    """Whether the job has more hosts than that, according to one process; None if it does not say."""
    agent, nodes, world, local = launcher(told), nodes_of(told), world_of(told), local_world_of(told)
    if nodes is not None:
        return nodes[1] > hosts and not (agent and agent.standalone)
    if agent and "nnodes" in agent.launcher.options.defaults and "nnodes" not in agent.command.options:
        return False
    if not world or not local or None in (world.value, local.value):
        return None
    return (world.value or 0) > hosts * (local.value or 0)

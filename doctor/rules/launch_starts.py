"""How many ranks the scripts start, and how many they announce."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from doctor.job.launch.launcher import LaunchNumber
from doctor.job.launch.launchers import RANK_NAMES
from doctor.job.launch.process_env import ProcessEnv
from doctor.job.launch.rank_env import is_loopback_name, master_of, rank_of, role_variable
from doctor.job.launch.rank_starts import ranks_by_script, world_said
from doctor.job.plan import JobPlan
from doctor.model import Confidence, Problem, Severity
from doctor.rules.launch_names import LaunchNames


def wrong_world(names: LaunchNames, plan: JobPlan) -> Iterator[Problem | str]:
    """A problem if scripts start more or fewer ranks than they announce; a text if that is not certain."""
    scripts, world = ranks_by_script(names.launch), world_said(names.launch)
    if world is None or world.value is None:
        return
    in_table = sum(len(server.entries) for server in plan.servers)
    if in_table and plan.told_tables and in_table != world.value:
        yield _problem(
            names, names.launch.told, world, in_table, "the rank table has a different number of ranks"
        )
    behind = [process for process in names.launch.told if process.behind]
    if behind and world.value > 1:
        yield _problem(
            names,
            behind,
            world,
            1,
            "the ranks are started one after another: the first waits for the others until it gives up",
            "python … &  # and `wait` after the loop",
        )
        return
    ranks = [process for processes in scripts.values() for process in processes]
    started = len(ranks)
    if not ranks or started == world.value:
        return
    if started > world.value:
        # In this case numbered ranks are reported as out of range, and workers without numbers as a surplus.
        if not any(rank_of(process) or role_variable(process) for process in ranks):
            yield _problem(names, ranks, world, started, "more ranks are started than there should be")
    elif len(scripts) > 1 and len(scripts) >= len(plan.hosts):
        yield _fewer(names, ranks, world)
    elif len(plan.hosts) == 1 and len(scripts) == 1:
        here = _on_one_host(ranks, plan)
        if here is False:
            more = f"{world.value - started} of {world.value} ranks"
            yield f"{names.launch.name}: nothing starts {more}; they may belong to other hosts"
        else:
            yield _fewer(names, ranks, world, certain=here is True or world.value % started > 0)


def _on_one_host(ranks: list[ProcessEnv], plan: JobPlan) -> bool | None:
    """Whether the launch itself says that it runs on a single host; None if it does not say."""
    masters = [master for process in ranks if (master := master_of(process)) is not None]
    if not all(is_loopback_name(master.address) for master in masters) or len(plan.servers) > 1:
        return False
    if any(RANK_NAMES.intersection(process.unknown) for process in ranks):
        return False  # the environment decides which ranks are its own
    return True if masters or plan.servers else None


def _fewer(names: LaunchNames, ranks: list[ProcessEnv], world: LaunchNumber, certain: bool = True) -> Problem:
    """The problem; only a suspicion if another host may start the others."""
    summary = "fewer ranks are started than there should be: they wait for the others until they give up"
    problem = _problem(names, ranks, world, len(ranks), summary)
    if certain:
        return problem
    return replace(problem, severity=Severity.WARN, confidence=Confidence.SUSPECT)


def _problem(
    names: LaunchNames,
    processes: tuple[ProcessEnv, ...] | list[ProcessEnv],
    world: LaunchNumber,
    found: int,
    summary: str,
    command: str = "",
) -> Problem:
    saying = [process for process in processes if world.said in process.env] or list(processes)
    return names.problem(
        processes,
        world.said,
        summary,
        expected=f"{world.text} ranks ({world.said})",
        actual=f"{found} {'rank' if found == 1 else 'ranks'}",
        evidence=names.evidence(saying[:1], world.said),
        commands=(command or f"export {world.said}={found}",),
    )

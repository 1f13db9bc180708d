"""Ranks, node ranks and MindSpore's roles that are doubled, not set, or cannot be."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from doctor.job.launch.launcher import ToldNumber
from doctor.job.launch.launchers import NUMBERS
from doctor.job.launch.launchers.msrun import MSRUN
from doctor.job.launch.process_env import ProcessEnv
from doctor.job.launch.rank_env import (
    launcher,
    master_of,
    node_rank_of,
    nodes_of,
    rank_of,
    role_of,
    role_variable,
    world_of,
)
from doctor.job.launch.ranks import counted, may_be_inherited, ranks_of, world_of_launch
from doctor.model import Confidence, Evidence, Problem, Severity
from doctor.rules.launch_names import LaunchNames, remark


def impossible_ranks(crew: LaunchNames) -> Iterator[Problem]:
    """One problem for all that are wrong in the same way."""
    wrong: dict[tuple[str, str, str], list[ProcessEnv]] = {}
    for told in ranks_of(crew.launch):
        rank, world = rank_of(told), world_of(told)
        size = world.value if world else None
        if rank is None or (rank.value is None and NUMBERS[rank.said].may_be_name):
            continue  # MindSpore takes a name as well, and numbers its ranks by it
        if rank.value is None or rank.value < 0 or (size is not None and rank.value >= size):
            limit = f"0 to {size - 1} ({world.said}={size})" if size and world else "a number from 0 on"
            how = "is no number" if rank.value is None else "is out of range"
            wrong.setdefault((rank.said, how, limit), []).append(told)
    for (said, how, limit), told_so in wrong.items():
        texts = ", ".join(f"{said}={each.env[said][:100]} ({each.source})" for each in told_so[:4])
        more = f" and {len(told_so) - 4} more" if len(told_so) > 4 else ""
        yield Problem(
            f"{said} {how}",
            expected=limit,
            actual=texts + more,
            subject=crew.subject(said),
            hosts=crew.hosts(told_so),
            where=crew.places(told_so),
            evidence=crew.evidence(told_so, said),
            commands=(f"export {said}=$i  # $i: {limit}",),
        )


def doubled_ranks(crew: LaunchNames) -> Iterator[Problem]:
    """The same number twice; or none where the others have one."""
    present = ranks_of(crew.launch)
    yield from _twice_each(crew, [(rank_of(told), told) for told in present])
    without = [told for told in present if rank_of(told) is None]
    numbered = [number for told in present if (number := rank_of(told)) is not None]
    automatic = any(map(role_variable, present))
    if without and len(numbered) > len(without) and not automatic:
        name = numbered[0].said
        yield Problem(
            f"{name} is not set",
            expected=f"{name}, as for the other {len(numbered)} ranks",
            actual=f"not set for {crew.labels(without)}",
            subject=crew.subject(name),
            hosts=crew.hosts(without),
            where=crew.places(without),
            evidence=crew.evidence(without, name),
            commands=(f"export {name}=$i  # $i: another number for each rank",),
        )


def _twice_each(crew: LaunchNames, said: Sequence[tuple[ToldNumber | None, ProcessEnv]]) -> Iterator[Problem]:
    """One problem for all numbers that the same hosts have."""
    groups: dict[Hashable, list[tuple[ToldNumber, ProcessEnv]]] = {}
    for number, told in said:
        if number is not None:
            groups.setdefault(number.text if number.value is None else number.value, []).append(
                (number, told)
            )
    alike: dict[Hashable, list[list[tuple[ToldNumber, ProcessEnv]]]] = {}
    for value, same in groups.items():
        hosts = tuple(sorted(told.host or "" for _, told in same))
        key = (same[0][0].said, hosts if any(hosts) and isinstance(value, int) else value)
        if len(same) > 1:
            alike.setdefault(key, []).append(same)
    for some in alike.values():
        yield _twice(crew, [same[0][0] for same in some], [told for same in some for _, told in same])


def _twice(crew: LaunchNames, numbers: Sequence[ToldNumber], told: Sequence[ProcessEnv]) -> Problem:
    number, times = numbers[0], len(told) // len(numbers)
    what = f"{number.said}={number.text[:100]} is"
    if len(numbers) > 1:
        kind = number.said if number.said.startswith("--") else "rank"
        what = f"{counted((each.value or 0 for each in numbers), kind)} are"
    by_hand = may_be_inherited(crew.launch, told)
    where = [f"{each.source} on {each.host}" if each.host else each.source for each in told]
    more = f" and {len(told) - 6} more" if len(told) > 6 else ""
    return Problem(
        f"{what} given {times} times",
        expected="every number once",
        actual=f"{', '.join(where[:6])}{more}",
        subject=crew.subject(f"{number.said}={number.text[:100]}" if len(numbers) == 1 else number.said),
        hosts=crew.hosts(told),
        where=crew.places(told),
        severity=Severity.WARN if by_hand else None,
        confidence=Confidence.SUSPECT if by_hand else Confidence.CERTAIN,
        evidence=_said(crew, told, number),
        commands=(
            remark(f"start with another {number.said} on each host")
            if number.said.startswith("--")
            else f"export {number.said}=$i  # $i: another number for each",
        ),
    )


def _said(crew: LaunchNames, told: Sequence[ProcessEnv], number: ToldNumber) -> tuple[Evidence, ...]:
    if number.said in told[0].env:
        return crew.evidence(told, number.said)
    return tuple(Evidence(crew.label(each), " ".join(each.command)[:300]) for each in told[:6])


def node_ranks(crew: LaunchNames) -> Iterator[Problem]:
    """Each host its own, where the launcher goes by them."""
    fixed = [told for told in crew.launch.told if not told.loop and _goes_by_node_rank(told)]
    yield from _twice_each(crew, [(_node_rank(told), told) for told in fixed])
    for told in fixed:
        number, nodes = node_rank_of(told), nodes_of(told)
        size = nodes[1] if nodes else None
        if number is None or not size or (number.value is not None and 0 <= number.value < size):
            continue
        yield Problem(
            f"{number.said} is out of range",
            expected=f"0 to {size - 1} ({size} nodes)",
            actual=f"{number.said}={number.text[:100]}, for {told.source}",
            subject=crew.subject(number.said),
            hosts=crew.hosts([told]),
            where=crew.places([told]),
            evidence=_said(crew, [told], number),
            commands=(remark(f"give each host another {number.said} from 0 to {size - 1}"),),
        )


def no_node_rank(crew: LaunchNames) -> str:
    """Why one script cannot be right for every host: it makes each of them node 0."""
    told = crew.launch.told
    if crew.launch.live or len(told) != 1 or not _goes_by_node_rank(told[0]):
        return ""
    if node_rank_of(told[0]) is not None or _node_rank(told[0]) is None or told[0].loop:
        return ""
    return f"{told[0].source}: --node_rank is not given, which is right on one host only"


def _goes_by_node_rank(told: ProcessEnv) -> bool:
    agent = launcher(told)
    return node_rank_of(told) is not None if agent is None else agent.launcher.goes_by_node_rank(agent)


def _node_rank(told: ProcessEnv) -> ToldNumber | None:
    """Some launchers take a host for the first one where nothing is given."""
    agent, number = launcher(told), node_rank_of(told)
    first = agent.launcher.first_node if agent else ""
    if number is not None or agent is None or not first:
        return number
    unknown = agent.command.partly or agent.command.options.get("node_rank")
    return None if unknown else ToldNumber(agent.spelled("node_rank"), first)


def wrong_roles(crew: LaunchNames) -> Iterator[Problem]:
    launch = crew.launch
    wrong: dict[str, list[ProcessEnv]] = {}
    for told in launch.told:
        role = told.env.get("MS_ROLE")
        if role is not None and role not in MSRUN.roles:
            wrong.setdefault(role, []).append(told)
    for role, told_so in wrong.items():
        yield Problem(
            "MS_ROLE is none that MindSpore knows: it stops with `Role name is invalid`",
            expected=", ".join(MSRUN.roles),
            actual=f"MS_ROLE={role[:100] or 'nothing'}, for {crew.labels(told_so)}",
            subject=crew.subject("MS_ROLE"),
            hosts=crew.hosts(told_so),
            where=crew.places(told_so),
            evidence=crew.evidence(told_so, "MS_ROLE"),
            commands=("export MS_ROLE=MS_WORKER",),
        )
    schedulers = [told for told in launch.told if role_of(told) == "scheduler"]
    workers = [told for told in launch.told if role_of(told) == "rank" and told.env.get("MS_ROLE")]
    if len(schedulers) > 1:
        yield Problem(
            "there are several schedulers, and MindSpore takes exactly one",
            expected="one process with MS_ROLE=MS_SCHED",
            actual=f"{len(schedulers)}: {', '.join(crew.label(told) for told in schedulers[:6])}",
            subject=crew.subject("MS_ROLE"),
            hosts=crew.hosts(schedulers),
            where=crew.places(schedulers),
            evidence=crew.evidence(schedulers, "MS_ROLE"),
            commands=("export MS_ROLE=MS_WORKER",),
        )
    yield from _worker_number(crew, workers, bool(schedulers))


def _worker_number(crew: LaunchNames, workers: Sequence[ProcessEnv], scheduled: bool) -> Iterator[Problem]:
    """More workers than MS_WORKER_NUM says, or all of them and no scheduler."""
    world = world_of_launch(crew.launch)
    if world is None or world.value is None or any(told.loop for told in workers):
        return
    if len(workers) > world.value:
        yield Problem(
            f"there are more workers than {world.said} says: the surplus cannot register",
            expected=f"{world.value} ({world.said})",
            actual=f"{len(workers)} with MS_ROLE=MS_WORKER",
            subject=crew.subject(world.said),
            where=crew.places(workers),
            evidence=crew.evidence(workers[:2], world.said),
            commands=(f"export {world.said}={len(workers)}",),
        )
    elif crew.launch.live and len(workers) == world.value and not scheduled:
        master = master_of(workers[0])
        yield Problem(
            "all workers run and no scheduler does: they wait until they give up",
            expected="one process with MS_ROLE=MS_SCHED",
            actual="none among the processes that run",
            subject=crew.subject("MS_ROLE"),
            where=crew.places(workers),
            confidence=Confidence.STRONG,
            evidence=crew.evidence(workers[:2], master.said if master else "MS_ROLE"),
            commands=("export MS_ROLE=MS_SCHED",),
        )

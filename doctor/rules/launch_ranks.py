"""Ranks, node ranks and MindSpore's roles that are duplicated, unset or impossible."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from doctor.job.launch.launcher import LaunchNumber
from doctor.job.launch.launchers import NUMBERS
from doctor.job.launch.process_env import ProcessEnv
from doctor.job.launch.rank_env import (
    launcher,
    node_rank_of,
    nodes_of,
    rank_of,
    role_variable,
    world_of,
)
from doctor.job.launch.ranks import counted, may_be_inherited, ranks_of
from doctor.model import Confidence, Evidence, Problem, Severity
from doctor.rules.launch_names import LaunchNames, remark


def impossible_ranks(names: LaunchNames) -> Iterator[Problem]:
    """One problem for all ranks that are wrong in the same way."""
    wrong: dict[tuple[str, str, str], list[ProcessEnv]] = {}
    for process in ranks_of(names.launch):
        if process.seat is not None:
            continue  # its device may be wrong, but not its number
        rank, world = rank_of(process), world_of(process)
        size = world.value if world else None
        if rank is None or (rank.value is None and NUMBERS[rank.said].may_be_name):
            continue  # MindSpore also accepts a name and numbers its ranks by it
        if rank.value is None or rank.value < 0 or (size is not None and rank.value >= size):
            limit = f"0 to {size - 1} ({world.said}={size})" if size and world else "a number from 0 on"
            how = "is not a number" if rank.value is None else "is out of range"
            wrong.setdefault((rank.said, how, limit), []).append(process)
    for (said, how, limit), processes in wrong.items():
        texts = ", ".join(f"{said}={each.env[said][:100]} ({each.source})" for each in processes[:4])
        more = f" and {len(processes) - 4} more" if len(processes) > 4 else ""
        commands = (f"export {said}=$i  # $i: {limit}",)
        yield names.problem(processes, said, f"{said} {how}", limit, texts + more, commands=commands)


def doubled_ranks(names: LaunchNames) -> Iterator[Problem]:
    """A number that is given twice, or not at all although other ranks have one."""
    present = [process for process in ranks_of(names.launch) if process.seat is None]
    yield from _duplicates(names, [(rank_of(process), process) for process in present])
    without = [process for process in present if rank_of(process) is None]
    numbered = [number for process in present if (number := rank_of(process)) is not None]
    automatic = any(map(role_variable, present))
    if without and len(numbered) > len(without) and not automatic:
        name = numbered[0].said
        yield names.problem(
            without,
            name,
            f"{name} is not set",
            expected=f"{name}, as for the other {len(numbered)} ranks",
            actual=f"not set for {names.labels(without)}",
            commands=(f"export {name}=$i  # $i: a different number for each rank",),
        )


def _duplicates(
    names: LaunchNames, said: Sequence[tuple[LaunchNumber | None, ProcessEnv]]
) -> Iterator[Problem]:
    """One problem for all duplicate numbers that occur on the same hosts."""
    groups: dict[Hashable, list[tuple[LaunchNumber, ProcessEnv]]] = {}
    for number, process in said:
        if number is not None:
            groups.setdefault(number.text if number.value is None else number.value, []).append(
                (number, process)
            )
    alike: dict[Hashable, list[list[tuple[LaunchNumber, ProcessEnv]]]] = {}
    for value, same in groups.items():
        hosts = tuple(sorted(process.host or "" for _, process in same))
        key = (same[0][0].said, hosts if any(hosts) and isinstance(value, int) else value)
        if len(same) > 1:
            alike.setdefault(key, []).append(same)
    for some in alike.values():
        yield _duplicate_problem(
            names, [same[0][0] for same in some], [process for same in some for _, process in same]
        )


def _duplicate_problem(
    names: LaunchNames, numbers: Sequence[LaunchNumber], processes: Sequence[ProcessEnv]
) -> Problem:
    number, times = numbers[0], len(processes) // len(numbers)
    what = f"{number.said}={number.text[:100]} is"
    if len(numbers) > 1:
        kind = number.said if number.said.startswith("--") else "rank"
        what = f"{counted((each.value or 0 for each in numbers), kind)} are"
    by_hand = may_be_inherited(names.launch, processes)
    where = [f"{each.source} on {each.host}" if each.host else each.source for each in processes]
    more = f" and {len(processes) - 6} more" if len(processes) > 6 else ""
    return names.problem(
        processes,
        f"{number.said}={number.text[:100]}" if len(numbers) == 1 else number.said,
        f"{what} given {times} times",
        expected="every number once",
        actual=f"{', '.join(where[:6])}{more}",
        severity=Severity.WARN if by_hand else None,
        confidence=Confidence.SUSPECT if by_hand else Confidence.CERTAIN,
        evidence=_number_evidence(names, processes, number),
        commands=(
            remark(f"start with a different {number.said} on each host")
            if number.said.startswith("--")
            else f"export {number.said}=$i  # $i: a different number for each",
        ),
    )


def _number_evidence(
    names: LaunchNames, processes: Sequence[ProcessEnv], number: LaunchNumber
) -> tuple[Evidence, ...]:
    if number.said in processes[0].env:
        return names.evidence(processes, number.said)
    return tuple(Evidence(names.label(each), " ".join(each.command)[:300]) for each in processes[:6])


def node_ranks(names: LaunchNames) -> Iterator[Problem]:
    """Each host needs a node rank of its own if the launcher uses node ranks."""
    fixed = [process for process in names.launch.told if not process.loop and goes_by_node_rank(process)]
    yield from _duplicates(names, [(_node_rank(process), process) for process in fixed])
    for process in fixed:
        number, nodes = node_rank_of(process), nodes_of(process)
        size = nodes[1] if nodes else None
        if number is None or not size or (number.value is not None and 0 <= number.value < size):
            continue
        yield names.problem(
            [process],
            number.said,
            f"{number.said} is out of range",
            expected=f"0 to {size - 1} ({size} nodes)",
            actual=f"{number.said}={number.text[:100]}, for {process.source}",
            evidence=_number_evidence(names, [process], number),
            commands=(remark(f"give each host a different {number.said} from 0 to {size - 1}"),),
        )


def no_node_rank(names: LaunchNames) -> str:
    """Why a single script cannot be right for every host: it makes each of them node 0."""
    processes = names.launch.told
    if names.launch.live or len(processes) != 1 or not goes_by_node_rank(processes[0]):
        return ""
    if node_rank_of(processes[0]) is not None or _node_rank(processes[0]) is None or processes[0].loop:
        return ""
    return f"{processes[0].source}: --node_rank is not given, which is right on one host only"


def goes_by_node_rank(process: ProcessEnv) -> bool:
    agent = launcher(process)
    return node_rank_of(process) is not None if agent is None else agent.launcher.goes_by_node_rank(agent)


def _node_rank(process: ProcessEnv) -> LaunchNumber | None:
    """The node rank; if none is given, some launchers take the host for the first one."""
    agent, number = launcher(process), node_rank_of(process)
    first = agent.launcher.first_node if agent else ""
    if number is not None or agent is None or not first:
        return number
    return None if agent.unknown("node_rank") else LaunchNumber(agent.spelled("node_rank"), first)

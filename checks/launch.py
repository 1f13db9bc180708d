"""The launch: whether all ranks of a job get the same settings."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from shlex import quote

from doctor.api import (
    PLAN,
    UNDECIDED,
    Confidence,
    Damage,
    Evidence,
    JobPlan,
    Problem,
    Scope,
    Severity,
    check,
    grouped,
    maybe,
)
from doctor.facts.job import LAUNCHES, directory
from doctor.facts.network import ADDRESSES, NAMES, ResolvedNames
from doctor.facts.system import IDENTITY
from doctor.facts.tables import TABLE_FILES, HostFile
from doctor.job.launch.directory import Directory
from doctor.job.launch.launchers import LAUNCHERS, MASTERS
from doctor.job.launch.options import NOT_GIVEN
from doctor.job.launch.process_env import Launch, ProcessEnv
from doctor.job.launch.rank_env import (
    is_loopback_name,
    launcher,
    local_world_of,
    nodes_of,
    rank_of,
    role_of,
    world_of,
)
from doctor.job.launch.ranks import ranks_of
from doctor.job.launch.table_reference import TableReference, told_tables
from doctor.job.launch.variables import ONLY_PRESENCE, must_agree
from doctor.rules.launch_names import LaunchNames, remark

NOT_SET = "(not set)"
_OPTIONS = (each.options for each in LAUNCHERS if "master_addr" in each.options.values.values())
ADDRESSED = frozenset({*MASTERS, *(each.spelled("master_addr") for each in _OPTIONS), "CM_CHIEF_IP"})
CHIEF = ("CM_CHIEF_IP", "CM_CHIEF_PORT", "CM_WORKER_SIZE")


@check(
    "launch-inconsistent",
    LAUNCHES,
    PLAN,
    maybe(ADDRESSES),
    maybe(NAMES),
    maybe(IDENTITY),
    maybe(TABLE_FILES),
    damage=Damage.BLOCKED,
    scope=Scope.CLUSTER,
)
def launch_inconsistent(
    launches: tuple[Launch, ...],
    plan: JobPlan,
    addresses: Mapping[str, Mapping[str, tuple[str, ...]]],
    resolved: Mapping[str, ResolvedNames],
    identities: Mapping[str, str],
    files: Mapping[str, Mapping[str, HostFile]],
) -> Iterator[Problem]:
    """Ranks of one job get different settings.

    Why it matters: ranks with a different MASTER_ADDR, MASTER_PORT or WORLD_SIZE wait for a job that does not
    exist, and the others wait for them. A different HCCL_ or NCCL_ value gives a rank another timeout, buffer
    or algorithm than its peers: it gives up first, or the first collective hangs.

    How it is known: from the files of --launch and from the inventory; with --launch live from the variables
    and command lines of your own running processes. The value of most ranks counts as right; without a
    majority all are named. Values that may differ from host to host (interfaces, addresses, logging) are not
    compared.

    What to do: give every rank the value that the finding names, best by setting it in one place only.
    """
    book = directory(plan, addresses, resolved, identities)
    for launch in launches:
        names = LaunchNames(launch, book)
        agents = [process for process in launch.told if launcher(process)]
        ranks = [process for process in launch.told if not launcher(process)]
        yield from _different(names, [(process, shared_options(process)) for process in agents])
        yield from _different(names, [(process, _compared(process)) for process in ranks or agents])
        yield from _different_tables(names, files or {})
        yield from _contradictions(names)


def _compared(process: ProcessEnv) -> dict[str, str]:
    agent = launcher(process)
    ignored = agent.launcher.ignores if agent else ""
    return {
        name: "set" if ONLY_PRESENCE.fullmatch(name) else value
        for name, value in process.env.items()
        if must_agree(name) and not re.fullmatch(ignored, name)
    }


def _different(names: LaunchNames, said: Sequence[tuple[ProcessEnv, Mapping[str, str]]]) -> Iterator[Problem]:
    for name in sorted({name for _, values in said for name in values}):
        absent = NOT_GIVEN if name.startswith("--") else NOT_SET
        known = [
            (process, values.get(name, absent))
            for process, values in said
            if (name in values or (process.whole and not name.startswith("--")))
            and not (role_of(process) == "scheduler" and name.startswith(("HCCL_", "NCCL_")))
            and not (name in ADDRESSED and _means_itself(names, process, values.get(name, "")))
        ]
        same = _same(name, dict.fromkeys(value for _, value in known), names.directory)
        groups = grouped((same[value], process) for process, value in known)
        if len(groups) > 1:
            yield from _outliers(names, name, sorted(groups.items(), key=lambda item: -len(item[1])))


def _means_itself(names: LaunchNames, process: ProcessEnv, address: str) -> bool:
    """Whether the address is the process's own: with operators of pods, rank 0 may listen on loopback and the
    scheduler on any address of its host.
    """
    rank = rank_of(process)
    if role_of(process) == "scheduler" and names.host(process) in names.directory.owners(address):
        return True
    first = role_of(process) == "scheduler" or (rank is not None and rank.value == 0)
    return first and is_loopback_name(address)


def _same(name: str, values: Iterable[str], book: Directory) -> dict[str, str]:
    """Value -> the value that it counts as: the first of several spellings of one host's address."""
    same: dict[str, str] = {}
    first: dict[tuple[frozenset[str], str], str] = {}
    for value in values:
        host, port = (value, "") if name in ADDRESSED else value.rpartition(":")[::2]
        owners = book.owners(host) if name in ADDRESSED or name == "--rdzv_endpoint" else ()
        key = frozenset(owners)
        same[value] = first.setdefault((key, port), value) if len(key) == 1 else value
    return same


def _outliers(
    names: LaunchNames, name: str, groups: Sequence[tuple[str, list[ProcessEnv]]]
) -> Iterator[Problem]:
    """The problems of the groups with other values; `groups` begins with the largest."""
    (majority, most), (_, second), *_ = groups
    if len(most) == len(second):
        processes = [each for _, group in groups for each in group]
        yield names.problem(
            processes,
            name,
            f"{name} is not the same for all ranks{UNDECIDED}",
            expected="one value for all",
            actual="; ".join(f"{value}: {names.labels(group)}" for value, group in groups[:8]),
            confidence=Confidence.SUSPECT,
            evidence=_evidence(names, [group[0] for _, group in groups], name),
            commands=tuple(_typed(name, value) for value, _ in groups[:2]),
        )
        return
    for value, processes in groups[1:]:
        yield names.problem(
            processes,
            name,
            f"{name} differs from the other ranks'",
            expected=f"{majority}, as for {names.labels(most)}",
            actual=f"{value}, for {names.labels(processes)}",
            evidence=_evidence(names, [*processes[:3], *most[:1]], name),
            commands=(_typed(name, majority),),
        )


def _evidence(names: LaunchNames, processes: Sequence[ProcessEnv], name: str) -> tuple[Evidence, ...]:
    if not name.startswith("--"):
        return names.evidence(processes, name)
    return names.command_lines(processes)


def _typed(name: str, value: str) -> str:
    if name.startswith("--"):
        return remark(f"start without {name}" if value == NOT_GIVEN else f"start with {name}={quote(value)}")
    return f"unset {name}" if value == NOT_SET else f"export {name}={quote(value)}"


def _contradictions(names: LaunchNames) -> Iterator[Problem]:
    processes = names.launch.told
    both = [each for each in processes if "RANK_TABLE_FILE" in each.env and any(n in each.env for n in CHIEF)]
    if both:
        chief = [name for name in CHIEF if name in both[0].env]
        yield Problem(
            "a rank table and CM_ variables are given together, and HCCL takes only one of them",
            expected="RANK_TABLE_FILE, or the CM_ variables",
            actual=f"RANK_TABLE_FILE and {', '.join(chief)} for {names.labels(both)}",
            subject=names.subject("RANK_TABLE_FILE"),
            where=names.places(both),
            evidence=(*names.evidence(both[:1], "RANK_TABLE_FILE"), *names.evidence(both[:1], chief[0])),
            commands=(f"unset {' '.join(chief)}",),
        )
    yield from _workers(names)
    yield from _world(names)


def _workers(names: LaunchNames) -> Iterator[Problem]:
    """The ranks that the agents of all hosts start must add up to the expected number."""
    found = [(process, agent) for process in names.launch.told if (agent := launcher(process))]
    found = [
        (process, agent)
        for process, agent in found
        if agent.launcher.counts_twice and not agent.command.inside
    ]
    if not found:
        return
    agents, first = [process for process, _ in found], found[0][1]
    in_all, here = first.spelled("ranks"), first.spelled("nproc_per_node")
    wanted = {world.value for process in agents if (world := world_of(process)) is not None}
    each = [local.value for process in agents if (local := local_world_of(process)) is not None]
    if len(wanted) != 1 or len(each) != len(agents) or None in wanted or None in each:
        return
    total, sum_of_all = wanted.pop() or 0, sum(value or 0 for value in each)
    everywhere = len(agents) > 1 and len(agents) == len(names.directory.hosts)
    if sum_of_all > total or (sum_of_all < total and everywhere and not names.launch.live):
        how = f"more workers than {in_all} says: the surplus cannot register"
        if sum_of_all < total:
            how = f"fewer workers than {in_all} says: they wait for the others until they give up"
        yield Problem(
            f"{first.launcher.name} starts {how}",
            expected=f"{total} workers in all ({in_all})",
            actual=f"{sum_of_all}: {' + '.join(map(str, each))} ({here})",
            subject=names.subject(here),
            where=names.places(agents),
            evidence=names.command_lines(agents[:4]),
            commands=(remark(f"start with {in_all}={sum_of_all}"),),
        )


def _world(names: LaunchNames) -> Iterator[Problem]:
    """WORLD_SIZE compared with nodes times processes, unless a launcher gives each rank its own."""
    for process in names.launch.told:
        nodes, said = nodes_of(process), process.env.get("WORLD_SIZE", "")
        if nodes is None or nodes[0] != nodes[1] or not re.fullmatch(r"\d{1,9}", said):
            continue
        per_node = process.env.get("NPROC_PER_NODE") or process.env.get("LOCAL_WORLD_SIZE", "")
        agent = launcher(process)
        size = world_of(process) if agent and agent.launcher.outer else None
        if size is not None and size.value is not None:  # it gives its ranks no WORLD_SIZE
            product = size.value
        elif agent or not re.fullmatch(r"\d{1,6}", per_node):
            continue
        else:
            product = nodes[0] * int(per_node)
        if int(said) not in (product, nodes[0] if agent else product):
            yield Problem(
                "WORLD_SIZE is not the number of nodes times the processes on each",
                expected=f"{product}: {nodes[0]} × {product // (nodes[0] or 1)}",
                actual=f"WORLD_SIZE={said}",
                subject=names.subject("WORLD_SIZE"),
                hosts=() if agent else names.hosts([process]),
                where=names.places([process]),
                severity=Severity.WARN if agent else None,
                evidence=names.evidence([process], "WORLD_SIZE"),
                commands=(f"export WORLD_SIZE={product}",),
            )
            return


READ = "cksum "
"""Prefix of the description of a table that was read."""

Told = Sequence[tuple[ProcessEnv, TableReference]]


def _different_tables(names: LaunchNames, files: Mapping[str, Mapping[str, HostFile]]) -> Iterator[Problem]:
    """Ranks that were given a different file from most ranks, unless its content is the same."""
    told = [(process, table) for process in ranks_of(names.launch) for table in told_tables([process])[:1]]
    if len({table.path or table.text for _, table in told}) < 2:
        return

    def held_by(process: ProcessEnv, table: TableReference) -> str:
        if file := files.get(names.host(process) or "", {}).get(table.path):
            return file.trouble or f"{READ}{file.checksum}"
        return table.path or table.text

    groups = grouped((held_by(*each), each) for each in told)
    troubles = {file.trouble for found in files.values() for file in found.values() if file.trouble}
    lost = [key for key in groups if key in troubles]
    held = sorted((key for key in groups if key not in troubles), key=lambda key: -len(groups[key]))
    if not held:
        return  # no rank has a table: that is not a difference
    most = groups[held[0]]
    odd = held[1:] if 2 * len(most) > sum(len(groups[key]) for key in held) else []
    for key in (*lost, *odd):
        yield _other_table(names, groups[key], (key, held[0]), most)
    if held[1:] and not odd and all(key.startswith(READ) for key in held):
        yield _several_tables(names, {key: groups[key] for key in held})


def _several_tables(names: LaunchNames, groups: Mapping[str, Told]) -> Problem:
    """The problem if no table is held by more than half of the ranks."""
    processes = [process for group in groups.values() for process, _ in group]
    shown = [(group[0][1], [process for process, _ in group]) for group in groups.values()]
    return names.problem(
        processes,
        shown[0][0].said,
        f"the ranks were given different rank tables{UNDECIDED}",
        expected="one table for all ranks",
        actual="; ".join(f"{table.path}, for {names.labels(some)}" for table, some in shown[:6]),
        confidence=Confidence.SUSPECT,
        evidence=tuple(Evidence(table.path, key) for key, (table, _) in zip(groups, shown[:6], strict=False)),
        commands=(f"cksum {' '.join(quote(table.path) for table, _ in shown[:6])}",),
    )


def _other_table(
    names: LaunchNames,
    group: Told,
    held: tuple[str, str],
    most: Told,
) -> Problem:
    """`held` describes their file and that of most ranks: a checksum, why there is none, or a path."""
    processes, (mine, right) = [process for process, _ in group], held
    table, usual = group[0][1], most[0][1]
    read = mine.startswith(READ) and right.startswith(READ)
    return names.problem(
        processes,
        table.said,
        f"{table.said} names a different rank table than for the other ranks",
        expected=f"{usual.path or usual.text}, as for {names.labels([process for process, _ in most])}",
        actual=f"{table.path or table.text}, for {names.labels(processes)}"
        + ("" if mine.startswith(READ) or mine in (table.path, table.text) else f": {mine}"),
        confidence=Confidence.CERTAIN if read else Confidence.STRONG,
        evidence=(
            *names.evidence(processes[:3], table.said),
            Evidence(table.path or table.text, mine),
            Evidence(usual.path or usual.text, right),
        ),
        commands=(f"export {table.said}={quote(usual.path)}",)
        if usual.path
        else (remark(f"give every rank the same {table.said}"),),
    )


def shared_options(told: ProcessEnv) -> dict[str, str]:
    """The options that all agents of a job must share, as they are spelled; only those that are known."""
    agent = launcher(told)
    found: dict[str, str] = {}
    if agent is None:
        return found
    for name in agent.launcher.options.shared:
        value = agent.setting(name)
        if value is not None:
            found[agent.spelled(name)] = value.text
        elif not agent.command.partly and not agent.command.options.get(name):
            found[agent.spelled(name)] = NOT_GIVEN
    return found

"""The launch: whether every rank exists exactly once and has its own device."""

import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from shlex import quote
from typing import Any

from doctor.api import (
    PLAN,
    Backend,
    Confidence,
    Damage,
    Evidence,
    JobPlan,
    Place,
    Problem,
    Scope,
    Severity,
    Undecided,
    Vendor,
    check,
    fold,
    grouped,
    maybe,
    ranks_text,
)
from doctor.facts.job import LAUNCHES, PROCESSES_OF_JOBS, directory
from doctor.facts.network import ADDRESSES
from doctor.facts.system import DEVICES, IDENTITY, Devices
from doctor.facts.tables import RANK_TABLE, TABLE_FILES, HostFile, JobTable
from doctor.job.launch.common import spans_hosts
from doctor.job.launch.expand import unknown
from doctor.job.launch.launcher import LaunchNumber
from doctor.job.launch.launchers import MARKS, NUMBERS, RANK_NAMES
from doctor.job.launch.launchers.msrun import MSRUN
from doctor.job.launch.process_env import Launch, ProcessEnv
from doctor.job.launch.processes import JobProcess
from doctor.job.launch.rank_env import (
    DEVICE,
    goes_by_node_rank,
    is_loopback_name,
    launcher,
    local_world_of,
    master_of,
    node_rank_of,
    nodes_of,
    port_of,
    rank_of,
    role_of,
    role_variable,
    world_of,
)
from doctor.job.launch.rank_starts import file_of, ranks_by_script, world_said
from doctor.job.launch.ranks import counted, is_share, ranks_of, visible_devices, world_of_launch
from doctor.job.launch.table_reference import is_by_device
from doctor.model import MOST_PLACES
from doctor.rules.launch_names import LaunchNames, remark, some


@dataclass(frozen=True, slots=True)
class MissingRanks:
    """Ranks that no process was given. `ranks` is empty if they have no numbers; `hosts` should have them.

    If no table could be read that maps devices to ranks, `ranks` are devices: `by_device`.
    """

    count: int
    ranks: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    by_device: bool = False


@check(
    "launch-ranks",
    LAUNCHES,
    PLAN,
    maybe(PROCESSES_OF_JOBS),
    maybe(DEVICES),
    maybe(IDENTITY),
    maybe(RANK_TABLE),
    maybe(TABLE_FILES),
    maybe(ADDRESSES),
    damage=Damage.BLOCKED,
    scope=Scope.CLUSTER,
)
def launch_ranks(
    launches: tuple[Launch, ...],
    plan: JobPlan,
    jobs: Mapping[str, tuple[JobProcess, ...]],
    devices: Mapping[str, Devices],
    identities: Mapping[str, str],
    table: JobTable | None,
    _files: Mapping[str, Mapping[str, HostFile]],
    _addresses: Mapping[str, Mapping[str, tuple[str, ...]]],
) -> Iterator[Problem]:
    """A rank exists twice or not at all, or has an impossible number or device.

    Why it matters: with RANK, RANK_ID or MS_NODE_ID doubled or missing the job waits at its start until it
    times out, without a message about which rank is missing. Two ranks on one device end with EJ0001 or out
    of memory. MindSpore needs exactly one scheduler and as many workers as MS_WORKER_NUM; for any other
    MS_ROLE it prints `Role name is invalid`. Of two jobs whose masters have one port on one host, the second
    ends with EADDRINUSE.

    How it is known: from the files of --launch; with --launch live from your own running processes. A rank
    that does not run is not reported, because it may have ended or come later: `doctor hang` looks for it.

    What to do: look at what the finding names: a loop that does not export the rank, a node rank that was
    copied from the other host.
    """
    book = directory(plan, {}, {}, identities)
    silent = [host for host in plan.names if host not in jobs]
    entries = table.table.entries if table and table.table else ()
    in_table = {e.rank: e.device for e in entries if e.rank is not None and e.device is not None}
    doubts: list[str] = []
    for launch in launches:
        names = LaunchNames(launch, book)
        yield from _impossible_ranks(names)
        yield from _doubled_ranks(names)
        yield from _wrong_roles(names)
        yield from _node_ranks(names)
        yield from _at_one_port(names)
        yield from _not_numbers(names)
        yield from _not_in_table(names)
        yield from _another_size(names)
        yield from _on_devices(names, plan, devices)
        yield from _against_table(names, table.path if table else "", in_table)
        for found in _wrong_world(names, plan):
            if isinstance(found, Problem):
                yield found
            else:
                doubts.append(found)
        absent, doubt = missing_ranks(launch, plan.names)
        yield from (_missing(names, each) for each in absent)
        doubts += [text for text in (doubt, _no_node_rank(names)) if text]
        if silent and launch.live and not launch.met:
            doubts.append(f"{launch.name}: which ranks run on {fold(silent)} is not known")
    if doubts:
        raise Undecided("; ".join(doubts))


def _on_devices(names: LaunchNames, plan: JobPlan, devices: Mapping[str, Devices]) -> Iterator[Problem]:
    if plan.backend.value is Backend.GLOO:
        return
    yield from _shared_devices(names, plan)
    if plan.vendor:
        numbers = {host: frozenset(found.of(plan.vendor).numbers) for host, found in devices.items()}
        yield from _devices_beyond(names, numbers, plan.vendor)


def _shared_devices(names: LaunchNames, plan: JobPlan) -> Iterator[Problem]:
    """Two ranks of one host on one device. Ranks that see different devices may use the same number."""
    present = ranks_of(names.launch)
    hosts = [names.host(process) or process.host for process in present]
    several = spans_hosts(names.launch, hosts, plan.several_hosts, plan.most_on_a_host)
    groups: dict[Hashable, list[ProcessEnv]] = {}
    for process in present:
        host, device = names.host(process) or process.host or process.on or None, _device(process)
        seen = visible_devices(process)
        if device is None or device.value is None or (host is None and several) or unknown(process.on):
            continue
        if seen is not None and _listed(seen) is None:
            continue  # each rank may see another single device under this number
        groups.setdefault((host, process.env.get("GROUP_RANK"), device.said, device.value, seen), []).append(
            process
        )
    for same in groups.values():
        device = _device(same[0])
        if len(same) > 1 and device is not None and device.value is not None:
            yield names.problem(
                same,
                f"device {device.value}",
                f"{len(same)} ranks of one host take the same device",
                expected=f"a different {device.said} for each rank of a host",
                actual=f"{device.said}={device.text} for {names.labels(same)}",
                where=_places(names, same, device.value),
                evidence=names.evidence(same, device.said),
                commands=(f"export {device.said}=$i  # $i: a different number for each rank of the host",),
                **_doubt(names.launch, same),
            )


def _doubt(launch: Launch, processes: Sequence[ProcessEnv]) -> dict[str, Any]:
    """It is a suspicion if the processes may have inherited what they say."""
    inherited = may_be_inherited(launch, processes)
    return {"severity": Severity.WARN, "confidence": Confidence.SUSPECT} if inherited else {}


def _devices_beyond(
    names: LaunchNames, devices: Mapping[str, frozenset[int]], vendor: Vendor
) -> Iterator[Problem]:
    """Device numbers beyond the devices of the host; hosts without known devices are left out."""
    visible: dict[str | None, set[str | None]] = {}
    for process in ranks_of(names.launch):
        visible.setdefault(names.host(process), set()).add(visible_devices(process))
    beyond: dict[tuple[str, str, int, str | None], list[ProcessEnv]] = {}
    for process in ranks_of(names.launch):
        host, device = names.host(process), _device(process)
        if process.seat is not None and process.seat.rank is None:
            continue  # not in the table either
        if host is None or not devices.get(host) or device is None or device.value is None:
            continue
        (seen,) = visible[host] if len(visible[host]) == 1 else ("differs",)
        limit = len(devices[host]) if seen is None else _listed(seen)
        physical = device.said == "DEVICE_ID" and device.value in devices[host]
        if limit is not None and not physical and not 0 <= device.value < limit:
            beyond.setdefault((host, device.said, limit, seen), []).append(process)
    for (host, said, limit, seen), processes in beyond.items():
        places = (_places(names, [each], int(each.env[said])) for each in processes)
        yield names.problem(
            processes,
            said,
            f"{said} is beyond the devices of the host",
            expected=f"0 to {limit - 1}: {limit} devices" + (f" are visible ({seen})" if seen else ""),
            actual=some([f"{said}={each.env[said]} ({names.label(each)})" for each in processes]),
            where=tuple(place for each in places for place in each),
            commands=(f"ssh {quote(host)} 'ls -d {vendor.files}[0-9]*'",),
        )


def _against_table(names: LaunchNames, path: str, devices_by_rank: Mapping[int, int]) -> Iterator[Problem]:
    """DEVICE_ID and the rank table must name the same device."""
    for told, rank, device, expected in device_conflicts(names.launch, devices_by_rank):
        yield names.problem(
            [told],
            f"rank {rank}",
            "DEVICE_ID is not the device that the rank table has for this rank",
            expected=f"DEVICE_ID={expected} for rank {rank}",
            actual=f"DEVICE_ID={device}, for {told.source}",
            where=_places(names, [told], device),
            evidence=(
                *names.evidence([told], "DEVICE_ID"),
                Evidence(path, f"rank {rank} has device {expected}"),
            ),
            commands=(f"export DEVICE_ID={expected}",),
        )


def _device(process: ProcessEnv) -> LaunchNumber | None:
    """The variable that selects the device: LOCAL_RANK for torch, DEVICE_ID for MindSpore."""
    of_torch = "LOCAL_RANK" in process.env and process.env.keys() & {"RANK", "WORLD_SIZE"}
    name = "LOCAL_RANK" if of_torch else "DEVICE_ID"
    if name == "DEVICE_ID" and role_variable(process):
        return None  # a dynamic cluster counts the ranks of a host itself
    return LaunchNumber(name, process.env[name]) if name in process.env else None


def _listed(seen: str) -> int | None:
    """How many devices a *_VISIBLE_DEVICES names; None for one, since then each rank has its own device."""
    names = [name.strip() for name in seen.split(",")]
    return len(names) if len(names) > 1 and all(names) and "-1" not in names and seen != "differs" else None


def _places(names: LaunchNames, processes: list[ProcessEnv], device: int) -> tuple[Place, ...]:
    return tuple(Place(place.host, place.rank, device) for place in names.places(processes))


def _missing(names: LaunchNames, absent: MissingRanks) -> Problem:
    launch, world = names.launch, world_of_launch(names.launch)
    devices = _devices_of(launch, absent)
    which = counted(absent.ranks, "device" if absent.by_device else "rank")
    which = which if absent.ranks else f"{absent.count} of them"
    first = launch.told[0]
    said = world.said if world else "WORLD_SIZE"
    if devices:
        commands = tuple(
            remark(f"start a process with {DEVICE}={devices[rank]}") for rank in absent.ranks[:8]
        )
    else:
        commands = (f"export {said}={len(launch.told)}",)
    whole = f"{said}={world.text}" if world and said in first.env else f"{world.text} {said}" if world else ""
    by_table = bool(devices) and not absent.by_device
    return Problem(
        "some ranks are not assigned to any process",
        expected=f"ranks 0 to {world.value - 1} ({whole})" if world and world.value else "",
        actual=f"{which} missing" + (f": {counted(devices.values(), 'device')}" if by_table else ""),
        subject=names.subject(which),
        hosts=absent.hosts,
        where=tuple(
            Place(
                host=absent.hosts[0] if len(absent.hosts) == 1 else None,
                rank=None if absent.by_device else rank,
                device=devices.get(rank),
            )
            for rank in absent.ranks[:MOST_PLACES]
        ),
        confidence=Confidence.STRONG,
        evidence=(
            Evidence(launch.name, f"{len(launch.told)} seen"),
            *(names.evidence([first], said) if said in first.env else ()),
        ),
        commands=commands,
    )


def _devices_of(launch: Launch, absent: MissingRanks) -> dict[int, int]:
    """The devices of the ranks, if the rank table has them, or if only devices are known."""
    if absent.by_device:
        return {device: device for device in absent.ranks}
    seats = [each.seat.ranks for each in launch.told if each.seat]
    known = {rank: device for ranks in seats for device, rank in ranks.items()}
    return {rank: known[rank] for rank in absent.ranks} if known.keys() >= {*absent.ranks} else {}


def _wrong_world(names: LaunchNames, plan: JobPlan) -> Iterator[Problem | str]:
    """A problem if scripts start more or fewer ranks than they announce; a text if that is not certain."""
    yield from _another_world(names)
    scripts, world = ranks_by_script(names.launch), world_said(names.launch)
    if world is None or world.value is None:
        return
    in_table = sum(len(server.entries) for server in plan.servers)
    if in_table and plan.told_tables and in_table != world.value:
        yield _miscounted(
            names, names.launch.told, world, in_table, "the rank table has a different number of ranks"
        )
    behind = [process for process in names.launch.told if process.behind]
    if behind and world.value > 1:
        yield names.problem(
            behind,
            "start",
            "the ranks are started one after another: the first waits for the others until it gives up",
            expected=f"all {world.text} ranks at the same time",
            actual="each when the one before has ended",
            evidence=names.evidence(behind[:1], world.said),
            commands=(remark("in the script: & behind the command that starts each, and `wait` at the end"),),
        )
        return
    ranks = [process for processes in scripts.values() for process in processes]
    started = len(ranks)
    if not ranks or started == world.value:
        return
    if started > world.value:
        # In this case numbered ranks are reported as out of range, and workers without numbers as a surplus.
        if not any(rank_of(process) or role_variable(process) for process in ranks):
            yield _miscounted(names, ranks, world, started, "more ranks are started than there should be")
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
    problem = _miscounted(names, ranks, world, len(ranks), summary)
    if certain:
        return problem
    return replace(problem, severity=Severity.WARN, confidence=Confidence.SUSPECT)


def _another_world(names: LaunchNames) -> Iterator[Problem]:
    """The problem of ranks whose WORLD_SIZE is not the number of those that their launcher starts."""
    process, said = names.launch.told[0], "WORLD_SIZE"
    agent = launcher(process)
    if (
        agent is None
        or len(names.launch.told) > 1
        or process.loop
        or not agent.launcher.outer
        or agent.command.inside
    ):
        return
    told, started = LaunchNumber(said, process.env.get(said, "")), agent.world
    is_rank = agent.command.program.endswith(".py") and "RANK" in (*process.env, *process.unknown)
    if is_rank and told.value and started and started.value and told.value != started.value:
        what = f"{agent.launcher.name} starts another number of ranks than WORLD_SIZE tells them"
        yield _miscounted(names, [process], told, started.value, what)


def _miscounted(
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


def _wrong_roles(names: LaunchNames) -> Iterator[Problem]:
    launch = names.launch
    told = grouped((process.env["MS_ROLE"], process) for process in launch.told if "MS_ROLE" in process.env)
    for role, processes in told.items():
        if role in MSRUN.roles:
            continue
        yield names.problem(
            processes,
            "MS_ROLE",
            "MS_ROLE is not a role that MindSpore knows: it stops with `Role name is invalid`",
            expected=", ".join(MSRUN.roles),
            actual=f"MS_ROLE={role[:100] or 'nothing'}, for {names.labels(processes)}",
            commands=("export MS_ROLE=MS_WORKER",),
        )
    schedulers = [process for process in launch.told if role_of(process) == "scheduler"]
    workers = [
        process for process in launch.told if role_of(process) == "rank" and process.env.get("MS_ROLE")
    ]
    if len(schedulers) > 1:
        yield names.problem(
            schedulers,
            "MS_ROLE",
            "there are several schedulers, and MindSpore takes exactly one",
            expected="one process with MS_ROLE=MS_SCHED",
            actual=f"{len(schedulers)}: {', '.join(names.label(each) for each in schedulers[:6])}",
            commands=("export MS_ROLE=MS_WORKER",),
        )
    yield from _worker_number(names, workers)


def _worker_number(names: LaunchNames, workers: Sequence[ProcessEnv]) -> Iterator[Problem]:
    """More workers than MS_WORKER_NUM allows."""
    world = world_of_launch(names.launch)
    if world is None or world.value is None or any(process.loop for process in workers):
        return
    if len(workers) > world.value:
        yield names.problem(
            workers,
            world.said,
            f"there are more workers than {world.said} says: the surplus cannot register",
            expected=f"{world.value} ({world.said})",
            actual=f"{len(workers)} with MS_ROLE=MS_WORKER",
            hosts=(),
            evidence=names.evidence(workers[:2], world.said),
            commands=(f"export {world.said}={len(workers)}",),
        )


def _impossible_ranks(names: LaunchNames) -> Iterator[Problem]:
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
        actual = some([f"{said}={each.env[said][:100]} ({each.source})" for each in processes])
        commands = (f"export {said}=$i  # $i: {limit}",)
        yield names.problem(processes, said, f"{said} {how}", limit, actual, commands=commands)


def _doubled_ranks(names: LaunchNames) -> Iterator[Problem]:
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
    groups = grouped(
        (number.text if number.value is None else number.value, (number, process))
        for number, process in said
        if number is not None
    )
    alike: dict[Hashable, list[list[tuple[LaunchNumber, ProcessEnv]]]] = {}
    for value, same in groups.items():
        hosts = tuple(sorted(process.host or "" for _, process in same))
        key = (same[0][0].said, hosts if any(hosts) and isinstance(value, int) else value)
        if len(same) > 1:
            alike.setdefault(key, []).append(same)
    for group in alike.values():
        yield _duplicate_problem(
            names, [same[0][0] for same in group], [process for same in group for _, process in same]
        )


def _duplicate_problem(
    names: LaunchNames, numbers: Sequence[LaunchNumber], processes: Sequence[ProcessEnv]
) -> Problem:
    number, times = numbers[0], len(processes) // len(numbers)
    option = number.said.startswith("--")
    subject = f"{number.said}={number.text[:100]}"
    what = f"{subject} is"
    if len(numbers) > 1:
        subject = number.said
        what = f"{counted((each.value or 0 for each in numbers), number.said if option else 'rank')} are"
    where = [f"{each.source} on {each.host}" if each.host else each.source for each in processes]
    return names.problem(
        processes,
        subject,
        f"{what} given {times} times",
        expected="every number once",
        actual=some(where, 6),
        evidence=names.said(processes, number.said),
        commands=(
            remark(f"start with a different {number.said} on each host")
            if option
            else f"export {number.said}=$i  # $i: a different number for each",
        ),
        **_doubt(names.launch, processes),
    )


def _node_ranks(names: LaunchNames) -> Iterator[Problem]:
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
            evidence=names.said([process], number.said),
            commands=(remark(f"give each host a different {number.said} from 0 to {size - 1}"),),
        )


_REFUSED = {
    "nnodes": r"(?!\d+(?::\d+)?$)[\d-].*|[A-Z][A-Z_]+",
    "nproc_per_node": r"0+|-.*|\d+\D.*|[A-Z][A-Z_]+",
    "ranks": r"0+|-.*|\d+[*+/ -].*|[A-Z][A-Z_]+",
}
"""Options of launchers, and the values that are no number of hosts or ranks for them."""


def _not_numbers(names: LaunchNames) -> Iterator[Problem]:
    for process in names.launch.told:
        agent = launcher(process)
        for name, refused in _REFUSED.items():
            ours = agent and (agent.launcher.options.variables or name == "ranks")
            number = agent.setting(name) if agent and ours else None
            if number and re.fullmatch(refused, number.text.strip()):
                yield names.problem(
                    [process],
                    number.said,
                    f"{number.said} is not a number of {'hosts' if name == 'nnodes' else 'ranks'}",
                    expected="a number from 1 on" + (", or a range such as 1:4" if name == "nnodes" else ""),
                    actual=f"{number.said}={number.text[:100]}, for {process.source}",
                    evidence=names.said([process], number.said),
                    commands=(remark(f"correct {number.said}"),),
                )


def _at_one_port(names: LaunchNames) -> Iterator[Problem]:
    """The problem of launchers that one script starts side by side, each of which opens the same port."""
    told = [] if names.launch.live else [each for each in names.launch.told if _opens_its_port(each)]
    ports = grouped(((file_of(each), port.text), (each, port)) for each in told if (port := port_of(each)))
    for (_, text), same in ports.items():
        processes, port = [process for process, _ in same], same[0][1]
        if len(processes) > 1 and port.value:
            yield names.problem(
                processes,
                f"port {text}",
                f"{len(processes)} jobs are started side by side with one port for their masters",
                expected="a port of its own for each job of a host",
                actual=f"{text} ({port.said}) for {names.labels(processes)}",
                evidence=names.command_lines(processes[:4]),
                commands=(remark("start each with a port of its own"),),
            )


def _opens_its_port(process: ProcessEnv) -> bool:
    """Whether it is a launcher of ranks of one host only, which certainly opens the port of its master."""
    agent = launcher(process)
    if agent is None or agent.launcher.master is None or agent.command.inside or agent.standalone:
        return False
    looks_for_another = agent.launcher.configured is not None
    if looks_for_another or process.loop or process.behind or process.chosen or process.apart or process.host:
        return False
    doubted = ("rdzv_backend", "rdzv_endpoint", "nnodes", "master_addr", "standalone", "include")
    if agent.given("rdzv_backend") not in (None, "static") or agent.unknown(*doubted):
        return False
    here, world = agent.local_world, agent.world
    sizes = {number.value for number in (here, world) if number}
    alone = agent.nodes in (None, (1, 1)) and len(sizes) == 1
    return alone and (
        max(size or 0 for size in sizes) > 1 or "rdzv_backend" in agent.launcher.options.defaults
    )


def _no_node_rank(names: LaunchNames) -> str:
    """Why a single script cannot be right for every host: it makes each of them node 0."""
    processes = names.launch.told
    if names.launch.live or len(processes) != 1 or not goes_by_node_rank(processes[0]):
        return ""
    if node_rank_of(processes[0]) is not None or _node_rank(processes[0]) is None or processes[0].loop:
        return ""
    return f"{processes[0].source}: --node_rank is not given, which is right on one host only"


def _node_rank(process: ProcessEnv) -> LaunchNumber | None:
    """The node rank; if none is given, some launchers take the host for the first one."""
    agent, number = launcher(process), node_rank_of(process)
    first = agent.launcher.first_node if agent else ""
    if number is not None or agent is None or not first:
        return number
    return None if agent.unknown("node_rank") else LaunchNumber(agent.spelled("node_rank"), first)


SIZES = ("RANK_SIZE", "WORLD_SIZE")


def _not_in_table(names: LaunchNames) -> Iterator[Problem]:
    """Processes whose device is not in the table, so that they find no rank; one problem per server."""
    lost = grouped(
        ((process.seat.path, tuple(sorted(process.seat.ranks))), process)
        for process in ranks_of(names.launch)
        if process.seat is not None and process.seat.rank is None
    )
    for (path, devices), processes in lost.items():
        listed = ranks_text(devices, "device", most=12) if devices else "no device"
        yield names.problem(
            processes,
            DEVICE,
            f"{DEVICE} is not in the rank table: the process cannot find its own rank",
            expected=f"{listed}, as the rank table has them for this host",
            actual=some([f"{DEVICE}={each.env[DEVICE][:100]} ({each.source})" for each in processes]),
            evidence=(*names.evidence(processes[:3], DEVICE), Evidence(path, listed)),
            commands=(f"export {DEVICE}=$i  # $i: a device of the rank table that no other rank has",),
        )


def _another_size(names: LaunchNames) -> Iterator[Problem]:
    """A number of ranks that is the same for all processes but differs from their rank table."""
    present = [process for process in ranks_of(names.launch) if process.seat is not None]
    for name in SIZES:
        said = {process.env[name] for process in present if name in process.env}
        seat = present[0].seat if present else None
        if seat is None or len(said) != 1 or said == {str(seat.world)}:
            continue  # if only some processes have another number, they differ from the others
        yield names.problem(
            present,
            name,
            f"{name} is not the number of ranks in the rank table: they wait for ranks that do not exist",
            expected=f"{name}={seat.world}, as in {seat.path}",
            actual=f"{name}={said.pop()[:100]}, for {names.labels(present)}",
            hosts=(),
            evidence=(*names.evidence(present[:2], name), Evidence(seat.path, f"{seat.world} ranks")),
            commands=(f"export {name}={seat.world}",),
        )


def device_conflicts(
    launch: Launch, devices_by_rank: Mapping[int, int]
) -> Iterator[tuple[ProcessEnv, int, int, int]]:
    """Ranks whose DEVICE_ID contradicts the table: each with its rank, its device and that of the table. With
    visible devices, the number has another meaning.
    """
    for told in ranks_of(launch):
        rank = rank_of(told)
        said = LaunchNumber("DEVICE_ID", told.env.get("DEVICE_ID", ""))
        if rank is None or rank.value is None or said.value is None or visible_devices(told) is not None:
            continue
        expected = devices_by_rank.get(rank.value)
        if expected is not None and expected != said.value:
            yield told, rank.value, said.value, expected


def may_be_inherited(launch: Launch, same: Sequence[ProcessEnv]) -> bool:
    """Whether these share a rank only because a pod hands it to everything that is started in it by hand.

    This is so if no launcher started them, no process of that program has another number, and nothing else
    distinguishes them.
    """
    numbers = {number.text for told in ranks_of(launch) if (number := rank_of(told)) is not None}
    own = {(told.host, told.env.get("LOCAL_RANK"), told.env.get("DEVICE_ID")) for told in same}
    started = any(role_of(told) == "agent" or told.env.keys() & MARKS for told in launch.told)
    by_hand = all((number := rank_of(told)) is not None and _is_by_hand(number) for told in same)
    return launch.live and len(numbers) == 1 and len(own) == 1 and by_hand and not started


def _is_by_hand(number: LaunchNumber) -> bool:
    """Whether a number may be set by hand; a launcher never sets DEVICE_ID."""
    return number.said == DEVICE or NUMBERS[number.said].by_hand


def missing_ranks(launch: Launch, hosts: Collection[str]) -> tuple[list[MissingRanks], str]:
    """The missing ranks, and why others may be missing. `hosts` are those that are examined.

    Ranks that run prove nothing about others: these may have ended, or come later.
    """
    world, present = world_of_launch(launch), ranks_of(launch)
    by_device = bool(present) and all(is_by_device(each) and each.seat is None for each in present)
    if by_device and (doubt := _no_table(launch, present, world)):
        return [], doubt
    if not launch.complete or world is None or world.value is None:
        return [], ""
    numbers = [_device_of(told) if by_device else rank_of(told) for told in present]
    values = {number.value for number in numbers if number is not None and number.value is not None}
    counts_only = not values and any(map(role_variable, present))
    if not counts_only and any(number is None for number in numbers):
        return [], ""
    lacking = set(range(world.value)) - values if values else set[int]()
    if len(present) >= world.value and (by_device or any(each.seat for each in present)):
        return [], ""  # as many as there should be: the missing device's place is taken by a duplicate
    count = len(lacking) if values else world.value - len(present)
    if count <= 0:
        return [], ""
    if by_device:
        seen = tuple({each.host for each in present if each.host is not None})
        return [MissingRanks(count, tuple(sorted(lacking)), seen, by_device=True)], ""
    found = _gaps(present, lacking)
    for absent in found:
        lacking -= set(absent.ranks)
        count -= absent.count
    if count <= 0:
        return found, ""
    rest = MissingRanks(count, tuple(sorted(lacking)))
    if not found and (here := _lost_here(present, world.value, hosts)) is not None:
        return [replace(rest, hosts=here)], ""
    if _may_be_elsewhere(present, world.value):
        what = f"{counted(rest.ranks)} of {world.value}" if rest.ranks else f"{count} of {world.value} ranks"
        unseen = "whether other hosts have them is not known"
        return found, f"{launch.name}: nothing was given of {what}; {unseen}"
    return [*found, rest], ""


def _no_table(launch: Launch, present: Sequence[ProcessEnv], world: LaunchNumber | None) -> str:
    """Why the missing ranks are unknown, if no table maps the devices to ranks.

    On one host with as many devices as ranks, each device is one of them.
    """
    devices = {_device_of(each).value for each in present}
    one_host = len({each.host for each in present}) == 1
    size = world.value if world is not None else None
    if one_host and size and all(device is not None and 0 <= device < size for device in devices):
        return ""
    return f"{launch.name}: which ranks these are is in the rank table, and that could not be read"


def _device_of(told: ProcessEnv) -> LaunchNumber:
    return LaunchNumber(DEVICE, told.env[DEVICE])


def _lost_here(present: Sequence[ProcessEnv], world: int, hosts: Collection[str]) -> tuple[str, ...] | None:
    """The host of a job that has only one and ran all its ranks there; None if it may have others.

    No one else can join ranks that meet at a loopback address. If the plan also has one host, another host
    would have another number of ranks than this one.
    """
    seen = {process.host for process in present}
    if len(seen) != 1 or None in seen or any(map(local_world_of, present)):
        return None
    masters = [master_of(process) for process in present]
    loopback = all(master is not None and is_loopback_name(master.address) for master in masters)
    if len(hosts) > 1 and not loopback:
        return None
    alone = loopback and len(hosts) == 1
    return tuple(filter(None, seen)) if len(present) > 1 and (alone or not is_share(present, world)) else None


def _gaps(present: Sequence[ProcessEnv], lacking: Collection[int]) -> list[MissingRanks]:
    """Missing ranks of hosts, by their own LOCAL_RANK and LOCAL_WORLD_SIZE, or by the rank table."""
    found: dict[str, set[int]] = {}
    for told in present:
        if told.host is not None and told.seat is not None:
            found.setdefault(told.host, set()).update(told.seat.ranks.values())
            continue
        rank, own = rank_of(told), LaunchNumber("LOCAL_RANK", told.env.get("LOCAL_RANK", ""))
        size = LaunchNumber("LOCAL_WORLD_SIZE", told.env.get("LOCAL_WORLD_SIZE", ""))
        if told.host is None or rank is None or None in (rank.value, own.value, size.value):
            continue
        first = (rank.value or 0) - (own.value or 0)
        if 0 < (size.value or 0) <= 1024:
            found.setdefault(told.host, set()).update(range(first, first + (size.value or 0)))
    gaps = {host: sorted(block & set(lacking)) for host, block in found.items()}
    return [MissingRanks(len(ranks), tuple(ranks), (host,)) for host, ranks in gaps.items() if ranks]


def _may_be_elsewhere(present: Sequence[ProcessEnv], world: int) -> bool:
    """Whether those that were given may be the ranks of one of several hosts."""
    shares = Counter(told.host for told in present if told.host is not None)
    (share,) = shares.values() if len(shares) == 1 else (0,)
    return is_share(present, world) or (share > 0 and world % share == 0)

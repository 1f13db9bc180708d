"""The launch: whether every rank is there once, and each has a device of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from shlex import quote

from doctor.api import (
    PLAN,
    Backend,
    Confidence,
    Evidence,
    JobPlan,
    Place,
    Problem,
    Scope,
    Severity,
    Undecided,
    check,
    maybe,
)
from doctor.facts.job import LAUNCHES, PROCESSES_OF_JOBS, directory
from doctor.facts.system import DEVICES, IDENTITY, Devices, Identity
from doctor.facts.tables import RANK_TABLE, TableSeen
from doctor.job.launch import JobProcess, Launch
from doctor.job.launch.ranks import Absent, counted, missing_ranks, world_of_launch
from doctor.rules.launch_devices import against_table, devices_beyond, shared_devices
from doctor.rules.launch_names import LaunchNames
from doctor.rules.launch_ranks import doubled_ranks, impossible_ranks, no_node_rank, node_ranks, wrong_roles


@check(
    "launch-ranks",
    LAUNCHES,
    PLAN,
    maybe(PROCESSES_OF_JOBS),
    maybe(DEVICES),
    maybe(IDENTITY),
    maybe(RANK_TABLE),
    scope=Scope.CLUSTER,
)
def launch_ranks(
    launches: tuple[Launch, ...],
    plan: JobPlan,
    jobs: Mapping[str, tuple[JobProcess, ...]],
    devices: Mapping[str, Devices],
    identities: Mapping[str, Identity],
    table: TableSeen | None,
) -> Iterator[Problem]:
    """A rank is there twice, not at all, or has a number or device that cannot be.

    Why it matters: with RANK, RANK_ID or MS_NODE_ID doubled or missing the job waits at its start until it
    times out, without a word of which rank it lacks. Two ranks on one device end with EJ0001 or out of
    memory. MindSpore needs exactly one scheduler and as many workers as MS_WORKER_NUM says; `Role name is
    invalid` is what it says of any other MS_ROLE.

    How it is known: from what --launch names, and from your own processes that run now. That a rank is
    missing is only said where all of them should have been seen.

    What to do: look at what the finding names: a loop that does not export the rank, a node rank that was
    copied from the other host, a process that ended.
    """
    book = directory(plan, {}, {}, identities)
    silent = [host for host in plan.names if host not in jobs]
    busy = {
        host for launch in launches if launch.live for host in LaunchNames(launch, book).hosts(launch.told)
    }
    entries = table.table.entries if table and table.table else ()
    in_table = {e.rank: e.device for e in entries if e.rank is not None and e.device is not None}
    doubts: list[str] = []
    for launch in launches:
        names = LaunchNames(launch, book)
        yield from impossible_ranks(names)
        yield from doubled_ranks(names)
        yield from wrong_roles(names)
        yield from node_ranks(names)
        yield from _on_devices(names, plan, devices)
        yield from against_table(names, table.path if table else "", in_table)
        absent, doubt = missing_ranks(launch, plan.names, silent, busy)
        yield from (_missing(names, each) for each in absent)
        doubts += [text for text in (doubt, no_node_rank(names)) if text]
    if doubts:
        raise Undecided("; ".join(doubts))


def _on_devices(names: LaunchNames, plan: JobPlan, devices: Mapping[str, Devices]) -> Iterator[Problem]:
    if plan.backend.value is Backend.GLOO:
        return
    most = max((plan.ranks_on(host) for host in plan.names), default=0) if plan.several_hosts else 0
    yield from shared_devices(names, most)
    if plan.vendor:
        numbers = {host: frozenset(found.of(plan.vendor).numbers) for host, found in devices.items()}
        yield from devices_beyond(names, numbers, plan.vendor)


def _missing(names: LaunchNames, absent: Absent) -> Problem:
    launch, world = names.launch, world_of_launch(names.launch)
    which = counted(absent.ranks) if absent.ranks else f"{absent.count} of them"
    first = launch.told[0]
    if launch.live:
        look = 'ps -u "$USER" -o pid,lstart,args'
        commands = tuple(f"ssh {quote(host)} '{look}'" for host in absent.hosts[:8]) or (look,)
    else:
        commands = (f"export {world.said if world else 'WORLD_SIZE'}={len(launch.told)}",)
    summary = "ranks of the job do not run" if absent.certain else "ranks of the job were not found"
    return Problem(
        summary if launch.live else "nobody is told to be some of the ranks",
        expected=f"ranks 0 to {world.value - 1} ({world.said}={world.text})" if world and world.value else "",
        actual=f"{which} missing",
        subject=names.subject(which),
        hosts=absent.hosts,
        where=tuple(
            Place(host=absent.hosts[0] if len(absent.hosts) == 1 else None, rank=rank)
            for rank in absent.ranks[:64]
        ),
        severity=None if absent.certain else Severity.WARN,
        confidence=Confidence.STRONG if absent.certain else Confidence.SUSPECT,
        evidence=(
            Evidence("processes that run now" if launch.live else launch.name, f"{len(launch.told)} seen"),
            *(names.evidence([first], world.said) if world else ()),
        ),
        commands=commands,
    )

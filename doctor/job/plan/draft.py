"""The plan from flags, files and the scheduler.

Precedence: flags, --launch, the rank table, Slurm, the inventory, defaults.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from doctor.job.framework import told_framework
from doctor.job.launch.common import common_env, default_of, port_is_drawn
from doctor.job.launch.launcher import LaunchNumber
from doctor.job.launch.launchers import MASTERS, PORTS
from doctor.job.launch.process_env import ProcessEnv
from doctor.job.launch.rank_env import world_of
from doctor.job.launch.rank_starts import ranks_of_a_host, understood, world_said
from doctor.job.launch.ranks import MOST_RANKS as MOST_RANKS_OF_A_JOB
from doctor.job.launch.table_reference import TableReference, told_tables
from doctor.job.launch.unknowns import port_mentioned
from doctor.job.parallel import IF_REPLICAS, KEYS, OF_A_WORLD, OF_LAUNCH, Layout, layout_of
from doctor.job.plan import job
from doctor.job.ranktable import RankTable, Server, read_table
from doctor.job.wishes import SLURM, JobWishes
from doctor.model import Backend, Host, SourcedValue

T = TypeVar("T")
HCCL_BASE_PORT = 60000
WORLDS = ("WORLD_SIZE", "RANK_SIZE")
"""Variables with the number of ranks, even if no known launcher sets them."""
_DEFAULT_PORT = SourcedValue(29500, "default")


def draft(hosts: Sequence[Host], wishes: JobWishes) -> job.JobPlan:
    """The plan as far as it is known before the hosts are asked."""
    told = common_env(wishes.launch) if wishes.launch else {}
    env = {**wishes.env, **told}
    table = read_table(wishes.table.text)[0] if wishes.table else None
    started = ranks_of_a_host(wishes.launch, len(hosts)) if wishes.launch else None
    servers = job.ServersByName(table.servers if table else ())
    planned = tuple(_plan_host(host, wishes, servers, started) for host in hosts)
    tables, own = _told_tables(wishes), wishes.table.path if wishes.table else ""
    port = _master_port(wishes, told)
    words = wishes.launch.mentioned if wishes.launch else ()
    mentioned = port_mentioned(wishes.launch) if wishes.launch else ()
    base = env.get("HCCL_IF_BASE_PORT", "")
    master = _first(told, _launch_source(wishes), MASTERS) or _first(wishes.env, "inventory", MASTERS)
    return job.JobPlan(
        hosts=planned,
        backend=_backend(wishes, table, tables),
        head=job.find_head(planned, master, wishes.head, {}),
        wished_head=wishes.head,
        master_port=port,
        master_port_guessed=port.source in (_DEFAULT_PORT.source, *(each.source for each in mentioned)),
        master_port_drawn=wishes.launch is not None
        and not _is_flag(wishes.master_port)
        and port_is_drawn(wishes.launch, port.value),
        hccl_base_port=SourcedValue(int(base), "HCCL_IF_BASE_PORT")
        if re.fullmatch(r"[0-9]{4,5}", base) and 1024 <= int(base) <= 65520
        else SourcedValue(HCCL_BASE_PORT, "default"),
        env=env,
        master=master,
        layout=_layout(wishes),
        allocated=wishes.allocated or {},
        framework=told_framework(wishes),
        servers=table.servers if table else (),
        said_world=_said_world(wishes, table),
        launch=understood(wishes.launch) if wishes.launch else "",
        lines={each.text: f"{each.file}:{each.line}" for each in words if each.kind == "set"},
        unset=frozenset(each.text for each in words if each.kind == "unset"),
        inherited=frozenset(each.words for each in words if each.kind == "login"),
        told_tables=tables,
        table_paths=tuple(dict.fromkeys(filter(None, (*(table.path for table in tables), own)))),
        needed_paths=wishes.launch.needs if wishes.launch else (),
        needs=wishes.needs,
        listed=tuple(
            dict.fromkeys(name for told in wishes.launch.told for name in (*told.hosts, told.on))
            | dict.fromkeys(each.text for each in words if each.kind == "coordinator")
        )
        if wishes.launch
        else (),
    )


def _layout(wishes: JobWishes) -> SourcedValue[Layout] | None:
    """The parallel plan that was given, or the one that the launch states."""
    if wishes.layout or not wishes.launch or not wishes.launch.sizes:
        return wishes.layout
    sizes = {key: size for key, size in wishes.launch.sizes.items() if key in KEYS}
    world = world_said(wishes.launch)
    if world and world.value:
        source = OF_LAUNCH if {"tp", "pp", "cp"} & sizes.keys() else IF_REPLICAS
        return SourcedValue(layout_of({**sizes, "world": world.value}), source)
    known = {key: size for key, size in sizes.items() if key not in OF_A_WORLD}
    return SourcedValue(layout_of(known), OF_LAUNCH) if any(size > 1 for size in known.values()) else None


def _backend(
    wishes: JobWishes, table: RankTable | None, told: Sequence[TableReference]
) -> SourcedValue[Backend]:
    """The backend; only HCCL reads a rank table."""
    if wishes.backend and _is_flag(wishes.backend):
        return wishes.backend
    if table:
        return SourcedValue(Backend.HCCL, "rank table")
    if wishes.launch and told and not wishes.launch.live:
        return SourcedValue(Backend.HCCL, f"--launch {told[0].said}")
    if wishes.launch and not wishes.backend and any(each.over_gloo for each in wishes.launch.told):
        return SourcedValue(Backend.GLOO, "the launch's --backend")
    return wishes.backend or SourcedValue(Backend.GLOO, "default")


def _told_tables(wishes: JobWishes) -> tuple[TableReference, ...]:
    """The rank tables of the launch, or else of the inventory.

    A rank of a running job speaks only for its own table, so in that case all ranks must agree.
    """
    told = told_tables(wishes.launch.told) if wishes.launch else ()
    if wishes.launch and wishes.launch.live:
        agreed = common_env(wishes.launch)
        told = tuple(table for table in told if agreed.get(table.said) == table.text)
    return told or told_tables([ProcessEnv("inventory", None, wishes.env)])


def _launch_source(wishes: JobWishes) -> str:
    return job.RUNNING if wishes.launch and wishes.launch.live else "--launch"


def _said_world(wishes: JobWishes, table: RankTable | None) -> SourcedValue[int] | None:
    """The largest number of ranks that any source gives: a queue that is too short for the real job costs
    more than one that is too long.
    """
    said = list(_worlds_told(wishes))
    layout = wishes.layout
    if layout and layout.value.world:
        said.append(SourcedValue(layout.value.world, f"{layout.source} world"))
    if table:
        said.append(SourcedValue(sum(len(server.entries) for server in table.servers), "the rank table"))
    return max(said, key=lambda world: world.value, default=None)


def _worlds_told(wishes: JobWishes) -> Iterator[SourcedValue[int]]:
    """What each process of the launch was given, and what the inventory says."""
    launch = wishes.launch
    told = [(f"of {launch.name}", each) for each in launch.told] if launch else []
    told.append(("in the inventory", ProcessEnv("inventory", None, wishes.env)))
    for where, each in told:
        plain = (LaunchNumber(name, each.env[name]) for name in WORLDS if name in each.env)
        for number in (world_of(each), *plain):
            if number and number.value and 0 < number.value <= MOST_RANKS_OF_A_JOB:
                yield SourcedValue(number.value, f"{number.said} {where}")


def _first(env: Mapping[str, str], where: str, names: Sequence[str]) -> SourcedValue[str] | None:
    return next((SourcedValue(env[name], f"{where} {name}") for name in names if env.get(name)), None)


def _is_flag(value: SourcedValue[T] | None) -> bool:
    return value is not None and value.source.startswith("--")


def _master_port(wishes: JobWishes, told: Mapping[str, str]) -> SourcedValue[int]:
    """The port from the flag, the launch or the inventory; or one that is only mentioned in the launch's
    text."""
    launch, given = wishes.launch, wishes.master_port
    if _is_flag(given):
        return given or _DEFAULT_PORT
    said = _first(told, _launch_source(wishes), PORTS)
    if said and launch and not launch.live and (default := default_of(launch, said.value)):
        said = SourcedValue(said.value, default)
    said = said or (None if given else _first(wishes.env, "inventory", PORTS))
    if said and re.fullmatch(r"[0-9]{1,5}", said.value):
        return SourcedValue(int(said.value), said.source) if 0 < int(said.value) < 65536 else _DEFAULT_PORT
    ports = port_mentioned(launch) if launch and not given else ()
    return SourcedValue(int(ports[-1].text), ports[-1].source) if ports else given or _DEFAULT_PORT


def _plan_host(
    host: Host, wishes: JobWishes, servers: job.ServersByName, started: int | None
) -> job.PlannedHost:
    data = SourcedValue(host.data, "inventory") if host.data else None
    plain = job.PlannedHost(host.name, host.address, None, data)
    server = servers.of(plain, {})
    return replace(plain, server=server, ranks=_said_ranks(host, wishes, server, started))


def _said_ranks(
    host: Host, wishes: JobWishes, server: Server | None, started: int | None
) -> SourcedValue[int] | None:
    """The ranks from flags, --launch, rank table, Slurm, hostfile or inventory, otherwise one per device."""
    if _is_flag(wishes.ranks_per_host):
        return wishes.ranks_per_host
    if started is not None and 0 < started <= job.MOST_RANKS:
        return SourcedValue(started, _launch_source(wishes))
    if server and server.entries:
        return SourcedValue(len(server.entries), "rank table")
    if wishes.ranks_per_host and wishes.ranks_per_host.source == SLURM:
        return wishes.ranks_per_host
    if host.ranks:
        return SourcedValue(host.ranks, "hostfile or inventory")
    devices = host.expected.get("devices") or wishes.expect.get("devices", "")
    if re.fullmatch(r"0*[1-9][0-9]{0,5}", devices):
        return SourcedValue(int(devices), job.EXPECTED)
    return wishes.ranks_per_host

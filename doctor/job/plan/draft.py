"""The plan that flags, files and the scheduler give.

Precedence: flags, --launch, the rank table, Slurm, the inventory, defaults.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from doctor.job.launch import common_env
from doctor.job.launch.launchers import MASTERS, PORTS
from doctor.job.launch.rank_env import local_world_of
from doctor.job.plan.job import MOST_RANKS, RUNNING, JobPlan, PlannedHost, find_head, server_of
from doctor.job.ranktable import RankTable, Server, read_table
from doctor.job.wishes import SLURM, JobWishes
from doctor.model import Backend, Host, Sourced

T = TypeVar("T")
HCCL_BASE_PORT = 60000
TABLES = ("RANK_TABLE_FILE", "MINDSPORE_HCCL_CONFIG_PATH")
_DEFAULT_PORT = Sourced(29500, "default")


def draft(hosts: Sequence[Host], wishes: JobWishes) -> JobPlan:
    """What is known of the plan before the hosts are asked."""
    told = common_env(wishes.launch) if wishes.launch else {}
    env = {**wishes.env, **told}
    table = read_table(wishes.table.text)[0] if wishes.table else None
    planned = tuple(_planned(host, wishes, table) for host in hosts)
    base = env.get("HCCL_IF_BASE_PORT", "")
    master = _first(told, _teller(wishes), MASTERS) or _first(wishes.env, "inventory", MASTERS)
    return JobPlan(
        hosts=planned,
        backend=_backend(wishes, table),
        head=find_head(planned, master, wishes.head, {}),
        wished_head=wishes.head,
        master_port=_master_port(wishes, told),
        hccl_base_port=Sourced(int(base), "HCCL_IF_BASE_PORT")
        if re.fullmatch(r"[0-9]{4,5}", base) and 1024 <= int(base) <= 65520
        else Sourced(HCCL_BASE_PORT, "default"),
        env=env,
        master=master,
        layout=wishes.layout,
        servers=table.servers if table else (),
        table_paths=_table_paths(wishes, env),
    )


def _backend(wishes: JobWishes, table: RankTable | None) -> Sourced[Backend]:
    if table and not _flagged(wishes.backend):
        return Sourced(Backend.HCCL, "rank table")
    return wishes.backend or Sourced(Backend.GLOO, "default")


def _table_paths(wishes: JobWishes, env: Mapping[str, str]) -> tuple[str, ...]:
    said = [env[name] for name in TABLES if env.get(name, "").startswith("/")]
    return tuple(dict.fromkeys([*said, *([wishes.table.path] if wishes.table else [])]))


def _teller(wishes: JobWishes) -> str:
    return RUNNING if wishes.launch and wishes.launch.live else "--launch"


def _first(env: Mapping[str, str], where: str, names: Sequence[str]) -> Sourced[str] | None:
    return next((Sourced(env[name], f"{where} {name}") for name in names if env.get(name)), None)


def _flagged(value: Sourced[T] | None) -> bool:
    return value is not None and value.source.startswith("--")


def _master_port(wishes: JobWishes, told: Mapping[str, str]) -> Sourced[int]:
    said = _first(told, _teller(wishes), PORTS) or (
        None if wishes.master_port else _first(wishes.env, "inventory", PORTS)
    )
    if said and not _flagged(wishes.master_port) and re.fullmatch(r"[0-9]{1,5}", said.value):
        return Sourced(int(said.value), said.source) if 0 < int(said.value) < 65536 else _DEFAULT_PORT
    return wishes.master_port or _DEFAULT_PORT


def _planned(host: Host, wishes: JobWishes, table: RankTable | None) -> PlannedHost:
    data = Sourced(host.data, "inventory") if host.data else None
    plain = PlannedHost(host.name, host.address, None, data)
    server = server_of(table.servers if table else (), plain, {})
    return replace(plain, server=server, ranks=_said_ranks(host, wishes, server))


def _said_ranks(host: Host, wishes: JobWishes, server: Server | None) -> Sourced[int] | None:
    """What flags say, else --launch, the rank table, Slurm, hostfile or inventory, else a rank a device."""
    if _flagged(wishes.ranks_per_host):
        return wishes.ranks_per_host
    told = [local_world_of(told) for told in wishes.launch.told] if wishes.launch else []
    started = {number.value for number in told if number}
    for ranks in started if len(started) == 1 else ():
        if ranks and 0 < ranks <= MOST_RANKS:
            return Sourced(ranks, _teller(wishes))
    if server and server.entries:
        return Sourced(len(server.entries), "rank table")
    if wishes.ranks_per_host and wishes.ranks_per_host.source == SLURM:
        return wishes.ranks_per_host
    if host.ranks:
        return Sourced(host.ranks, "hostfile or inventory")
    devices = host.expected.get("devices") or wishes.expect.get("devices", "")
    if re.fullmatch(r"0*[1-9][0-9]{0,5}", devices):
        return Sourced(int(devices), "devices expected")
    return wishes.ranks_per_host

"""The hosts to examine: node sets, hostfile, inventory or a scheduler's allocation -> hosts in rank order.

An inventory without hosts, or a Slurm job of several nodes, means other hosts: this machine is not examined
in their place. An inventory beside named hosts adds its settings to them: if it lists hosts, a named host
that it does not list is a mistake; if it lists none, its `defaults` hold for all. The values of a hostfile
override it.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

from doctor.errors import InputErrors, Mistake, UsageError, suggest
from doctor.job.ranktable import read_table
from doctor.job.wishes import SLURM, JobWishes
from doctor.model import Host, TableFile
from doctor.targets.allocation import (
    NAME_THEM,
    NODE_FILES,
    allocation,
    devices_of,
    refuse_lost_nodes,
    slurm_tasks,
)
from doctor.targets.hostfile import read_hostfile
from doctor.targets.hostwords import refuse_other_words
from doctor.targets.inputkind import InputKind, refuse_other
from doctor.targets.inventoryfile import Inventory, read_inventory
from doctor.text.nodeset import MOST_HOSTS, fold, is_host, is_ip, unfold, unfold_users
from doctor.text.textfile import posix_cksum, read_bytes, refuse, shown, text_of

if TYPE_CHECKING:
    from doctor.transport import Transport

COMMAND_LINE, LOCAL = "the command line", "local"


@dataclass(frozen=True, slots=True)
class Targets:
    """The hosts in rank order, who named them, and what the inventory requests of the job."""

    hosts: tuple[Host, ...]
    source: str
    local: bool = False
    wishes: JobWishes = field(default_factory=JobWishes)
    unnamed: bool = False
    """Whether no host was named, so that the only host is this machine."""
    way: Callable[[Sequence[Host], int], Transport] | None = None
    """The way to the hosts, given --fanout: of pods entered from this process, and of the ranks of a job."""


def read_targets(
    nodesets: Sequence[str],
    hostfile: Path | None,
    inventory: Path | None,
    local: bool,
    exclude: Sequence[str],
    environ: Mapping[str, str],
    rank_table: Path | None = None,
    found: Targets | None = None,
) -> Targets:
    """`found` are those that a cluster named. Raises UsageError, or InputErrors with all mistakes."""
    _refuse_two_ways(nodesets, hostfile, local)
    refuse_other_words(nodesets, listed=inventory is not None)
    stock, listed = _read_files(inventory, hostfile)
    if rank_table is not None:
        file = table_file(rank_table, os.path.abspath(rank_table))
        stock = replace(stock, wishes=replace(stock.wishes, table=file))
        if not (nodesets or listed or local or found):
            stock, listed = _of_table(file, stock)
    named = found or _choose_hosts(nodesets, listed, local, stock, environ)
    hosts = named.hosts if found or named.source.startswith("inventory ") else _with_settings(named, stock)
    if len(hosts) > MOST_HOSTS:
        raise UsageError(f"{len(hosts):,} hosts are named, but at most {MOST_HOSTS:,} are supported")
    left = _without(hosts, exclude, stock)
    wishes = _wishes(stock, hosts, left)
    if named.source in (SLURM, *NODE_FILES):
        wishes = replace(wishes, allocated=devices_of(environ))
    if named.source == SLURM and (ranks := slurm_tasks(environ)):
        wishes = replace(wishes, ranks_per_host=ranks)
    return replace(named, hosts=left, wishes=wishes, unnamed=named.local and not local)


def local_if_alone(found: Targets) -> Targets:
    """The only host is examined without a login if it is this machine under a plain name of its own."""
    host = found.hosts[0]
    dialled = host.user or host.port or host.jump or host.address != host.name
    if len(found.hosts) > 1 or dialled or found.source == SLURM or not _is_own_name(host.name):
        return found
    return replace(found, hosts=(replace(host, address="localhost"),), local=True)


def _is_own_name(name: str) -> bool:
    own = socket.gethostname().lower()
    if name.lower() in {"localhost", own, own.partition(".")[0]}:
        return True
    return is_ip(name) and "%" not in name and ip_address(name).is_loopback


def _refuse_two_ways(nodesets: Sequence[str], hostfile: Path | None, local: bool) -> None:
    ways = [("node sets", bool(nodesets)), ("--hostfile", hostfile is not None), ("--local", local)]
    used = [name for name, given in ways if given]
    if len(used) > 1:
        hint = "an inventory may be combined with any one of them"
        raise UsageError(f"the hosts are named in {len(used)} ways: {' and '.join(used)}", hint)


def _read_files(inventory: Path | None, hostfile: Path | None) -> tuple[Inventory, Targets | None]:
    """Read both files, even if the first has mistakes, so that all mistakes can be fixed at once."""
    stock = Inventory()
    listed: Targets | None = None
    mistakes: list[Mistake] = []
    try:
        stock = read_inventory(inventory) if inventory is not None else stock
    except InputErrors as error:
        mistakes += error.mistakes
    try:
        listed = Targets(read_hostfile(hostfile), f"hostfile {hostfile}") if hostfile is not None else None
    except InputErrors as error:
        mistakes += error.mistakes
    refuse(mistakes)
    return stock, listed


def table_file(path: Path, called: str) -> TableFile:
    """The rank table in a file, under the given name. Raises InputErrors."""
    data = read_bytes(path)
    text = text_of(data, str(path))
    refuse_other(str(path), text, InputKind.RANK_TABLE)
    return TableFile(called, text, posix_cksum(data))


def _of_table(file: TableFile, stock: Inventory) -> tuple[Inventory, Targets]:
    """The table's servers, under their names in the inventory; without any, its flaws are mistakes."""
    table, flaws = read_table(file.text)
    if table is None or not table.hosts():
        refuse(Mistake(file.path, flaw.spot.line if flaw.spot else None, flaw.message) for flaw in flaws)
        raise InputErrors([Mistake(file.path, None, "names no server")])
    if table.form == "2.0":
        message = "form 2.0 names no hosts: name them as well (HOSTS or -F)"
        raise InputErrors([Mistake(file.path, None, message)])
    hosts: dict[str, Host] = {}
    mistakes = []
    lines = {entry.id: entry.spot.line for entry in table.servers}
    for server, address, _ in table.hosts():
        ids = [text for text in (server, address) if text]
        known = next((h for h in stock.hosts.values() if {h.name, h.address, h.data} & set(ids)), None)
        name = known.name if known else next((text for text in ids if is_host(text)), None)
        if name is None:
            message = (
                f"server_id {shown(server)} is not a host name; name the hosts as well, in the same order"
            )
            mistakes.append(Mistake(file.path, lines[server], message))
            continue
        hosts[name] = known or Host(name, name)
    refuse(mistakes)
    if stock.hosts:
        stock = replace(stock, hosts={**stock.hosts, **hosts})
    return stock, Targets(tuple(hosts.values()), f"rank table {file.path}")


def _choose_hosts(
    nodesets: Sequence[str], listed: Targets | None, local: bool, stock: Inventory, environ: Mapping[str, str]
) -> Targets:
    if nodesets:
        return Targets(_of_nodesets(nodesets, stock.groups if stock.file else None), COMMAND_LINE)
    if listed is not None:
        return listed
    if not local and stock.hosts:
        return Targets(tuple(stock.hosts.values()), f"inventory {stock.file}")
    if not local and (given := allocation(environ)):
        return Targets(*given)
    if not local and stock.file:
        raise UsageError(f"The inventory {stock.file} lists no hosts, and none are named.", NAME_THEM)
    if not local:
        refuse_lost_nodes(environ)
    own = socket.gethostname()
    name = own if is_host(own) else "localhost"
    return Targets((Host(name, name),), LOCAL, local=True)


def _of_nodesets(nodesets: Sequence[str], groups: Mapping[str, Sequence[str]] | None) -> tuple[Host, ...]:
    hosts: dict[str, Host] = {}
    for text in nodesets:
        for named in unfold_users(text, groups):
            for name in named.hosts:
                user = hosts[name].user if name in hosts else None
                if user and named.user and user != named.user:
                    raise UsageError(f"{shown(name)} has two users: {shown(user)} and {shown(named.user)}")
                hosts[name] = Host(name, name, user=user or named.user)
    return tuple(hosts.values())


def _with_settings(named: Targets, stock: Inventory) -> tuple[Host, ...]:
    """The named hosts with the inventory's settings; values given with the names take precedence."""
    if named.local:
        return tuple(_this_machine(host.name, stock) for host in named.hosts)
    strange = [host.name for host in named.hosts if stock.hosts and host.name not in stock.hosts]
    if strange:
        message = f"{shown(fold(strange), 200)} is not in the inventory {stock.file}"
        raise UsageError(message, suggest(strange[0], stock.hosts))
    return tuple(_apply_settings(host, stock) for host in named.hosts)


def _apply_settings(host: Host, stock: Inventory) -> Host:
    under = stock.hosts.get(host.name) or Host(host.name, host.address, **stock.defaults)
    said = {name: getattr(host, name) for name in ("user", "ranks", "data") if getattr(host, name)}
    return replace(under, **said)


def _this_machine(name: str, stock: Inventory) -> Host:
    """This machine, with its settings if the inventory lists it; nothing is dialled."""
    known = stock.hosts.get(name) or stock.hosts.get(name.partition(".")[0])
    host = known or Host(name, name, **stock.defaults)
    return replace(host, address="localhost", user=None, port=None, jump=None)


def _without(hosts: tuple[Host, ...], exclude: Sequence[str], stock: Inventory) -> tuple[Host, ...]:
    """Remove the excluded hosts; a name that neither they nor the inventory have is a mistake."""
    known = {host.name for host in hosts} | set(stock.hosts)
    out: set[str] = set()
    for text in exclude:
        names = unfold(text, stock.groups if stock.file else None)
        strange = [name for name in names if name not in known]
        if strange:
            message = f"--exclude: {shown(fold(strange), 200)} is not among the hosts"
            raise UsageError(message, suggest(strange[0], sorted(known)))
        out.update(names)
    left = tuple(host for host in hosts if host.name not in out)
    if not left:
        raise UsageError("--exclude leaves no host to examine")
    return left


def _wishes(stock: Inventory, hosts: Iterable[Host], left: Iterable[Host]) -> JobWishes:
    """The wishes of the inventory. A head that is excluded is ignored; an unknown head is a mistake."""
    head = stock.wishes.head
    if head is None or head.value in {host.name for host in left}:
        return stock.wishes
    known = [host.name for host in hosts]
    if not stock.hosts and head.value not in known:
        raise UsageError(
            f"{head.source}: head {shown(head.value)} is not one of the hosts", suggest(head.value, known)
        )
    return replace(stock.wishes, head=None)

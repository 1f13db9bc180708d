"""Finds out whom a line is about: maps processes, devices and addresses to ranks and hosts.

A value without a known mapping stays as it is written.
"""

from __future__ import annotations

import ipaddress
import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from doctor.logs.judge.job_facts import JobFacts
from doctor.logs.model import Form, LogFile, LogLine, Logs, Party

if TYPE_CHECKING:
    from doctor.job.ranktable import RankTable

MOST_RANKS = 1_000_000
_BARE = re.compile(r"\[?([0-9A-Fa-f:.]+?)\]?(?:%[\w.-]+)?(?:/(\d{1,3})|:\d{1,5}|<\d{1,5}>)?")
_OF_DEVICES = frozenset({Form.PLOG, Form.CANN, Form.TORCH_NPU})
"""Forms whose lines state the device of a process, where others only have its local rank."""
Key = tuple[Hashable, ...]
_K = TypeVar("_K")
_V = TypeVar("_V")

_NO_HOST = ""


@dataclass(frozen=True, slots=True)
class PartyMaps:
    """The mappings. A key with two possible values is left out: nothing is guessed."""

    host_of_address: Mapping[str, str]
    rank_of_device: Mapping[tuple[str, int], int]
    rank_of_pid: Mapping[tuple[str, int], int]
    """The key is a host and a process; a file replaces the host if that is unknown. What a launcher says of a
    process in a file of its own leads to a rank if all logs know only one rank of that process.
    """
    host_of_rank: Mapping[int, str]
    device_of_pid: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """The key is that of `rank_of_pid`."""
    moved: frozenset[int] = frozenset()
    """Ranks with two hosts in the logs: all lines of a shared file may have been taken for one host's."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Other spelling of a host's name -> its name in the plan."""

    def settled(self, party: Party, file: LogFile | None) -> Party:
        """The party with all known values. `file` is its own log; None for a party that a line only names."""
        rank, host, device = party.rank, party.host, party.device
        if party.address:
            ip, on = bare(party.address)
            device = on if device is None else device
            if ip:
                host = host or self.host_of_address.get(ip)
                if rank is None and device is not None:
                    rank = self.rank_of_device.get((ip, device))
        host = self.host(host) if host else None
        if file is not None and rank is None and party.pid is not None:
            rank = self.rank_of_pid.get((host or file.name, party.pid))
            if rank is None and not host and Form.KERNEL not in file.forms:
                rank = self.rank_of_pid.get((_NO_HOST, party.pid))
        if rank is None and host and party.pid is not None:
            rank = self.rank_of_pid.get((host, party.pid))
        if device is None and party.pid is not None:
            device = self.device_of_pid.get((host or (file.name if file else ""), party.pid))
        if rank is None and host and device is not None:
            rank = self.rank_of_device.get((host, device))
        if rank is not None and (host is None or rank in self.moved):
            host = self.host_of_rank.get(rank)
        return replace(party, rank=rank, host=host, device=device)

    def host(self, written: str) -> str:
        """The host's name in the plan; an address becomes the name of its host."""
        ip, _ = bare(written)
        if ip:
            return self.host_of_address.get(ip, written)
        return self.names.get(written) or self.names.get(written.partition(".")[0]) or written


def places_of(logs: Logs, known: JobFacts) -> PartyMaps:
    names = {name: each.name for each in known.hosts for name in (each.name, each.name.partition(".")[0])}
    addresses: dict[str, set[str]] = defaultdict(set)
    for each in known.hosts:
        for address in each.addresses:
            ip = bare(address)[0]
            if not ip:
                names.setdefault(address, each.name)
            elif not ipaddress.ip_address(ip).is_loopback:
                addresses[ip].add(each.name)
    devices: dict[tuple[str, int], set[int]] = defaultdict(set)
    hosts: dict[int, set[str]] = defaultdict(set)
    for table in known.tables:
        _of_table(table, addresses, devices, hosts, names)
    _of_plan(known, devices, hosts)
    pids: dict[tuple[str, int], set[int]] = defaultdict(set)
    used: dict[tuple[str, int], set[int]] = defaultdict(set)
    told: dict[int, set[str]] = defaultdict(set)
    no_tasks = tasks_start_ranks(logs)
    for file, line in _lines(logs):
        if no_tasks and line.form is Form.SLURM:
            continue
        who = line.who
        rank = who.rank if who.rank is not None else file.who.rank
        host = who.host or file.who.host
        host = names.get(host, names.get(host.partition(".")[0], host)) if host else None
        if line.form in _OF_DEVICES and who.pid is not None and who.device is not None:
            used[(host or file.name, who.pid)].add(who.device)
        if rank is None:
            continue
        if host:
            (told if line.form is Form.ELASTIC else hosts)[rank].add(host)
        if who.pid is not None:
            pids[(host or file.name, who.pid)].add(rank)
            pids[(_NO_HOST, who.pid)].add(rank)
    moved = frozenset(rank for rank in {*hosts, *told} if len(hosts[rank] | told[rank]) > 1)
    hosts.update({rank: some for rank, some in told.items() if some})  # a table has the host of each rank
    return PartyMaps(
        _only(addresses), _only(devices), _only(pids), _only(hosts), _only(used), moved, names
    )  # fmt: skip


def tasks_start_ranks(logs: Logs) -> bool:
    """Whether the tasks of Slurm are launchers such as torchrun, so that their numbers are not ranks."""
    return any(Form.ELASTIC in file.forms for file in logs.files) or any(
        each.symptom.id.startswith("deepspeed-") for each in logs.sightings
    )


def _of_table(
    table: RankTable,
    addresses: dict[str, set[str]],
    devices: dict[tuple[str, int], set[int]],
    hosts: dict[int, set[str]],
    names: Mapping[str, str],
) -> None:
    for server in table.servers:
        said = [each for each in (server.host_ip, server.id) if each]
        if not said:
            continue
        ips = [ip for each in said if (ip := bare(each)[0])]
        by_ip = (next(iter(addresses[ip])) for ip in ips if len(addresses[ip]) == 1)
        name = next(chain(by_ip, (names[each] for each in said if each in names), said))
        for ip in ips:
            addresses[ip].add(name)
        for entry in server.entries:
            if entry.rank is None:
                continue
            hosts[entry.rank].add(name)
            own = {ip for address in entry.addresses if (ip := bare(address)[0])}
            for ip in own:
                addresses[ip].add(name)
            if entry.device is not None:
                for place in {*said, *ips, name, *own}:
                    devices[(place, entry.device)].add(entry.rank)


def _of_plan(known: JobFacts, devices: dict[tuple[str, int], set[int]], hosts: dict[int, set[str]]) -> None:
    """Number the ranks host by host. If a table disagrees, the key has two values and is left out."""
    first = 0
    for each in known.hosts:
        if each.ranks is None:
            return
        for local in range(each.ranks):
            hosts[first + local].add(each.name)
            if not known.tables:
                devices[(each.name, local)].add(first + local)
        first += each.ranks


def _only(several: Mapping[_K, set[_V]]) -> dict[_K, _V]:
    return {key: next(iter(values)) for key, values in several.items() if len(values) == 1}


def _lines(logs: Logs) -> Iterator[tuple[LogFile, LogLine]]:
    files = {file.name: file for file in logs.files}
    for file in logs.files:
        yield from ((file, line) for line in (file.last, *file.progress, *file.odd) if line is not None)
    for each in logs.sightings:
        yield from ((files[line.file], line) for line in (each.first, each.last))


def bare(address: str) -> tuple[str, int | None]:
    """The IP of an address with port, brackets or device ("127.10.0.1/1"), and that device."""
    text = address.strip()
    if text.startswith("["):
        text, _, rest = text[1:].partition("]")
        device = rest[1:] if rest.startswith("/") else ""
    elif text.count(":") > 1:
        text, _, device = text.partition("/")
    else:
        found = _BARE.fullmatch(text)
        if not found:
            return "", None
        text, device = found[1], found[2] or ""
    try:
        ip = ipaddress.ip_address(text.partition("%")[0].removeprefix("::ffff:"))
    except ValueError:
        return "", None
    return str(ip), int(device) if device.isdecimal() and len(device) < 4 else None


def is_name(host: str) -> bool:
    """Whether it is a name that the host can be reached by: not an address, not "localhost", and not the
    label of a process, such as `train_worker_3`: no name of a host has an underscore.
    """
    return not bare(host)[0] and host.partition(".")[0] != "localhost" and not {"*", "_"} & {*host}


def key(party: Party, file: str = "") -> Key:
    """The identity of a party, for comparisons."""
    if party.rank is not None:
        return ("rank", party.rank)
    place = party.host or (bare(party.address)[0] or party.address if party.address else None)
    if party.device is not None and (place or party.pid is None):
        return ("device", place or f"{file.rpartition('/')[0]}/", party.device)
    if party.pid is not None:
        return ("pid", party.host or file, party.pid)
    return ("host", place) if place else ("file", file)


def covers(one: Party, other: Party) -> bool:
    """Whether a description as partial as `one` may mean `other`: no value differs, and one is the same."""
    if one.rank is not None and other.rank is None:
        return False
    pairs = ((one.rank, other.rank), (one.host, other.host), (one.pid, other.pid), (one.device, other.device))
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    return any(a is not None and a == b for a, b in pairs[:3]) and all(a == b for a, b in known)


def apart(one: Party, other: Party) -> bool:
    """Whether two parties are known to differ."""
    pairs = ((getattr(one, name), getattr(other, name)) for name in ("rank", "host", "device", "pid"))
    return any(None not in pair and pair[0] != pair[1] for pair in pairs)


def numbers(text: str) -> tuple[int, ...]:
    """The numbers in a text such as "1, 3-5"."""
    found: list[int] = []
    for first, last in re.findall(r"(?<![\d-])(\d{1,7})(?!\d)(?:\s*-\s*(\d{1,7})(?!\d))?", text)[:10_000]:
        begin, end = int(first), int(last or first)
        found += range(begin, end + 1) if end - begin <= MOST_RANKS // 10 else ()
    return tuple(dict.fromkeys(found))


def named(taken: Mapping[str, str], prefix: str = "") -> Iterable[Party]:
    """The parties that the groups of a symptom name; `prefix` is `peer_` for those at the other end."""
    host, address = taken.get(f"{prefix}host"), taken.get(f"{prefix}address")
    device, pid = (_number(taken.get(f"{prefix}{name}")) for name in ("device", "pid"))
    pid = pid or None  # mpirun writes 0 for a process that it does not know
    if lid := taken.get(f"{prefix}lid"):
        address = f"LID {lid}"
    ranks = numbers(taken.get(f"{prefix}ranks", "")) or numbers(taken.get(f"{prefix}rank", ""))[:1]
    base = Party(None, host or None, device, pid, address or None)
    if ranks:
        return [replace(base, rank=rank) for rank in ranks]
    return [base] if base != Party() else []


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() and len(text) < 11 else None

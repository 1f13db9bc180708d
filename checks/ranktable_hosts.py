"""Rank tables and the hosts: true of their devices, and the same file everywhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from shlex import quote

from doctor.api import (
    PLAN,
    UNDECIDED,
    Backend,
    Confidence,
    Evidence,
    JobPlan,
    Place,
    Problem,
    Scope,
    Severity,
    Skip,
    Undecided,
    check,
    fold,
    maybe,
)
from doctor.facts.hccn import NPU_ADDRESSES, Address, PerDevice, Unsaid
from doctor.facts.network import ADDRESSES
from doctor.facts.npu import NPU_SUPER_POD, SuperPod
from doctor.facts.system import DEVICES, Devices
from doctor.facts.tables import RANK_TABLE, TABLE_FILES, Entry, HostFile, Server, TableSeen, server_of


@check(
    "rank-table-devices",
    RANK_TABLE,
    PLAN,
    DEVICES,
    maybe(ADDRESSES),
    maybe(NPU_ADDRESSES),
    maybe(NPU_SUPER_POD),
    scope=Scope.CLUSTER,
    causes=("device-missing", "device-ip-missing", "device-ip-not-applied"),
    backends=(Backend.HCCL,),
)
def rank_table_devices(
    seen: TableSeen,
    plan: JobPlan,
    devices: Mapping[str, Devices],
    addresses: Mapping[str, Mapping[str, tuple[str, ...]]],
    npus: Mapping[str, PerDevice[Address | None]],
    pods: Mapping[str, Mapping[int, SuperPod]],
) -> Iterator[Problem]:
    """A device or address in the rank table is not what the host has.

    Why it matters: every rank connects to the addresses of the table. One that belongs to no device, or to
    another, ends in a timeout on all ranks (EI0006), or in EJ0004 on the one that owns the entry.

    What to do: `doctor ranktable make` writes the table anew from the live devices; or give the device the
    address that the table has.
    """
    table = seen.table
    if table is None:
        raise Undecided("the table cannot be read")
    if table.form == "2.0":
        raise Skip("a table of form 2.0 does not say which host a rank is on")
    servers = {host: server_of(table.servers, plan.host(host), addresses.get(host, {})) for host in devices}
    form = {"1.2": " --format 1.2", "board-id": " --format legacy"}.get(table.form, "")
    again = (f"doctor ranktable make {quote(fold(plan.names))}{form} --output {quote(seen.path)}",)
    for host, server in servers.items():
        if server is None:
            yield Problem(
                "the rank table has no entry for this host",
                expected="a server_id that is its name or an address of it",
                actual=f"there are {', '.join(s.id for s in table.servers[:6])}",
                subject=seen.path,
                hosts=(host,),
                evidence=(Evidence(seen.path, f"{len(table.servers)} servers"),),
                commands=again,
            )
            continue
        for words, entries in _wrong(server, devices[host], npus.get(host, {}), pods.get(host, {})).items():
            summary, expected, actual = words
            yield Problem(
                summary,
                expected=expected,
                actual=actual,
                subject=f"rank {entries[0].rank}" if entries[0].rank is not None else seen.path,
                hosts=(host,),
                where=tuple(Place(host=host, rank=e.rank, device=e.device) for e in entries),
                evidence=tuple(
                    Evidence(f"{seen.path}:{e.spot.line}", f"server_id {server.id}: {expected}")
                    for e in entries[:4]
                ),
                commands=again,
            )
    known = {server.id for server in servers.values() if server}
    left = [server.id for server in table.servers if server.id not in known]
    if left and len(devices) == len(plan.hosts):
        yield Problem(
            f"the rank table has servers that are none of the hosts examined: {', '.join(left[:6])}",
            expected="the servers of the table are the hosts of the job",
            actual=f"{len(left)} of {len(table.servers)} are not: a job without them needs another table",
            subject=seen.path,
            severity=Severity.WARN,
            evidence=(Evidence(seen.path, ", ".join(left[:20])),),
            commands=again,
        )
    blind = {host: _unread(server, npus.get(host)) for host, server in servers.items() if server}
    silent = {host: why for host, why in blind.items() if why}
    if silent:
        raise Undecided(f"addresses of its NPUs are not known: {next(iter(silent.values()))}", tuple(silent))


Words = tuple[str, str, str]


def _wrong(
    server: Server,
    devices: Devices,
    npus: PerDevice[Address | None],
    pods: Mapping[int, SuperPod],
) -> Mapping[Words, list[Entry]]:
    """What the table says of this host and is not so: (summary, in the table, on the host) -> entries."""
    found: dict[Words, list[Entry]] = {}
    for entry in server.entries:
        number = entry.device
        if number is None:
            continue
        live = npus.get(number)
        pod = pods.get(number)
        if number not in devices.npus:
            there = ", ".join(map(str, devices.npus)) or "no NPU"
            words = (
                f"device {number} of the rank table is not there",
                f"device {number}",
                f"the host has {there}",
            )
        elif entry.address and isinstance(live, Address) and live.ip != entry.address:
            words = (
                f"device {number} has another address than the rank table says",
                f"device_ip {entry.address}",
                f"{live.ip}",
            )
        elif entry.super_device is not None and pod and pod.device_id != entry.super_device:
            words = (
                f"device {number} has another super_device_id than the rank table says",
                f"super_device_id {entry.super_device}",
                f"SDID {pod.device_id}",
            )
        else:
            continue
        found.setdefault(words, []).append(entry)
    return found


def _unread(server: Server, npus: PerDevice[Address | None] | None) -> str:
    """Why an address of the table could not be compared; device-ip-missing tells where none is set."""
    for entry in server.entries:
        if entry.address and entry.device is not None:
            live = (
                npus.get(entry.device, "")
                if npus is not None
                else Unsaid("hccn_tool could not be asked (device-ip-missing says why)")
            )
            if isinstance(live, Unsaid):
                return f"device {entry.device}: {live.reason}"
    return ""


@check("rank-table-differs", TABLE_FILES, PLAN, maybe(RANK_TABLE), scope=Scope.CLUSTER)
def rank_table_differs(
    files: Mapping[str, Mapping[str, HostFile]], plan: JobPlan, seen: TableSeen | None
) -> Iterator[Problem]:
    """The rank table at the job's path is not the same file on every host.

    Why it matters: each process reads its own host's copy. A copy that was not updated gives its ranks other
    peers than all the others have; one that is missing makes torch_npu negotiate while the others do not.

    What to do: copy the right file to every host, or put it on a shared file system.
    """
    for path in plan.table_paths:
        held = {host: found[path] for host, found in files.items() if path in found}
        if path in plan.env.values():
            yield from _absent(path, {host: file for host, file in held.items() if file.trouble})
        there = {host: file for host, file in held.items() if not file.trouble}
        given = seen.text.strip() if seen and seen.given and seen.path == path else None
        right = _right(there, given)
        odd = tuple(host for host, file in there.items() if file.checksum != right)
        if odd and (given is not None or len({file.checksum for file in there.values()}) > 1):
            yield _odd(path, odd, there, right, given)


def _right(there: Mapping[str, HostFile], given: str | None) -> str | None:
    """The checksum that all should have: that of the table given, else of the majority; None: undecided."""
    if given is not None:
        return next((file.checksum for file in there.values() if file.text == given), "")
    votes = Counter(file.checksum for file in there.values()).most_common()
    return None if len(votes) > 1 and votes[0][1] == votes[1][1] else votes[0][0] if votes else None


def _absent(path: str, files: Mapping[str, HostFile]) -> Iterator[Problem]:
    for trouble in dict.fromkeys(file.trouble for file in files.values()):
        hosts = tuple(host for host, file in files.items() if file.trouble == trouble)
        yield Problem(
            f"the job's rank table: {trouble}",
            expected=f"{path} on every host",
            actual=trouble,
            subject=path,
            hosts=hosts,
            evidence=(Evidence(path, trouble),),
            commands=(f"ls -l {quote(path)}",),
        )


def _odd(
    path: str, odd: tuple[str, ...], there: Mapping[str, HostFile], right: str | None, given: str | None
) -> Problem:
    whole = given or next((file.text for file in there.values() if file.checksum == right), "")
    decided = right is not None
    return Problem(
        "the rank table on this host is not the right one"
        if decided
        else "the hosts have different rank tables" + UNDECIDED,
        expected="the same file on every host",
        actual=_difference(whole, there[odd[0]].text) if decided else f"{len(odd)} hosts, {path} differs",
        subject=path,
        hosts=odd,
        confidence=Confidence.CERTAIN if decided else Confidence.SUSPECT,
        evidence=tuple(Evidence(f"{host}: {path}", f"cksum {there[host].checksum}") for host in odd[:6]),
        commands=(f"cksum {quote(path)}",),
    )


def _difference(right: str, wrong: str) -> str:
    """The first line in which two texts differ."""
    for number, (a, b) in enumerate(zip(right.splitlines(), wrong.splitlines(), strict=False), 1):
        if a != b:
            return f"line {number}: {b.strip()[:100]!r} instead of {a.strip()[:100]!r}"
    return f"{len(wrong.splitlines())} lines instead of {len(right.splitlines())}"

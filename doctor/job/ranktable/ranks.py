"""Ranks, devices, servers and the numbers that must add up."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.job.ranktable.case import TableRule, TableRules, folded
from doctor.job.ranktable.flaws import UnplacedFlaw
from doctor.job.ranktable.model import RankEntry, Spot
from doctor.model import Severity


def repeated_ranks(case: TableRules) -> Iterator[UnplacedFlaw]:
    for entry, other in _again(case):
        actual = f"rank {entry.rank} again, first on line {other.spot.line}"
        yield case.flaw(entry, "rank_id", f"rank {entry.rank} is given twice", "each rank once", actual)


def missing_ranks(case: TableRules) -> Iterator[UnplacedFlaw]:
    entries = list(case.table.in_file_order())
    given = {entry.rank for entry in entries if entry.rank is not None}
    if not entries or any(entry.rank is None for entry in entries):
        return  # which one it is that is missing cannot be told
    wanted = range(len(entries))
    missing = [rank for rank in wanted if rank not in given]
    if not missing:
        return
    astray = [entry for entry in entries if entry.rank not in wanted]
    place = [*astray, *(entry for entry, _ in _again(case))][0]
    expected = f"ranks {folded(wanted)}"
    if min(given) == 1 and len(given) == len(entries) and max(given) == len(entries):
        message = "ranks begin at 1, and HCCL counts from 0"
        place = next(entry for entry in entries if entry.rank == 1)
    else:
        some = "rank" if len(missing) == 1 else "ranks"
        message = f"{some} {folded(missing)} of {len(entries)} missing"
    yield case.flaw(place, "rank_id", message, expected, folded(given))


def interleaved_servers(case: TableRules) -> Iterator[UnplacedFlaw]:
    """The documentation does not support it; HCCL does not check it."""
    if case.table.form in ("2.0", "group-list"):
        return
    blocks: dict[str, int] = {}
    before = ""
    for entry in case.table.entries:
        if entry.rank is None or not entry.server:
            continue
        blocks[entry.server] = blocks.get(entry.server, 0) + (entry.server != before)
        before = entry.server
    for server in case.table.servers:
        if blocks.pop(server.id, 0) > 1:
            entries = [entry for entry in case.table.entries if entry.server == server.id]
            actual = f"ranks {folded(entry.rank for entry in entries if entry.rank is not None)}"
            message = "the ranks of a server are mixed with those of another"
            yield case.flaw(server, None, message, "consecutive ranks on each server", actual, Severity.WARN)


def repeated_devices(case: TableRules) -> Iterator[UnplacedFlaw]:
    """In form 2.0 a server is known by a chosen name, which may stand for more than one."""
    severity = Severity.WARN if case.table.form == "2.0" else Severity.FAIL
    first: dict[tuple[str, int], RankEntry] = {}
    for entry in case.table.in_file_order():
        if entry.device is None or not entry.server:
            continue
        other = first.setdefault((entry.server, entry.device), entry)
        if other is not entry:
            message = f"device {entry.device} is given twice on a server"
            actual = f"device {entry.device} again, first on line {other.spot.line}"
            yield case.flaw(entry, "device_id", message, "each device once", actual, severity)


def repeated_servers(case: TableRules) -> Iterator[UnplacedFlaw]:
    if case.table.form not in ("1.0", "1.2"):
        return
    first: dict[str, Spot] = {}
    for server in case.table.servers:
        spot = first.setdefault(server.id, server.spot)
        if server.id and spot != server.spot:
            message = "server_id is given twice in server_list"
            yield case.flaw(server, "server_id", message, "each server once", f"first on line {spot.line}")


def wrong_counts(case: TableRules) -> Iterator[UnplacedFlaw]:
    for count in case.table.counts:
        if count.said != count.found:
            message = f"{count.name} is {count.said}, but {count.things}: {count.found}"
            yield case.flaw(count.spot, None, message, f'"{count.found}"')


def wrong_nics(case: TableRules) -> Iterator[UnplacedFlaw]:
    """MindSpore's tutorials count the devices here, of one server or of all."""
    table = case.table
    most = max((len(server.entries) for server in table.servers), default=0)
    if table.nics and len(table.nics) not in (most, table.ranks):
        message = "para_plane_nic_name does not have as many names as a server has devices"
        actual = f"{len(table.nics)} names"
        yield case.flaw(None, "para_plane_nic_name", message, f"{most} names", actual, Severity.WARN)


def _again(case: TableRules) -> Iterator[tuple[RankEntry, RankEntry]]:
    """Each entry whose rank another had before it, with the first that had it."""
    first: dict[int, RankEntry] = {}
    for entry in case.table.in_file_order():
        if entry.rank is not None and (other := first.setdefault(entry.rank, entry)) is not entry:
            yield entry, other


RANK_RULES: tuple[TableRule, ...] = (
    repeated_ranks,
    missing_ranks,
    interleaved_servers,
    repeated_devices,
    repeated_servers,
    wrong_counts,
    wrong_nics,
)

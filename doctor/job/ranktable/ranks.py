"""Rules about ranks, devices, servers, superpods and the numbers that must add up."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from itertools import groupby

from doctor.job.ranktable.case import TableRule, TableRules, folded, repeats
from doctor.job.ranktable.flaws import UnplacedFlaw, said
from doctor.model import Severity
from doctor.text.textfile import shown


def repeated_ranks(case: TableRules) -> Iterator[UnplacedFlaw]:
    for entry, other in repeats(case.table.in_file_order(), lambda e: (e.rank,)):
        told = said("rank twice", rank=entry.rank, line=other.spot.line)
        yield case.flaw(entry, "rank_id", *told)


def missing_ranks(case: TableRules) -> Iterator[UnplacedFlaw]:
    entries = list(case.table.in_file_order())
    given = {entry.rank for entry in entries if entry.rank is not None}
    if not entries or any(entry.rank is None for entry in entries):
        return  # it is unknown which rank is missing
    wanted = range(len(entries))
    missing = [rank for rank in wanted if rank not in given]
    if not missing:
        return
    astray = [entry for entry in entries if entry.rank not in wanted]
    place = astray[0] if astray else next(repeats(entries, lambda e: (e.rank,)))[0]
    values = {"wanted": folded(wanted), "given": folded(given)}
    if min(given) == 1 and len(given) == len(entries) and max(given) == len(entries):
        told = said("ranks from 1", **values)
        place = next(entry for entry in entries if entry.rank == 1)
    else:
        some = f"rank{'s' * (len(missing) > 1)} {folded(missing)}"
        told = said("ranks missing", ranks=some, number=len(entries), **values)
    yield case.flaw(place, "rank_id", *told)


def interleaved_servers(case: TableRules) -> Iterator[UnplacedFlaw]:
    """Servers with mixed ranks. The documentation does not support them; HCCL does not check."""
    if case.table.form in ("2.0", "group-list"):
        return
    ordered = [entry.server for entry in case.table.entries if entry.rank is not None and entry.server]
    blocks = Counter(server for server, _ in groupby(ordered))
    for server in case.table.servers:
        if blocks.pop(server.id, 0) > 1:
            ranks = folded(entry.rank for entry in case.table.entries if entry.server == server.id)
            yield case.flaw(server, None, *said("servers mixed", ranks=ranks), severity=Severity.WARN)


def repeated_devices(case: TableRules) -> Iterator[UnplacedFlaw]:
    """Devices given twice. In form 2.0 the server is a chosen name, which may stand for several servers."""
    severity = Severity.WARN if case.table.form == "2.0" else Severity.FAIL
    for entry, other in repeats(case.table.in_file_order(), lambda e: (e.server or None, e.device)):
        told = said("device twice", device=entry.device, line=other.spot.line)
        yield case.flaw(entry, "device_id", *told, severity=severity)


def repeated_servers(case: TableRules) -> Iterator[UnplacedFlaw]:
    if case.table.form not in ("1.0", "1.2"):
        return
    for server, other in repeats(case.table.servers, lambda server: (server.id or None,)):
        yield case.flaw(server, "server_id", *said("server twice", line=other.spot.line))


def wrong_counts(case: TableRules) -> Iterator[UnplacedFlaw]:
    for count in case.table.counts:
        if count.said != count.found:
            right = count.found if case.table.form == "2.0" else f'"{count.found}"'
            yield case.flaw(count.spot, None, *said("wrong count", right=right, **asdict(count)))


def wrong_nics(case: TableRules) -> Iterator[UnplacedFlaw]:
    """Wrong numbers of network cards. MindSpore's tutorials count the devices of one server or of all."""
    table = case.table
    most = max((len(server.entries) for server in table.servers), default=0)
    if table.nics and len(table.nics) not in (most, table.ranks):
        told = said("number of NICs", most=most, number=len(table.nics))
        yield case.flaw(None, "para_plane_nic_name", *told, severity=Severity.WARN)
    twice = [name for name, count in Counter(table.nics).items() if count > 1]
    if twice:
        told = said("NIC twice", names=", ".join(map(shown, twice[:4])))
        yield case.flaw(None, "para_plane_nic_name", *told, severity=Severity.WARN)


def wrong_members(case: TableRules) -> Iterator[UnplacedFlaw]:
    for pod, _ in repeats(case.table.super_pods, lambda pod: (pod.id or None,)):
        yield case.flaw(pod.spot, "super_pod_id", *said("superpod twice"))
    known = {server.id for server in case.table.servers}
    placed: set[str] = set()
    for pod in case.table.super_pods:
        for server in pod.servers:
            if server not in known:
                told = said("superpod of an unknown server", server=shown(server))
                yield case.flaw(pod.spot, "server_list", *told)
            elif server in placed:
                told = said("server in two superpods", server=shown(server))
                yield case.flaw(pod.spot, "server_list", *told)
            placed.add(server)
    for one in case.table.servers:
        if case.table.super_pods and one.id and one.id not in placed:
            yield case.flaw(one, "server_id", *said("server in no superpod"))


def mixed_pods(case: TableRules) -> Iterator[UnplacedFlaw]:
    """Superpods with mixed servers. The documentation does not support them; HCCL does not check."""
    inside = [server for server in case.table.servers if server.super_pod is not None]
    firsts = (next(block) for _, block in groupby(inside, lambda server: server.super_pod))
    for server, _ in repeats(firsts, lambda server: (server.super_pod,)):
        yield case.flaw(server, "server_id", *said("superpods mixed"), severity=Severity.WARN)


def missing_super_devices(case: TableRules) -> Iterator[UnplacedFlaw]:
    if case.table.form != "1.2" or not case.table.super_pods:
        return
    for server in case.table.servers:
        without = [entry for entry in server.entries if entry.super_device is None]
        if without:
            devices = folded(entry.device for entry in without)
            yield case.flaw(without[0], None, *said("no super_device_id", devices=devices))


def repeated_super_devices(case: TableRules) -> Iterator[UnplacedFlaw]:
    pods = {server.id: server.super_pod for server in case.table.servers if case.table.form == "1.2"}
    for entry, other in repeats(case.table.in_file_order(), lambda e: (pods.get(e.server), e.super_device)):
        told = said("super_device_id twice", device=entry.super_device, line=other.spot.line)
        yield case.flaw(entry, "super_device_id", *told)


RANK_RULES: tuple[TableRule, ...] = (
    repeated_ranks,
    missing_ranks,
    interleaved_servers,
    repeated_devices,
    repeated_servers,
    wrong_counts,
    wrong_nics,
    wrong_members,
    mixed_pods,
    missing_super_devices,
    repeated_super_devices,
)

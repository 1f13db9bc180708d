"""Rules about ranks, devices, servers, superpods and the numbers that must add up."""

from collections import Counter
from collections.abc import Iterator
from itertools import groupby

from doctor.job.ranktable.case import TableRule, TableRules, folded, repeats
from doctor.job.ranktable.flaws import UnplacedFlaw
from doctor.model import Severity
from doctor.text.textfile import shown


def repeated_ranks(case: TableRules) -> Iterator[UnplacedFlaw]:
    for entry, other in repeats(case.table.in_file_order(), lambda e: (e.rank,)):
        actual = f"rank {entry.rank} again, first on line {other.spot.line}"
        yield case.flaw(entry, "rank_id", f"rank {entry.rank} is given twice", "each rank once", actual)


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
    expected = f"ranks {folded(wanted)}"
    if min(given) == 1 and len(given) == len(entries) and max(given) == len(entries):
        message = "ranks begin at 1, but HCCL counts from 0"
        place = next(entry for entry in entries if entry.rank == 1)
    else:
        some = "rank" if len(missing) == 1 else "ranks"
        message = f"{some} {folded(missing)} of {len(entries)} missing"
    yield case.flaw(place, "rank_id", message, expected, folded(given))


def interleaved_servers(case: TableRules) -> Iterator[UnplacedFlaw]:
    """Servers with mixed ranks. The documentation does not support them; HCCL does not check."""
    if case.table.form in ("2.0", "group-list"):
        return
    ordered = [entry.server for entry in case.table.entries if entry.rank is not None and entry.server]
    blocks = Counter(server for server, _ in groupby(ordered))
    for server in case.table.servers:
        if blocks.pop(server.id, 0) > 1:
            entries = [entry for entry in case.table.entries if entry.server == server.id]
            actual = f"ranks {folded(entry.rank for entry in entries)}"
            message = "the ranks of a server are mixed with those of another"
            yield case.flaw(server, None, message, "consecutive ranks on each server", actual, Severity.WARN)


def repeated_devices(case: TableRules) -> Iterator[UnplacedFlaw]:
    """Devices given twice. In form 2.0 the server is a chosen name, which may stand for several servers."""
    severity = Severity.WARN if case.table.form == "2.0" else Severity.FAIL
    for entry, other in repeats(case.table.in_file_order(), lambda e: (e.server or None, e.device)):
        message = f"device {entry.device} is given twice on a server"
        actual = f"device {entry.device} again, first on line {other.spot.line}"
        yield case.flaw(entry, "device_id", message, "each device once", actual, severity)


def repeated_servers(case: TableRules) -> Iterator[UnplacedFlaw]:
    if case.table.form not in ("1.0", "1.2"):
        return
    for server, other in repeats(case.table.servers, lambda server: (server.id or None,)):
        message = "server_id is given twice in server_list"
        yield case.flaw(server, "server_id", message, "each server once", f"first on line {other.spot.line}")


def wrong_counts(case: TableRules) -> Iterator[UnplacedFlaw]:
    for count in case.table.counts:
        if count.said != count.found:
            message = f"{count.name} is {count.said}, but {count.things}: {count.found}"
            right = count.found if case.table.form == "2.0" else f'"{count.found}"'
            yield case.flaw(count.spot, None, message, f'"{count.name}": {right}')


def wrong_nics(case: TableRules) -> Iterator[UnplacedFlaw]:
    """Wrong numbers of network cards. MindSpore's tutorials count the devices of one server or of all."""
    table = case.table
    most = max((len(server.entries) for server in table.servers), default=0)
    if table.nics and len(table.nics) not in (most, table.ranks):
        message = "para_plane_nic_name does not have as many names as a server has devices"
        actual = f"{len(table.nics)} names"
        yield case.flaw(None, "para_plane_nic_name", message, f"{most} names", actual, Severity.WARN)
    twice = [name for name, count in Counter(table.nics).items() if count > 1]
    if twice:
        message, actual = "para_plane_nic_name has a name twice", ", ".join(map(shown, twice[:4]))
        yield case.flaw(None, "para_plane_nic_name", message, "each name once", actual, Severity.WARN)


def wrong_members(case: TableRules) -> Iterator[UnplacedFlaw]:
    for pod, _ in repeats(case.table.super_pods, lambda pod: (pod.id or None,)):
        yield case.flaw(pod.spot, "super_pod_id", "super_pod_id is given twice", "each superpod once")
    known = {server.id for server in case.table.servers}
    placed: set[str] = set()
    for pod in case.table.super_pods:
        for server in pod.servers:
            if server not in known:
                message = "a server of super_pod_list is not in server_list"
                yield case.flaw(pod.spot, "server_list", message, "a server_id of server_list", shown(server))
            elif server in placed:
                message = "a server belongs to two superpods"
                yield case.flaw(pod.spot, "server_list", message, "each server once", shown(server))
            placed.add(server)
    for one in case.table.servers:
        if case.table.super_pods and one.id and one.id not in placed:
            message = "a server belongs to no superpod of super_pod_list"
            yield case.flaw(one, "server_id", message, "each server in one superpod")


def mixed_pods(case: TableRules) -> Iterator[UnplacedFlaw]:
    """Superpods with mixed servers. The documentation does not support them; HCCL does not check."""
    inside = [server for server in case.table.servers if server.super_pod is not None]
    firsts = (next(block) for _, block in groupby(inside, lambda server: server.super_pod))
    for server, _ in repeats(firsts, lambda server: (server.super_pod,)):
        message = "the servers of a superpod are not listed together in server_list"
        expected = "all servers of one superpod, then those of the next"
        yield case.flaw(server, "server_id", message, expected, severity=Severity.WARN)


def missing_super_devices(case: TableRules) -> Iterator[UnplacedFlaw]:
    if case.table.form != "1.2" or not case.table.super_pods:
        return
    for server in case.table.servers:
        without = [entry for entry in server.entries if entry.super_device is None]
        if without:
            actual = f"none for devices {folded(entry.device for entry in without)}"
            expected = "the SDID of npu-smi info -t spod-info"
            yield case.flaw(without[0], None, "super_device_id is missing", expected, actual)


def repeated_super_devices(case: TableRules) -> Iterator[UnplacedFlaw]:
    pods = {server.id: server.super_pod for server in case.table.servers if case.table.form == "1.2"}
    for entry, other in repeats(case.table.in_file_order(), lambda e: (pods.get(e.server), e.super_device)):
        message = f"super_device_id {entry.super_device} is given twice in a superpod"
        actual = f"{entry.super_device} again, first on line {other.spot.line}"
        yield case.flaw(entry, "super_device_id", message, "each once in a superpod", actual)


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

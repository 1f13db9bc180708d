"""Superpods of form 1.2: which servers, and which device ids inside them."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.job.ranktable.case import TableRule, TableRules, folded
from doctor.job.ranktable.flaws import UnplacedFlaw
from doctor.job.ranktable.model import RankEntry
from doctor.model import Severity
from doctor.text.textfile import shown


def wrong_members(case: TableRules) -> Iterator[UnplacedFlaw]:
    known = {server.id for server in case.table.servers}
    pod_of: dict[str, str] = {}
    seen: set[str] = set()
    for pod in case.table.super_pods:
        if pod.id in seen and pod.id:
            yield case.flaw(pod.spot, "super_pod_id", "super_pod_id is given twice", "each superpod once")
        seen.add(pod.id)
        for server in pod.servers:
            if server not in known:
                message = "a server of super_pod_list is not in server_list"
                expected = "a server_id of server_list"
                yield case.flaw(pod.spot, "server_list", message, expected, shown(server))
            elif server in pod_of:
                message = "a server belongs to two superpods"
                yield case.flaw(pod.spot, "server_list", message, "each server once", shown(server))
            pod_of.setdefault(server, pod.id)
    for one in case.table.servers:
        if case.table.super_pods and one.id and one.id not in pod_of:
            message = "a server belongs to no superpod of super_pod_list"
            yield case.flaw(one, "server_id", message, "each server in one superpod")


def mixed_pods(case: TableRules) -> Iterator[UnplacedFlaw]:
    """The documentation does not support it; HCCL does not check it."""
    done: set[str] = set()
    before = ""
    for server in case.table.servers:
        pod = server.super_pod
        if pod is None:
            continue
        if pod != before and pod in done:
            message = "the servers of a superpod do not stand together in server_list"
            expected = "all servers of one superpod, then those of the next"
            yield case.flaw(server, "server_id", message, expected, severity=Severity.WARN)
        done.add(pod)
        before = pod


def wrong_super_devices(case: TableRules) -> Iterator[UnplacedFlaw]:
    if case.table.form != "1.2" or not case.table.super_pods:
        return
    first: dict[tuple[str, int], RankEntry] = {}
    for server in case.table.servers:
        without = [entry for entry in server.entries if entry.super_device is None]
        if without:
            devices = folded(entry.device for entry in without if entry.device is not None)
            message = "super_device_id is missing"
            expected = "the SDID of npu-smi info -t spod-info"
            yield case.flaw(without[0], None, message, expected, f"none for devices {devices}")
        for entry in server.entries:
            if entry.super_device is None or server.super_pod is None:
                continue
            other = first.setdefault((server.super_pod, entry.super_device), entry)
            if other is not entry:
                message = f"super_device_id {entry.super_device} is given twice in a superpod"
                actual = f"{entry.super_device} again, first on line {other.spot.line}"
                yield case.flaw(entry, "super_device_id", message, "each once in a superpod", actual)


POD_RULES: tuple[TableRule, ...] = (wrong_members, mixed_pods, wrong_super_devices)

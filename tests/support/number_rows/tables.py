"""Numbers in findings about rank tables."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from doctor.facts.ascend.network import Address
from doctor.facts.ascend.npu_smi_card import SuperPodPlace
from doctor.facts.tables import HostFile, JobTable
from doctor.job.launch.table_reference import TableReference
from doctor.job.plan import JobPlan
from doctor.job.ranktable import read_table
from tests.support.npu_cluster import FLAT, devices, plan
from tests.support.shown_numbers import Row

PATH = "/job/hccl.json"


def table(sizes: Sequence[int], **more: Any) -> str:
    """A table of servers with so many devices, one server on a line."""
    first = [sum(sizes[:n]) for n in range(len(sizes))]
    servers = [
        {
            "server_id": f"node{n}",
            "device": [
                {"device_id": str(d), "device_ip": FLAT.address(n, d), "rank_id": str(first[n - 1] + d)}
                | more
                for d in range(size)
            ],
        }
        for n, size in enumerate(sizes, 1)
    ]
    lines = ",\n".join(map(json.dumps, servers))
    head = f'"version": "1.0", "status": "completed", "server_count": "{len(sizes)}"'
    return f'{{{head},\n"server_list": [\n{lines}]}}'


def seen(text: str, product: str | None = None) -> JobTable:
    return JobTable(PATH, text, *read_table(text), given=True, checksum="1", product=product)


def devices_of(text: str, own: int = 8, *, strange: bool = False, **pods: Any) -> tuple[Any, ...]:
    """The facts of rank-table-devices, for three hosts, of which the table may not know the last."""
    hosts, npus = ("node1", "node2", "node3"), FLAT.of(numbers=range(own))
    if strange:
        npus["node3"] = {n: Address(f"10.20.9.{n}", 24) for n in range(own)}
    return seen(text), plan(), {host: devices(npus=range(own)) for host in hosts}, {}, npus, pods, {}


def copies(*texts: str) -> tuple[Any, ...]:
    """The hosts' copies of the table."""
    files = {f"h{n}": {PATH: HostFile(str(hash(text)), text)} for n, text in enumerate(texts)}
    return files, told(PATH, hosts=len(texts)), None, ()


def told(*paths: str, hosts: int = 1) -> JobPlan:
    tables = tuple(TableReference("RANK_TABLE_FILE", path, path) for path in paths)
    return replace(plan(*(f"h{n}" for n in range(hosts))), told_tables=tables, table_paths=paths)


def absent(paths: int) -> tuple[Any, ...]:
    names = [f"/job/t{n}.json" for n in range(paths)]
    return {"h0": {path: HostFile("", trouble="it is not there") for path in names}}, told(*names), None, ()


ROWS: dict[str, Row] = {
    "rank-table-devices: no entry": lambda others=4: (
        devices_of(table([8, 8] + [8] * others).replace("node3", "other"), strange=True),
        f"{2 + others} {others} {2 + others}",
    ),
    "rank-table-devices: superpod": lambda said=400, own=300: (
        devices_of(table([1, 1, 1], super_device_id=str(said)), 1, node1={0: SuperPodPlace(own, 0)}),
        f"0 {said} {own} 0 {said}",
    ),
    "rank-table-grouping: many": lambda devices=40: (
        (seen(table([devices, 8, 8]), "atlas-a2"), {}),
        f"8! 2! 3! {devices} {devices} 3! 8! 2! 3! {devices} 8! 1! 8! {devices} {devices} 3! 1! 8! {devices}",
    ),
    "rank-table-differs": lambda lines=8, right=64: (
        copies("x\n" * right, "x\n" * right, "x\n" * lines),
        f"{lines} {right} …",
    ),
    "rank-table-differs: absent": lambda paths=8: (absent(paths), f"{paths - 1} …"),
}

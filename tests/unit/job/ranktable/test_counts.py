"""The numbers of a rank table that must add up, and which server belongs to which superpod."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from doctor.job.ranktable import Flaw, judge, read_table
from doctor.model import Severity
from tests.support.paths import ROOT

SAMPLES = ROOT / "tests" / "samples" / "rank_table"
V10, V12, V20 = "v1.0_two_servers", "v1.2_two_superpods", "v2.0_950"

Document = dict[str, Any]


def sample(name: str) -> Document:
    document: Document = json.loads((SAMPLES / f"{name}.json").read_text())
    return document


def judged(document: Document) -> tuple[Flaw, ...]:
    table, flaws = read_table(json.dumps(document, indent=1))
    assert table is not None
    assert flaws == ()
    return judge(table)


@pytest.mark.parametrize(
    ("name", "change", "message", "actual"),
    [
        (
            V10,
            lambda d: d.update(server_count="3"),
            "server_count is 3, but servers in server_list: 2",
            "'\"3\"'",
        ),
        (V20, lambda d: d.update(rank_count=8), "rank_count is 8, but ranks in rank_list: 4", "'8'"),
        (
            "board_id",
            lambda d: d.update(group_count="2"),
            "group_count is 2, but groups in group_list: 1",
            "'\"2\"'",
        ),
        (
            "board_id",
            lambda d: d["group_list"][0].update(device_num="8"),
            "device_num is 8, but devices in the group: 4",
            "'\"8\"'",
        ),
        (
            "board_id",
            lambda d: d["group_list"][0].update(server_num="2"),
            "server_num is 2, but servers in the group: 1",
            "'\"2\"'",
        ),
        (
            "board_id",
            lambda d: d["group_list"][0].update(instance_count="8"),
            "instance_count is 8, but instances in instance_list: 4",
            "'\"8\"'",
        ),
        (
            "board_id",
            lambda d: d.update(para_plane_nic_num="8"),
            "para_plane_nic_num is 8, but names in para_plane_nic_name: 4",
            "'\"8\"'",
        ),
        (
            "group_list",
            lambda d: d["group_list"][0].update(device_count="2"),
            "device_count is 2, but devices in the group: 4",
            "'\"2\"'",
        ),
        (
            V10,
            lambda d: d["server_list"][1].update(server_id="192.168.50.11"),
            "server_id is given twice in server_list",
            "first on line 6",
        ),
        (
            V12,
            lambda d: d["super_pod_list"][1].update(super_pod_id="0"),
            "super_pod_id is given twice",
            "'\"0\"'",
        ),
        (
            V12,
            lambda d: d["super_pod_list"][1]["server_list"].append({"server_id": "pod-a-1"}),
            "a server belongs to two superpods",
            "'pod-a-1'",
        ),
        (
            V12,
            lambda d: d["super_pod_list"][1]["server_list"].append({"server_id": "pod-c-1"}),
            "a server of super_pod_list is not in server_list",
            "'pod-c-1'",
        ),
        (
            V12,
            lambda d: d["super_pod_list"][0]["server_list"].pop(),
            "a server belongs to no superpod of super_pod_list",
            "'\"pod-a-2\"'",
        ),
    ],
)
def test_faults_of_the_whole_table(
    name: str, change: Callable[[Document], object], message: str, actual: str
) -> None:
    document = sample(name)
    change(document)
    flaws = [flaw for flaw in judged(document) if flaw.severity is Severity.FAIL]
    told = [flaw for flaw in flaws if flaw.message == message]
    assert [flaw.actual for flaw in told] == [actual]
    assert {flaw.check for flaw in flaws} == {"rank-table-ranks"}


def test_nics_of_one_server_or_of_all() -> None:
    document = sample("board_id")
    group = document["group_list"][0]
    for number, one in enumerate([dict(one) for one in group["instance_list"]]):
        devices = [{"device_id": str(number), "device_ip": f"10.24.{number}.62"}]
        group["instance_list"].append(
            {**one, "rank_id": str(number + 4), "server_id": "b", "devices": devices}
        )
    group.update(device_num="8", server_num="2", instance_count="8")
    assert [flaw.message for flaw in judged(document)] == [
        "MindSpore 0.x runs on several servers only with all 8 devices of each"
    ]
    document.update(para_plane_nic_name=[f"eth{n}" for n in range(8)], para_plane_nic_num="8")
    assert [flaw.check for flaw in judged(document)] == ["rank-table-grouping"]

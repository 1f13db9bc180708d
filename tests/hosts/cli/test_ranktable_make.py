"""`doctor ranktable make` on a lab: a table of exactly the present devices, or no table."""

import json
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.lab.npus import NpuHost, Rack
from tests.support.faults import assert_only, some_of
from tests.support.headlines import failures, headline
from tests.support.npu_faults import ALL, NpuExaminer, assert_says

BOARD = {"x86_64": "0x0000", "aarch64": "0x0020"}


def doctor(rack: Rack, *args: str, code: int = 0) -> str:
    """The output of `doctor ranktable ARGS`; asserts that nothing was changed on any host."""
    done = rack.lab.doctor("ranktable", *args)
    assert done.returncode == code, done.stdout + done.stderr
    assert not rack.setters
    return done.stdout + done.stderr


def made(rack: Rack, path: Path, *args: str) -> Any:
    """Make the table twice; both ways to check it find no flaw."""
    texts = []
    for _ in range(2):
        doctor(rack, "make", ALL, "--output", str(path), *args)
        texts.append(path.read_text())
    assert texts[0] == texts[1]
    assert "all pass" in doctor(rack, "check", str(path))
    against = doctor(rack, "check", str(path), ALL)
    assert "Healthy: node[1-3]." in against
    return json.loads(texts[0])


def live(rack: Rack) -> list[tuple[str, int, str | None]]:
    """Server, device and address of each rank, in order."""
    return [(each.host.address, npu.device, npu.address) for each in rack for npu in each]


def test_a_table_in_form_1_0(rack: Rack, tmp_path: Path) -> None:
    table = made(rack, tmp_path / "hccl.json")
    ranks = [(server["server_id"], one) for server in table["server_list"] for one in server["device"]]
    assert [(id, int(one["device_id"]), one["device_ip"]) for id, one in ranks] == live(rack)
    assert [one["rank_id"] for _, one in ranks] == [str(rank) for rank in range(24)]
    assert (table["version"], table["server_count"], table["status"]) == ("1.0", "3", "completed")


def test_a_table_in_the_legacy_form(rack: Rack, tmp_path: Path) -> None:
    table = made(rack, tmp_path / "hccl.json", "--format", "legacy")
    (group,) = table["group_list"]
    ranks = [(one["server_id"], one["devices"][0]) for one in group["instance_list"]]
    assert [(id, int(one["device_id"]), one["device_ip"]) for id, one in ranks] == live(rack)
    assert [one["rank_id"] for one in group["instance_list"]] == [str(rank) for rank in range(24)]
    assert table["board_id"] == BOARD[platform.machine()]


@pytest.mark.long
def test_a_super_pod(make_rack: Callable[..., Rack], tmp_path: Path) -> None:
    rack = make_rack("atlas-a3", hosts=3)
    path = tmp_path / "hccl.json"
    table = made(rack, path, "--format", "1.2")
    ranks = [(server["server_id"], one) for server in table["server_list"] for one in server["device"]]
    assert [(id, int(one["device_id"]), one["device_ip"]) for id, one in ranks] == live(rack)
    assert [one["rank_id"] for _, one in ranks] == [str(rank) for rank in range(48)]
    (pod,) = table["super_pod_list"]
    assert [server["server_id"] for server in pod["server_list"]] == [each.host.address for each in rack]
    assert len({one["super_device_id"] for _, one in ranks}) == 48

    table["server_list"][1]["device"][3]["super_device_id"] = "999"
    path.write_text(json.dumps(table, indent=4))
    outcome = NpuExaminer(rack, tmp_path)("--rank-table", str(path), hosts="")
    (found,) = assert_only(outcome, "rank-table-devices", ["198.18.0.12"], devices=[("198.18.0.12", 3)])
    assert_says(
        [found], "device 3 has a different super_device_id", r"super_device_id 999 \| SDID \d+", "rank 19"
    )


def same_address(host: NpuHost) -> None:
    host[3].address = host[4].address


REFUSED: dict[str, tuple[Callable[[NpuHost], object], str]] = {
    "no address": (lambda host: setattr(host[3], "address", None), "device-ip-missing"),
    "one address twice": (same_address, "device-ip-duplicate"),
    "link down": (lambda host: setattr(host[3], "link_up", False), "device-link-down"),
}


@pytest.mark.parametrize("name", some_of(REFUSED, "no address"))
def test_refused(name: str, rack: Rack, tmp_path: Path) -> None:
    inject, check = REFUSED[name]
    inject(rack["node2"])
    path = tmp_path / "hccl.json"
    said = doctor(rack, "make", ALL, "--output", str(path), code=1)
    assert headline(said, "FAIL  node2 NPU 3", check), said
    assert failures(said) == 1
    assert "no rank table was written" in said
    assert not path.exists()


def test_what_no_table_needs_is_told_and_prevents_none(rack: Rack, tmp_path: Path) -> None:
    """npu-smi reports nothing about memory errors, but the addresses are known."""
    rack["node2"].put("smi/ecc", "")
    path = tmp_path / "hccl.json"
    said = doctor(rack, "make", ALL, "--output", str(path))
    unread = "npu-smi did not show the count of memory errors"
    assert f"doctor: not examined: device-unhealthy on node2: {unread}" in said
    ranks = [one for server in json.loads(path.read_text())["server_list"] for one in server["device"]]
    assert [one["device_ip"] for one in ranks] == [address for _, _, address in live(rack)]


def test_a_table_needs_no_npu_smi(rack: Rack, tmp_path: Path) -> None:
    rack["node3"].without_smi()
    path = tmp_path / "hccl.json"
    said = doctor(rack, "make", ALL, "--output", str(path))
    assert "doctor: not examined: device-unhealthy on node3: npus: its command is not installed there" in said
    assert len(json.loads(path.read_text())["server_list"]) == 3
    refused = doctor(rack, "make", ALL, "--format", "1.2", "--output", str(tmp_path / "pods.json"), code=3)
    assert "no rank table was written" in refused


def test_refused_where_the_tool_cannot_be_asked(rack: Rack, tmp_path: Path) -> None:
    rack["node2"].without_tool()
    path = tmp_path / "hccl.json"
    said = doctor(rack, "make", ALL, "--output", str(path), code=3)
    assert "no rank table was written" in said
    assert not path.exists()


def test_a_single_host_whose_devices_have_no_addresses(rack: Rack, tmp_path: Path) -> None:
    """They do not need addresses: there is a warning, and a valid table without addresses."""
    for npu in rack["node2"]:
        npu.address = None
    path = tmp_path / "hccl.json"
    doctor(rack, "make", "node2", "--output", str(path))
    (server,) = json.loads(path.read_text())["server_list"]
    assert [sorted(one) for one in server["device"]] == [["device_id", "rank_id"]] * 8
    doctor(rack, "check", str(path), "node2")

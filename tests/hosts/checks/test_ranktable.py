"""Rank tables compared with the hosts of a lab: with the hosts in the table, and with the hosts that have a
copy of it.
"""

import json
import platform
from collections.abc import Callable
from typing import Any

import pytest

from doctor.job.ranktable import LiveDevice, LiveServer, make_table
from doctor.job.ranktable.make import MakeForm
from tests.lab.npus import Rack
from tests.support.cases import from_cases
from tests.support.faults import ALONE, assert_healthy, assert_only, some_of
from tests.support.npu_faults import ALL, NpuExaminer, assert_says, npu_examiner

MACHINE = platform.machine()
ON_HOSTS = "/opt/job/hccl.json"
Document = dict[str, Any]


examine = npu_examiner


def sound(rack: Rack, form: MakeForm = "1.0") -> str:
    """The table of the present devices. Servers are identified by their names."""
    servers = [
        LiveServer(
            id=each.host.name,
            address=each.host.name,
            devices=tuple(LiveDevice(npu.device, npu.address) for npu in each),
        )
        for each in rack
    ]
    return make_table(servers, form, MACHINE)


def given(examine: NpuExaminer, text: str) -> tuple[str, ...]:
    """The table as a file on the controller."""
    path = examine.folder / "hccl.json"
    path.write_text(text)
    return (*ALONE, "--rank-table", str(path))


def test_the_table_names_the_hosts(examine: NpuExaminer) -> None:
    """By name or by address, also while NPUs ping each other; a valid table is not mentioned."""
    text = sound(examine.rack).replace('"node2"', f'"{examine.rack["node2"].host.address}"')
    outcome = examine(*given(examine, text)[len(ALONE) :], hosts="")
    assert_healthy(outcome)
    assert [host["name"] for host in outcome.report["hosts"]] == ["node1", "198.18.0.12", "node3"]
    assert "3 hosts · 24 ranks (8 a host, rank table) · backend hccl (rank table)" in " ".join(
        outcome.text.split()
    )
    assert all(f"-i {device} -link -g" in host.calls for host in examine.rack for device in range(8))


def entry(document: Document, server: int, device: int) -> dict[str, str]:
    found = document["server_list"][server]["device"][device]
    assert isinstance(found, dict)
    return found


def other_address(document: Document) -> None:
    entry(document, 1, 3)["device_ip"] = "10.20.2.99"


def exchanged(document: Document) -> None:
    a, b = entry(document, 2, 0), entry(document, 2, 1)
    a["device_ip"], b["device_ip"] = b["device_ip"], a["device_ip"]


def no_such_device(document: Document) -> None:
    entry(document, 0, 7)["device_id"] = "9"


Wrong = tuple[Callable[[Document], None], str, list[int], tuple[str, ...]]
WRONG = from_cases(__file__, "WRONG", dict[str, Wrong], other_address, exchanged, no_such_device)


@pytest.mark.parametrize("name", some_of(WRONG, "another address"))
def test_entries_that_do_not_match_the_host(name: str, examine: NpuExaminer) -> None:
    change, host, devices, says = WRONG[name]
    document = json.loads(sound(examine.rack))
    change(document)
    outcome = examine(*given(examine, json.dumps(document, indent=4)), hosts="")
    seats = [(host, device) for device in devices]
    assert_says(assert_only(outcome, "rank-table-devices", [host], devices=seats), *says)


def test_a_lost_address_is_the_cause(examine: NpuExaminer) -> None:
    text = sound(examine.rack)
    npu = examine.rack["node3"][6]
    planned = npu.address
    npu.address = "10.20.3.99"
    npu.host.configure(6, address=planned)
    outcome = examine(*given(examine, text), hosts="")
    assert_only(outcome, "device-ip-not-applied", ["node3"], devices=[("node3", 6)])
    assert "rank-table-devices" in {found["check"] for found in outcome.trouble}


def test_a_host_is_not_in_the_table(examine: NpuExaminer) -> None:
    document = json.loads(sound(examine.rack))
    del document["server_list"][2]
    document["server_count"] = "2"
    outcome = examine(*given(examine, json.dumps(document)))
    found = assert_only(outcome, "rank-table-devices", ["node3"])
    assert_says(found, "no entry for this host", "there are node1, node2", r"ranktable make 'node\[1-3\]'")


def test_the_table_is_that_of_another_cluster(examine: NpuExaminer) -> None:
    """No host is blamed for it, even if only one host can belong to the table."""
    document = json.loads(sound(examine.rack))
    for number, server in enumerate(document["server_list"]):
        server["server_id"] = f"10.77.0.{number}"
        for one in server["device"]:
            one["device_ip"] = one["device_ip"].replace("10.20.", "10.77.")
    for hosts in (ALL, "node1"):
        outcome = examine(*given(examine, json.dumps(document)), hosts=hosts)
        (found,) = assert_only(outcome, "rank-table-devices", [])
        assert_says([found], "that of another cluster", r"there are 10\.77\.0\.0", "ranktable make")
        document["server_list"], document["server_count"] = document["server_list"][:1], "1"


def test_a_board_of_another_architecture(examine: NpuExaminer) -> None:
    text = sound(examine.rack, "legacy")
    board, meant = ("0x0000", "x86_64") if MACHINE == "aarch64" else ("0x002f", "aarch64")
    right = json.loads(text)["board_id"]
    outcome = examine(*given(examine, text.replace(right, board)), hosts="")
    found = assert_only(outcome, "rank-table-ranks", [])
    assert_says(found, f"board_id {board} is for {meant}, and the hosts are {MACHINE}", "--format legacy")


def test_a_trailing_comma(examine: NpuExaminer) -> None:
    """The table is still understood: its hosts are examined."""
    text = sound(examine.rack).replace('"status": "completed"', '"status": "completed",')
    line = text[: text.index('"completed"')].count("\n") + 1
    column = text.splitlines()[line - 1].rindex(",") + 1
    outcome = examine(*given(examine, text), hosts="")
    (found,) = assert_only(outcome, "rank-table-invalid", [])
    assert found["subject"] == f"{examine.folder}/hccl.json:{line}:{column}"
    assert_says([found], "comma", f"# Line {line}: ")
    assert [host["name"] for host in outcome.report["hosts"]] == list(examine.rack.lab.names)
    assert all("-i 7 -link -g" in host.calls for host in examine.rack)


@pytest.mark.long
def test_named_hosts_get_their_ranks_from_the_table(examine: NpuExaminer) -> None:
    document = json.loads(sound(examine.rack))
    for server, host in zip(document["server_list"], examine.rack.lab, strict=True):
        server["server_id"] = host.address
        server["device"] = server["device"][:4]
    entries = [one for server in document["server_list"] for one in server["device"]]
    for rank, one in enumerate(entries):
        one["rank_id"] = str(rank)
    outcome = examine(*given(examine, json.dumps(document)))
    assert not outcome.trouble
    assert "3 hosts · 12 ranks (4 a host, rank table)" in outcome.text


def test_the_remedy_keeps_the_format_of_the_table(examine: NpuExaminer) -> None:
    text = sound(examine.rack, "legacy").replace("10.20.2.13", "10.20.2.99")
    (found,) = examine(*given(examine, text), hosts="").trouble
    assert (found["check"], found["hosts"]) == ("rank-table-devices", ["node2"])
    assert_says([found], "ranktable make .* --format legacy")


# Tables at the path that the launch names.


def launched(examine: NpuExaminer, *without: str, **other: str) -> tuple[str, ...]:
    """Put the table on all hosts, except those in `without` and those that have another one."""
    for host in examine.rack.lab:
        if host.name not in without:
            host.write(ON_HOSTS, other.get(host.name, sound(examine.rack)))
    inventory = examine.folder / "inventory.yaml"
    inventory.write_text(f"launch: {{RANK_TABLE_FILE: {ON_HOSTS}}}\n")
    return (*ALONE, "--inventory", str(inventory))


def test_the_same_table_everywhere(examine: NpuExaminer) -> None:
    assert_healthy(examine(*launched(examine)))


def test_one_host_lacks_the_table(examine: NpuExaminer) -> None:
    outcome = examine(*launched(examine, "node3"))
    found = assert_only(outcome, "rank-table-differs", ["node3"])
    assert_says(found, "there is no such file", f"{ON_HOSTS} on every host", f"ls -l {ON_HOSTS}")


def test_one_host_has_another_table(examine: NpuExaminer) -> None:
    old = sound(examine.rack).replace("10.20.1.15", "10.20.1.99")
    outcome = examine(*launched(examine, node2=old))
    found = assert_only(outcome, "rank-table-differs", ["node2"])
    assert_says(found, r"line \d+: .*10\.20\.1\.99.* instead of .*10\.20\.1\.15", f"cksum {ON_HOSTS}")


@pytest.mark.long
def test_the_same_wrong_table_everywhere(examine: NpuExaminer) -> None:
    """No copy differs from the others, and the host with the wrong entry is named."""
    wrong = sound(examine.rack).replace("10.20.1.15", "10.20.1.99")
    names = dict.fromkeys(examine.rack.lab.names, wrong)
    found = assert_only(
        examine(*launched(examine, **names)), "rank-table-devices", ["node1"], devices=[("node1", 5)]
    )
    assert_says(found, r"device_ip 10\.20\.1\.99 \| 10\.20\.1\.15", ON_HOSTS)

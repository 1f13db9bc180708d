"""How a table is judged: ranks that add up, addresses, superpods, and the requirements of each product."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from doctor.job.ranktable import Flaw, judge, read_table
from doctor.model import Severity
from tests.support.cases import cases
from tests.support.paths import ROOT

SAMPLES = ROOT / "tests" / "samples" / "rank_table"
RANKS, GROUPING = "rank-table-ranks", "rank-table-grouping"

Document = dict[str, Any]


@dataclass(frozen=True)
class Change:
    """The members that the object at this place gets; without a value, one goes."""

    at: list[str | int]
    put: dict[str, Any]


def sample(name: str, *changes: Change) -> Document:
    document: Document = json.loads((SAMPLES / f"{name}.json").read_text())
    for change in changes:
        there: Any = document
        for key in change.at:
            there = there[key]
        there.update(change.put)
        for gone in [name for name, value in change.put.items() if value is None]:
            del there[gone]
    return document


def judged(document: Document, product: str | None = None, readable: bool = True) -> tuple[Flaw, ...]:
    table, flaws = read_table(json.dumps(document, indent=1))
    assert table is not None
    assert not readable or flaws == ()
    return judge(table, product)


def server(document: Document, number: int) -> Document:
    found: Document = document["server_list"][number]
    return found


def device(document: Document, number: int, which: int) -> Document:
    found: Document = server(document, number)["device"][which]
    return found


@pytest.mark.parametrize("product", [None, "atlas-training", "atlas-a2", "atlas-a3", "nvidia"])
@pytest.mark.parametrize("name", ["v1.0_two_servers", "v1.0_a3_server_mode", "group_list", "board_id"])
def test_tables_without_fault(name: str, product: str | None) -> None:
    assert judged(sample(name), product) == ()


def test_tables_without_fault_on_their_products() -> None:
    assert judged(sample("v2.0_950"), "atlas-950") == judged(sample("v2.0_950")) == ()
    (advice,) = judged(sample("v1.2_two_superpods"), "atlas-a3")
    assert (advice.message, advice.severity) == (
        "not the same number of servers in each superpod",
        Severity.WARN,
    )


def test_masked_addresses_are_reported_by_the_reader_alone() -> None:
    assert judged(sample("mindspore_cross_cluster_16pcs"), "atlas-a2", readable=False) == ()


V10, V12, V20 = "v1.0_two_servers", "v1.2_two_superpods", "v2.0_950"


@cases
def test_faults_of_one_rank(
    name: str, changes: list[Change], messages: list[str], who: list[tuple[int | None, int | None]]
) -> None:
    document = sample(name, *changes)
    flaws = [flaw for flaw in judged(document) if flaw.severity is Severity.FAIL]
    assert [flaw.message for flaw in flaws] == messages
    assert [(flaw.rank, flaw.device) for flaw in flaws] == who
    for flaw in flaws:
        assert flaw.check == RANKS
        assert flaw.server in {one for one, _, _ in hosts(document)}
        assert flaw.expected
        assert flaw.actual


def hosts(document: Document) -> tuple[tuple[str, str | None, tuple[int, ...]], ...]:
    table, _ = read_table(json.dumps(document))
    assert table is not None
    return table.hosts()


def test_ranks_that_begin_at_one() -> None:
    document = sample(V10)
    for number in range(4):
        device(document, number // 2, number % 2)["rank_id"] = str(number + 1)
    (flaw,) = judged(document)
    assert (flaw.message, flaw.expected, flaw.actual) == (
        "ranks begin at 1, but HCCL counts from 0",
        "ranks 0-3",
        "1-4",
    )
    assert (flaw.rank, flaw.spot and flaw.spot.line) == (1, 12)


def test_no_rank_is_called_missing_if_another_cannot_be_read() -> None:
    document = sample(V10)
    device(document, 0, 1)["rank_id"] = "one"
    assert judged(document, readable=False) == ()


@cases
def test_deviations_that_are_only_warnings(name: str, changes: list[Change], messages: list[str]) -> None:
    flaws = [flaw for flaw in judged(sample(name, *changes)) if flaw.check == RANKS]
    assert [(flaw.message, flaw.severity) for flaw in flaws] == [(one, Severity.WARN) for one in messages]


def test_superpods_whose_servers_are_not_together() -> None:
    document = sample(V12)
    document["server_list"].insert(1, document["server_list"].pop())
    (flaw,) = [flaw for flaw in judged(document) if flaw.check == RANKS]
    assert flaw.message == "the servers of a superpod are not listed together in server_list"
    assert flaw.severity is Severity.WARN


def test_a_network_card_shared_by_two_ranks_is_not_a_fault() -> None:
    document = sample(V20)
    document["rank_list"][1]["level_list"][1]["rank_addr_list"][0]["addr"] = "192.168.50.40"
    assert judged(document) == ()


def test_places_in_a_file_with_comments() -> None:
    text = (SAMPLES / "v1.0_two_servers.json").read_text()
    text = text.replace('"status"', '// {"rank_id": 1\n  "status"').replace(
        '"rank_id": "3"', '"rank_id": "2"'
    )
    table, _ = read_table(text)
    assert table is not None
    assert [(flaw.message, flaw.spot and flaw.spot.line) for flaw in judge(table)] == [
        ("rank 2 is given twice", 19),
        ("rank 3 of 4 missing", 19),
    ]


def test_a_network_card_that_is_named_twice() -> None:
    document = sample("board_id")
    document["para_plane_nic_name"][3] = "eth0"
    (flaw,) = judged(document)
    assert (flaw.message, flaw.severity) == ("para_plane_nic_name has a name twice", Severity.WARN)
    assert flaw.actual == "'eth0'"


def test_the_chip_tells_the_product_where_the_board_does_not() -> None:
    document = sample("board_id")
    document["board_id"] = "0x7777"
    del document["group_list"][0]["instance_list"][3]
    document["group_list"][0].update(device_num="3", instance_count="3")
    document["para_plane_nic_name"] = ["eth0", "eth1", "eth2"]
    document["para_plane_nic_num"] = "3"
    (flaw,) = judged(document, readable=False)
    assert flaw.message.startswith("3 devices on a server; HCCL refuses it")
    assert judged({**document, "chip_info": "310"}, readable=False) == ()


@pytest.mark.parametrize("product", [None, "atlas-a2"])
@cases
def test_an_address_that_no_device_can_have(address: str, kind: str, product: str | None) -> None:
    document = sample("v1.0_two_servers")
    for number in range(2):
        for which in range(2):
            device(document, number, which)["device_ip"] = (
                f"fd00::{number}{which}" if ":" in address else (f"192.168.{number}.{which + 1}")
            )
    assert judged(document, product) == ()
    device(document, 1, 0)["device_ip"] = address
    (flaw,) = judged(document, product)
    assert (flaw.message, flaw.severity) == (f"device_ip is {kind}", Severity.FAIL)
    assert (flaw.actual, flaw.check) == (repr(address), RANKS)


@cases
def test_faults_of_the_whole_table(name: str, changes: list[Change], message: str, actual: str) -> None:
    flaws = [flaw for flaw in judged(sample(name, *changes)) if flaw.severity is Severity.FAIL]
    told = [flaw for flaw in flaws if flaw.message == message]
    assert [flaw.actual for flaw in told] == [actual]
    assert {flaw.check for flaw in flaws} == {RANKS}


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

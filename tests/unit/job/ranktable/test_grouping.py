"""What each product requires of the number and choice of devices, and of their addresses."""

import json
from collections.abc import Sequence

import pytest

from doctor.job.ranktable import (
    Flaw,
    LiveDevice,
    LiveServer,
    board_architecture,
    judge,
    make_table,
    read_table,
)
from doctor.job.ranktable.make import MakeForm
from doctor.model import Severity
from tests.support.cases import cases
from tests.support.paths import ROOT

FAIL, WARN = Severity.FAIL, Severity.WARN
TRAINING, A2, A3, A950 = "atlas-training", "atlas-a2", "atlas-a3", "atlas-950"


def live(number: int, devices: Sequence[int], pod: str, addresses: bool = True) -> LiveServer:
    return LiveServer(
        f"node{number}",
        f"192.168.1.{number + 1}",
        tuple(
            LiveDevice(one, f"10.{one % 4}.{number}.{one + 1}" if addresses else None, number * 16 + one, pod)
            for one in devices
        ),
    )


def judged(text: str, product: str | None) -> tuple[Flaw, ...]:
    table, flaws = read_table(text)
    assert table is not None
    assert flaws == ()
    found = judge(table, product)
    assert {flaw.check for flaw in found} <= {"rank-table-grouping"}
    for flaw in found:
        assert flaw.expected
        assert flaw.actual
        assert flaw.spot
    return found


def grouped(
    form: MakeForm, product: str | None, *devices: Sequence[int]
) -> list[tuple[str | None, Severity, str]]:
    """Server, severity and message for a table with these devices on each server, two servers in each
    superpod.
    """
    servers = [live(number, one, str(number // 2)) for number, one in enumerate(devices)]
    return [(flaw.server, flaw.severity, flaw.message) for flaw in judged(make_table(servers, form), product)]


ALL, HALF, QUARTER = range(8), range(4), range(2)
REFUSED = "devices on a server; HCCL refuses it: devNum must be divisible by 8, or equal to 1, 2 or 4"
UNEVEN = "not the same number of devices on each server"


@pytest.mark.parametrize("servers", [1, 2, 3, 4])
@cases
def test_groups_that_every_product_takes(servers: int, devices: list[int]) -> None:
    for product in (TRAINING, A2, None):
        assert grouped("1.0", product, *[devices] * servers) == []
    if servers != 3:  # with two servers in a superpod, three servers are one superpod and a half
        assert grouped("1.2", A3, *[devices] * servers) == []
    if servers == 1:
        assert grouped("legacy", None, devices) == []


@pytest.mark.parametrize("devices", [[0, 1, 2], range(5), range(6), range(7)])
def test_atlas_training_takes_1_2_4_or_8_devices(devices: Sequence[int]) -> None:
    expected = [("node0", FAIL, f"{len(devices)} {REFUSED}")]
    assert grouped("1.0", TRAINING, devices) == expected
    assert grouped("1.0", None, devices) == grouped("1.0", A2, devices) == []
    assert [(level, message) for _, level, message in grouped("legacy", None, devices)] == [expected[0][1:]]


@pytest.mark.parametrize("devices", [[0, 4], [3, 4], [2, 3, 4, 5], [0, 1, 2, 7]])
def test_atlas_training_does_not_cross_its_two_groups(devices: list[int]) -> None:
    message = f"a job of {len(devices)} devices crosses from the group 0-3 to the group 4-7"
    assert grouped("1.0", TRAINING, devices) == [("node0", FAIL, message)]
    assert grouped("1.0", TRAINING, devices, devices) == [("node0", WARN, message), ("node1", WARN, message)]
    assert grouped("1.0", A2, devices) == grouped("1.0", None, devices) == []


@pytest.mark.parametrize(
    ("form", "product", "devices", "expected"),
    [
        ("1.0", TRAINING, (ALL, HALF, ALL), [("node1", FAIL, UNEVEN)]),
        ("1.0", A2, (ALL, ALL, range(7)), [("node2", WARN, UNEVEN)]),
        ("1.2", A3, (ALL, ALL, HALF, ALL), [("node2", WARN, UNEVEN)]),
        ("1.2", A3, (ALL, ALL, ALL), [(None, WARN, "not the same number of servers in each superpod")]),
        ("1.0", None, (ALL, HALF), []),
        ("1.0", TRAINING, ([0, 8],), [
            ("node0", FAIL, "a job of 2 devices crosses from the group 0-3 to the group 4-7"),
            ("node0", FAIL, "device 8 is beyond 7"),
        ]),
        ("1.0", A2, (range(16),), []),
        ("1.0", A2, (range(16), range(16)), [
            ("node0", WARN, "more than 8 devices on one of several servers"),
            ("node1", WARN, "more than 8 devices on one of several servers"),
        ]),
        ("1.0", A3, (range(16), range(16)), []),
        ("legacy", None, (QUARTER, QUARTER), [
            ("192.168.1.1", WARN, "MindSpore 0.x runs on several servers only with all 8 devices of each"),
        ]),
        ("legacy", None, (ALL, ALL), []),
        ("1.0", A950, (ALL,), [(None, WARN, "form 1.0 is not the one documented for this product")]),
    ],
)  # fmt: skip
def test_limits_of_each_product(
    form: MakeForm,
    product: str | None,
    devices: tuple[Sequence[int], ...],
    expected: list[tuple[str | None, Severity, str]],
) -> None:
    assert grouped(form, product, *devices) == expected


@cases
def test_where_device_addresses_are_needed(
    form: MakeForm, product: str | None, pods: str, expected: list[tuple[Severity, str]]
) -> None:
    servers = [live(number, ALL, pod, addresses=False) for number, pod in enumerate(pods)]
    flaws = judged(make_table(servers, form), product)
    assert [(flaw.severity, flaw.message) for flaw in flaws] == expected
    for flaw in flaws:
        assert flaw.actual == "none for devices 0-7"


def test_ranks_may_meet_at_the_host_address_where_the_product_is_not_known() -> None:
    document = json.loads(make_table([live(0, ALL, "a", False), live(1, ALL, "b", False)], "1.0"))
    for number, server in enumerate(document["server_list"]):
        server["host_ip"] = f"192.168.1.{number}"
    for product, severity in ((None, WARN), (A2, FAIL)):
        flaws = judged(json.dumps(document), product)
        assert [flaw.severity for flaw in flaws] == [severity] * 2


def test_form_2_0_is_only_for_the_950() -> None:
    text = (ROOT / "tests" / "samples" / "rank_table" / "v2.0_950.json").read_text()
    assert judged(text, A950) == judged(text, None) == ()
    assert [flaw.message for flaw in judged(text, A2)] == [
        "form 2.0 is not the one documented for this product"
    ]


@cases
def test_the_board_tells_the_architecture(board: str | None, architecture: str | None) -> None:
    assert board_architecture(board) == architecture

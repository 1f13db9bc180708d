"""Rank tables of present devices: a written table reads back unchanged, without a flaw."""

import json
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doctor.errors import UsageError
from doctor.job.ranktable import LiveDevice, LiveServer, board_architecture, judge, make_table, read_table
from doctor.job.ranktable.make import MakeForm

ALLOWED = [(0,), (5,), (0, 1), (2, 3), (4, 7), (0, 1, 2, 3), (4, 5, 6, 7), (0, 1, 2, 3, 4, 5, 6, 7)]


def cluster(
    servers: int, devices: tuple[int, ...], a_pod: int = 4, six: bool = False, *, rails: bool = False
) -> list[LiveServer]:
    """Servers with the same devices each; the first server has the last name."""
    net = "fd00::{0}:{1}" if six else "10.{2}.{0}.{1}" if rails else "10.1.{0}.{1}"
    return [
        LiveServer(
            f"node{number}",
            f"192.168.1.{number + 1}",
            tuple(
                LiveDevice(
                    one,
                    net.format(number, one + 1, one % 4 + 1),
                    number % a_pod * 16 + one,
                    str(number // a_pod),
                )
                for one in reversed(devices)
            ),
        )
        for number in range(servers)
    ]


def test_form_1_0_is_made_exactly_as_documented() -> None:
    assert make_table(cluster(2, (4,)), "1.0") == (
        '{\n    "version": "1.0",\n    "server_count": "2",\n    "server_list": [\n'
        '        {\n            "server_id": "node0",\n            "device": [\n'
        '                {\n                    "device_id": "4",\n'
        '                    "device_ip": "10.1.0.5",\n                    "rank_id": "0"\n'
        '                }\n            ],\n            "host_nic_ip": "reserve"\n        },\n'
        '        {\n            "server_id": "node1",\n            "device": [\n'
        '                {\n                    "device_id": "4",\n'
        '                    "device_ip": "10.1.1.5",\n                    "rank_id": "1"\n'
        '                }\n            ],\n            "host_nic_ip": "reserve"\n        }\n'
        '    ],\n    "status": "completed"\n}\n'
    )


def test_form_1_2_lists_the_servers_of_each_superpod() -> None:
    document = json.loads(make_table(cluster(3, (0, 1), a_pod=2), "1.2"))
    assert document["server_count"] == "3"
    assert document["server_list"][2] == {
        "server_id": "node2",
        "host_ip": "192.168.1.3",
        "device": [
            {"device_id": "0", "super_device_id": "0", "device_ip": "10.1.2.1", "rank_id": "4"},
            {"device_id": "1", "super_device_id": "1", "device_ip": "10.1.2.2", "rank_id": "5"},
        ],
    }
    assert document["super_pod_list"] == [
        {"super_pod_id": "0", "server_list": [{"server_id": "node0"}, {"server_id": "node1"}]},
        {"super_pod_id": "1", "server_list": [{"server_id": "node2"}]},
    ]


def test_the_oldest_form_matches_the_tutorial() -> None:
    document = json.loads(make_table(cluster(2, (0, 1)), "legacy", "x86_64"))
    (group,) = document.pop("group_list")
    assert document == {
        "board_id": "0x0000",
        "chip_info": "910",
        "deploy_mode": "lab",
        "group_count": "1",
        "para_plane_nic_location": "device",
        "para_plane_nic_name": ["eth0", "eth1"],
        "para_plane_nic_num": "2",
        "status": "completed",
    }
    instances = group.pop("instance_list")
    assert group == {"device_num": "4", "server_num": "2", "group_name": "", "instance_count": "4"}
    assert instances[3] == {
        "devices": [{"device_id": "1", "device_ip": "10.1.1.2"}],
        "rank_id": "3",
        "server_id": "192.168.1.2",
    }


@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_the_board_fits_the_architecture(architecture: str) -> None:
    table, _ = read_table(make_table(cluster(1, (0,)), "legacy", architecture))
    assert table is not None
    assert board_architecture(table.board_id) == architecture


def test_servers_of_a_superpod_are_adjacent() -> None:
    servers = cluster(4, (0,), a_pod=2)
    mixed = [servers[2], servers[0], servers[3], servers[1]]
    table, flaws = read_table(make_table(mixed, "1.2"))
    assert table is not None
    assert flaws + judge(table, "atlas-a3") == ()
    assert table.server_ids == ("node2", "node3", "node0", "node1")


@pytest.mark.parametrize(
    ("servers", "form", "architecture", "message"),
    [
        ([], "1.0", "aarch64", "a rank table needs servers with at least one device each"),
        ([LiveServer("a", "10.0.0.1", ())], "1.0", "aarch64", "a rank table needs servers"),
        (cluster(1, (0,)), "legacy", "riscv64", "no board is known for riscv64"),
        ([LiveServer("a", "10.0.0.1", (LiveDevice(0, "10.1.0.1"),))], "1.2", "aarch64", "a does not give"),
        (
            [LiveServer("a", "10.0.0.1", (LiveDevice(0, None, 0, "0"), LiveDevice(1, None, 1, "1")))],
            "1.2",
            "aarch64",
            "a does not give",
        ),
    ],
)
def test_servers_that_no_table_can_describe(
    servers: list[LiveServer], form: MakeForm, architecture: str, message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        make_table(servers, form, architecture)
    assert caught.value.message.startswith(message)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(
    form=st.sampled_from(["1.0", "legacy", "1.2"]),
    servers=st.integers(1, 16),
    devices=st.sampled_from(ALLOWED),
    a_pod=st.sampled_from([1, 2, 4, 16]),
    six=st.booleans(),
    order=st.randoms(use_true_random=False),
)
def test_a_table_that_is_made_reads_back(
    form: MakeForm, servers: int, devices: tuple[int, ...], a_pod: int, six: bool, order: Random
) -> None:
    given = cluster(servers, devices, a_pod if servers % a_pod == 0 else 1, six, rails=True)
    if form != "1.2":
        order.shuffle(given)
    if form == "legacy" and len(devices) != 8:
        given = given[:1]
    text = make_table(given, form)
    assert text == make_table(given, form)
    assert text.endswith("}\n")
    table, flaws = read_table(text)
    assert table is not None
    assert flaws == ()
    product = "atlas-a3" if form == "1.2" else "atlas-training"
    assert judge(table) == judge(table, product) == ()
    assert [entry.rank for entry in table.entries] == list(range(len(given) * len(devices)))
    assert [
        (server.id, [(entry.device, entry.address) for entry in server.entries]) for server in table.servers
    ] == [
        (
            server.address if form == "legacy" else server.id,
            sorted((device.device, device.address) for device in server.devices),
        )
        for server in given
    ]
    if form == "1.2":
        assert [(server.host_ip, server.super_pod) for server in table.servers] == [
            (server.address, server.devices[0].super_pod) for server in given
        ]
        assert [entry.super_device for entry in table.entries] == [
            device.super_device
            for server in given
            for device in sorted(server.devices, key=lambda one: one.device)
        ]

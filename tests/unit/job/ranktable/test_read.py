"""Rank tables of every form, and what they must contain."""

import json

import pytest

from doctor.job.ranktable import Flaw, RankTable, Spot, read_table
from doctor.model import Severity
from doctor.text.textfile import shown
from tests.support.cases import cases
from tests.support.paths import ROOT

SAMPLES = ROOT / "tests" / "samples" / "rank_table"


def sample(name: str) -> str:
    return (SAMPLES / f"{name}.json").read_text()


def table(name: str) -> RankTable:
    read, flaws = read_table(sample(name))
    assert read is not None
    assert flaws == ()
    return read


def at(flaw: Flaw) -> str:
    return f"{flaw.spot.line}:{flaw.spot.column}" if flaw.spot else ""


@pytest.mark.parametrize(
    ("name", "form", "hosts"),
    [
        (
            "v1.0_two_servers",
            "1.0",
            (("192.168.50.11", None, (0, 1)), ("192.168.50.12", None, (0, 1))),
        ),
        (
            "v1.0_a3_server_mode",
            "1.0",
            (("trainer-a", "192.168.50.21", (0, 1)), ("trainer-b", "192.168.50.22", (0, 1))),
        ),
        (
            "v1.2_two_superpods",
            "1.2",
            (
                ("pod-a-1", "192.168.50.31", (0, 1)),
                ("pod-a-2", "192.168.50.32", (0, 1)),
                ("pod-b-1", "192.168.50.33", (0, 1)),
            ),
        ),
        ("v2.0_950", "2.0", (("rack0-a", None, (0, 1)), ("rack0-b", None, (0, 1)))),
        ("group_list", "group-list", (("worker-1", None, (0, 1)), ("worker-2", None, (0, 1)))),
        ("board_id", "board-id", (("192.168.50.61", None, (0, 1, 2, 3)),)),
    ],
)
def test_every_form(name: str, form: str, hosts: object) -> None:
    read = table(name)
    assert read.form == form
    assert read.status == "completed"
    assert read.hosts() == hosts
    assert [entry.rank for entry in read.entries] == list(range(read.ranks))
    assert read.text == sample(name)


def test_the_members_of_a_device() -> None:
    entry = table("v1.2_two_superpods").entries[3]
    assert (entry.rank, entry.server, entry.device, entry.super_device) == (3, "pod-a-2", 1, 3)
    assert (entry.address, entry.backup) == ("10.22.1.32", "10.22.0.32")
    assert [entry.ports.get(name) for name in ("device_port", "backup_device_port", "host_port")] == [
        17001,
        17002,
        18002,
    ]
    assert [server.super_pod for server in table("v1.2_two_superpods").servers] == ["0", "0", "1"]


def test_addresses_of_form_2_0() -> None:
    entry = table("v2.0_950").entries[2]
    assert (entry.local, entry.device, entry.address) == (0, 0, "192.168.50.42")
    assert entry.eids == ("000000000000000000200000aaaa0002", "000000000000000000200000bbbb0002")


def test_a_group_list_gets_the_ranks_that_hccl_assigns() -> None:
    """Servers are sorted by id and devices by number, whatever their order in the file."""
    entries = table("group_list").entries
    assert [(entry.server, entry.device) for entry in entries] == [
        ("worker-1", 0),
        ("worker-1", 1),
        ("worker-2", 0),
        ("worker-2", 1),
    ]


def test_the_board_of_the_oldest_form() -> None:
    read = table("board_id")
    assert (read.board_id, read.nics) == ("0x0000", ("eth0", "eth1", "eth2", "eth3"))


def test_places_point_at_the_object_that_they_name() -> None:
    for name in ("v1.0_two_servers", "v1.2_two_superpods", "v2.0_950", "group_list", "board_id"):
        read = table(name)
        lines = read.text.split("\n")
        for spot in [entry.spot for entry in read.entries] + [server.spot for server in read.servers]:
            assert lines[spot.line - 1][spot.column - 1] == "{"
        for count in read.counts:
            here = lines[count.spot.line - 1]
            assert here[: count.spot.column - 1].rstrip().endswith(f'"{count.name}":')
            assert here[count.spot.column - 1 :].strip('",') == str(count.said)


def test_masked_addresses_of_an_example_are_one_flaw() -> None:
    read, flaws = read_table(sample("mindspore_cross_cluster_16pcs"))
    assert read is not None
    assert read.ranks == 16
    assert read.server_ids == ("server_0_10.*.*.*", "server_1_10.*.*.*")
    assert {entry.address for entry in read.entries} == {None}
    unnamed, flaw = flaws
    assert unnamed.message == "server_id (and 1 more) names no server: it is left over from an example"
    assert (flaw.check, flaw.spot, flaw.severity) == ("rank-table-invalid", Spot(7, 20), Severity.FAIL)
    assert flaw.message == "server_ip (and 17 more) with '*' in place of digits: an example, not an address"


def test_a_topology_file_is_recognised() -> None:
    read, flaws = read_table(sample("v2.0_950_topology"))
    assert read is None
    assert [flaw.actual for flaw in flaws] == ["a topology file"]


def device(number: int, **other: object) -> dict[str, object]:
    address = f"10.0.0.{number + 1}"
    return {"device_id": str(number), "device_ip": address, "rank_id": str(number), **other}


def document(**other: object) -> dict[str, object]:
    servers = [{"server_id": "a", "device": [device(0), device(1)]}]
    top = {"status": "completed", "version": "1.0", "server_count": "1", "server_list": servers}
    return {**top, **other}


def written(value: object) -> str:
    return json.dumps(value, indent=1)


def servers(**other: object) -> dict[str, object]:
    return document(server_list=[{"server_id": "a", "device": [device(0), device(1, **other)]}])


def changed(top: dict[str, object], device: dict[str, object]) -> dict[str, object]:
    """A table with other members at its top and in its last device; without a value, one of the top goes."""
    members = {**servers(**device), **top}
    return {name: value for name, value in members.items() if value is not None}


WARN, FAIL = Severity.WARN, Severity.FAIL


@cases
def test_what_a_table_must_contain(
    top: dict[str, object], device: dict[str, object], place: str, message: str, actual: str
) -> None:
    _, flaws = read_table(written(changed(top, device)))
    (flaw,) = flaws
    assert (at(flaw), flaw.message, flaw.actual) == (place, message, actual)
    assert (flaw.check, flaw.severity) == ("rank-table-invalid", Severity.FAIL)
    assert flaw.expected


@cases
def test_what_hccl_refuses_is_a_fault_and_what_a_newer_one_ignores_a_warning(
    top: dict[str, object], device: dict[str, object], message: str, severity: Severity
) -> None:
    read, flaws = read_table(written(changed(top, device)))
    assert read is not None
    assert [entry.rank for entry in read.entries] == [0, 1]
    assert [(flaw.message, flaw.severity) for flaw in flaws] == [(message, severity)]


def test_a_flaw_names_its_server_rank_and_device() -> None:
    _, flaws = read_table(written(servers(device_ip="x")))
    assert [(flaw.server, flaw.rank, flaw.device) for flaw in flaws] == [("a", 1, 1)]


def test_all_flaws_are_reported_at_once() -> None:
    content = document(status="no", server_list=[{"device": [device(0, rank_id="x"), {}]}])
    _, flaws = read_table(written(content))
    assert [(at(flaw), flaw.message) for flaw in flaws] == [
        ("2:12", "status is not completed"),
        ("6:3", "server_id is missing"),
        ("11:17", "rank_id is not a number"),
        ("13:5", "rank_id is missing"),
        ("13:5", "device_id is missing"),
    ]


@cases
def test_unknown_members_are_ignored(extra: dict[str, object]) -> None:
    content = document(server_list=[{"server_id": "a", "device": [device(0, **extra), device(1)], **extra}])
    read, flaws = read_table(written(content))
    assert flaws == ()
    assert read is not None
    assert read.hosts() == (("a", extra.get("server_ip"), (0, 1)),)


def test_a_device_may_have_several_addresses_of_both_families() -> None:
    read, flaws = read_table(written(servers(device_ip="10.0.0.8,fd00::8")))
    assert flaws == ()
    assert read is not None
    assert read.entries[1].address == "10.0.0.8"
    assert read.entries[1].addresses == ("10.0.0.8", "fd00::8")


@cases
def test_a_server_id_left_over_from_an_example(id: str) -> None:
    content = document(server_list=[{"server_id": id, "device": [device(0), device(1)]}])
    read, (flaw,) = read_table(written(content))
    assert read is not None
    assert flaw.message == "server_id names no server: it is left over from an example"
    assert (flaw.severity, flaw.actual) == (FAIL, f"'\"{id}\"'")


@cases
def test_any_other_text_may_be_a_server_id(id: str) -> None:
    assert (
        read_table(written(document(server_list=[{"server_id": id, "device": [device(0), device(1)]}])))[1]
        == ()
    )


def test_a_placeholder_that_each_device_repeats_is_one_flaw() -> None:
    text = sample("board_id").replace("192.168.50.61", "10.*.*.*")
    found = [flaw.message for flaw in read_table(text)[1]]
    assert found == ["server_id (and 3 more) names no server: it is left over from an example"], text


@cases
def test_a_word_that_hccl_does_not_know(of: str, before: str, after: str, message: str) -> None:
    text = sample(of)
    assert text.count(before) > 0, text
    (flaw,) = read_table(text.replace(before, after, 1))[1]
    assert (flaw.message, flaw.severity) == (message, FAIL)
    assert flaw.actual == shown(after.partition(": ")[2])


@pytest.mark.parametrize("version", ["1.0", "1.2"])
@pytest.mark.parametrize(("key", "wanted"), [("deploy_mode", "lab"), ("para_plane_nic_location", "device")])
def test_rubbish_in_a_member_that_hccl_does_not_read_in_this_form_is_a_warning(
    version: str, key: str, wanted: str
) -> None:
    given = {**servers(), "version": version, key: "rubbish"}
    flaws = [flaw for flaw in read_table(written(given))[1] if key in flaw.message]
    assert [flaw.severity for flaw in flaws] == [WARN]
    assert not [flaw for flaw in read_table(written({**given, key: wanted}))[1] if key in flaw.message]


@cases
def test_what_the_oldest_form_says_of_the_machine(before: str, after: str, message: str) -> None:
    text = sample("board_id")
    assert text.count(before) == 1, text
    (flaw,) = read_table(text.replace(before, after))[1]
    assert (flaw.message, flaw.severity) == (message, WARN)
    assert flaw.actual == shown(after.partition(": ")[2])


@pytest.mark.parametrize("name", ["1.0", "1.2"])
def test_the_version_that_is_missing_is_named(name: str) -> None:
    """A table with a list of super pods is of 1.2."""
    whole = json.loads(sample({"1.0": "v1.0_two_servers", "1.2": "v1.2_two_superpods"}[name]))
    del whole["version"]
    (flaw,) = [each for each in read_table(json.dumps(whole))[1] if each.message == "version is missing"]
    assert flaw.expected == f'"version": "{name}"'

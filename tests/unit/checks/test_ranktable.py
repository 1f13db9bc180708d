"""Rank tables compared with the hosts: which server is which host, whose devices they are, which copy is
right.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from doctor.facts.ascend.network import Address
from doctor.facts.tables import MOST, RANK_TABLE, HostFile, JobTable
from doctor.job.launch.process_env import ProcessEnv
from doctor.job.launch.table_reference import told_tables
from doctor.job.plan import JobPlan
from doctor.job.ranktable import LiveDevice, LiveServer, make_table, read_table
from doctor.job.wishes import JobWishes
from doctor.judge.reading import read_recording
from doctor.judge.run_facts import run_facts
from doctor.model import Capture, Confidence, Host, MissingFact, View
from doctor.probe import HostAnswer
from doctor.recording import Recording
from doctor.text.textfile import posix_cksum
from tests.support.cases import cases, cases_with
from tests.support.npu_cluster import FLAT, HOSTS, RAILS, SILENT, Judgement, devices, everywhere, judge, plan

PATH = "/job/hccl.json"


def server(id: str, number: int, count: int = 8) -> LiveServer:
    """The devices of node<number>."""
    return LiveServer(id, id, tuple(LiveDevice(d, FLAT.address(number, d)) for d in range(count)))


def table(*ids: str) -> str:
    return make_table([server(id, number) for number, id in enumerate(ids, 1)], "1.0", "aarch64")


def seen(text: str, *, given: bool = True) -> JobTable:
    return JobTable(PATH, text, *read_table(text), given=given, checksum=posix_cksum(text.encode()))


# rank-table-devices


def held_against(
    text: str,
    *,
    job: JobPlan | None = None,
    own: Mapping[str, Sequence[int]] | None = None,
    addresses: Mapping[str, str] | None = None,
    npus: Mapping[str, Any] | None = None,
    view: View | None = None,
) -> Judgement:
    """Run the check on hosts with eight devices each, by default with all their addresses known."""
    return judge(
        "rank-table-devices",
        seen(text),
        job or plan(),
        {name: devices(npus=numbers) for name, numbers in (own or everywhere(range(8))).items()},
        {name: {"eth0": (address,)} for name, address in (addresses or {}).items()},
        FLAT.of() if npus is None else npus,
        {},
        dict.fromkeys(addresses or {}, view) if view else {},
    )


def without(*hosts: str) -> dict[str, Any]:
    return {host: told for host, told in FLAT.of().items() if host not in hosts}


OWN = {"node1": "10.0.0.1", "node2": "10.0.0.2", "node3": "10.0.0.3"}
OTHERS = ("server0", "server1", "server2")
CHANGED = FLAT.but({(2, 3): Address("10.20.0.99", 24)}).of()


@pytest.mark.parametrize(
    ("ids", "more"),
    [
        (HOSTS, {}),
        (("10.0.0.1", "10.0.0.2", "10.0.0.3"), {"addresses": OWN}),
        (OTHERS, {}),
        (("node1", "server1", "10.0.0.3"), {"addresses": OWN}),
        (OTHERS, {"npus": FLAT.but({(2, 3): SILENT}).of()}),
    ],
)
def test_servers_are_known_by_name_address_or_devices(ids: Sequence[str], more: dict[str, Any]) -> None:
    said = held_against(table(*ids), **more)
    assert not said.problems
    assert said.unknown_hosts == (("node2",) if "npus" in more else ())
    assert ("device 3: " in said.unknown) is ("npus" in more)


def test_any_text_may_be_a_server_id_and_the_one_wrong_address_is_named() -> None:
    said = held_against(table(*OTHERS), npus=CHANGED)
    assert said.places == {("node2", 3)}
    assert (said.only.expected, said.only.actual) == ("device_ip 10.20.0.19", "10.20.0.99")


def test_equal_faults_of_eight_devices_are_one_problem() -> None:
    moved = {(2, device): Address(f"10.20.9.{device}", 24) for device in range(8)}
    said = held_against(table(*HOSTS), npus=FLAT.but(moved).of())
    assert said.only.summary == "devices 0-7 have other addresses than the rank table says"
    assert (said.only.hosts, said.only.subject) == (("node2",), "ranks 8-15")
    assert said.places == {("node2", device) for device in range(8)}
    assert said.only.expected.startswith("device_ip 10.20.0.16, device_ip 10.20.0.17")
    lost = held_against(table(*HOSTS), own={**everywhere(range(8)), "node3": range(4)}, npus=without("node3"))
    assert [problem.summary for problem in lost.problems] == ["devices 4-7 of the rank table are not there"]


def test_one_address_in_common_is_not_the_same_server() -> None:
    """node3 holds an address of node1 and is not in the table."""
    own = FLAT.but({(3, 0): Address(FLAT.address(1, 0), 24)}).of()
    said = held_against(table("server0", "server1"), npus=own)
    assert (said.only.hosts, said.only.summary) == (("node3",), "the rank table has no entry for this host")


NOT_SAID = "neither a server_id nor a device_ip says which server of the table it is"


@cases_with(View, without)
def test_a_host_is_not_found_in_the_table(
    ids: Sequence[str], more: dict[str, Any], accused: tuple[str, ...], unknown: Sequence[str]
) -> None:
    said = held_against(table(*ids), **more)
    fails = [problem for problem in said.problems if problem.severity is None]
    assert tuple(host for problem in fails for host in problem.hosts) == accused
    assert all(problem.summary == "the rank table has no entry for this host" for problem in fails)
    if unknown:
        assert NOT_SAID in said.unknown
        assert set(unknown) <= set(said.unknown_hosts)
        assert not said.problems
    else:
        assert NOT_SAID not in said.unknown


@pytest.mark.parametrize("view", [View.HOST, View.CONTAINER])
def test_the_only_server_is_the_only_host(view: View) -> None:
    """A table that was made in a container has the container's address, and only root can read any other."""
    more: dict[str, Any] = {"own": {"node1": range(8)}, "npus": {}, "addresses": {"node1": "10.0.0.1"}}
    assert not held_against(table("172.17.0.2"), job=plan("node1"), view=view, **more).problems


@pytest.mark.parametrize(
    ("ids", "more", "confidence"),
    [
        (OTHERS, {"npus": RAILS.of()}, Confidence.CERTAIN),
        (("10.9.0.1",), {"npus": RAILS.of(), "addresses": OWN}, Confidence.CERTAIN),
        (("10.9.0.1",), {"npus": {}, "addresses": OWN, "view": View.HOST}, Confidence.STRONG),
        (("10.9.0.1", "10.9.0.2"), {"npus": {}, "addresses": OWN, "view": View.HOST}, Confidence.STRONG),
        (("10.9.0.1",), {"npus": RAILS.of(1), "job": plan("node1"), "own": {"node1": range(8)}}, None),
    ],
)
def test_a_table_of_another_cluster(
    ids: Sequence[str], more: dict[str, Any], confidence: Confidence | None
) -> None:
    said = held_against(table(*ids), **more)
    assert said.only.summary.startswith("the rank table is that of another cluster")
    assert said.only.severity is None
    assert said.only.confidence is (confidence or Confidence.CERTAIN)
    assert said.only.hosts == (), "the table is wrong, and no host is"
    assert said.only.commands[0].startswith("doctor ranktable make")
    assert not said.unknown


def test_the_only_server_of_a_table_is_the_only_host() -> None:
    """Nothing says so, but the job has no other host; its devices are then compared."""
    alone: dict[str, Any] = {"job": plan("node1"), "npus": {}}
    said = held_against(table("server0"), own={"node1": range(8)}, **alone)
    assert not said.problems
    assert "addresses of its NPUs are not known" in said.unknown
    said = held_against(table("server0"), own={"node1": range(7)}, **alone)
    assert said.places == {("node1", 7)}


def test_unknown_addresses_refer_to_the_check_with_the_reason() -> None:
    said = held_against(table(*HOSTS), npus=without("node2"))
    assert not said.problems
    assert (said.unknown, said.unknown_hosts) == (
        "addresses of its NPUs are not known: device-ip-missing says why",
        ("node2",),
    )


# Two containers of one machine: one server of the table, each with a part of its devices.

HALVES = {"c1": range(4), "c2": range(4, 8)}
SHARED = {name: {n: Address(FLAT.address(1, n), 24) for n in numbers} for name, numbers in HALVES.items()}
ONE_HOST = {"c1": "10.0.0.1", "c2": "10.0.0.1"}


@pytest.mark.parametrize("id", ["10.0.0.1", "server0"])
def test_containers_share_the_devices_of_their_server(id: str) -> None:
    assert held_against(table(id), job=plan(*HALVES), own=HALVES, npus=SHARED, addresses=ONE_HOST).passed


def test_a_device_that_no_container_has_is_missing() -> None:
    own = {"c1": range(4), "c2": range(4, 7)}
    said = held_against(table("10.0.0.1"), job=plan(*own), own=own, npus=SHARED, addresses=ONE_HOST)
    assert said.places == {("c1", 7), ("c2", 7)}
    assert {problem.summary for problem in said.problems} == {"device 7 of the rank table is not there"}


def test_a_container_that_did_not_answer_may_have_the_other_devices() -> None:
    said = held_against(
        table("10.0.0.1"),
        job=plan(*HALVES),
        own={"c1": range(4)},
        npus={"c1": SHARED["c1"]},
        addresses={"c1": "10.0.0.1"},
    )
    assert not said.problems
    assert said.unknown_hosts == ("c1",)
    assert "may have the other devices" in said.unknown


def test_an_unreachable_host_does_not_excuse_another_server() -> None:
    own = {"node1": range(7), "node2": range(8)}
    said = held_against(table(*HOSTS), own=own, npus=FLAT.of(2))
    assert said.places == {("node1", 7)}


@cases
def test_addresses_are_compared_as_addresses(written: str, held: str, same: bool) -> None:
    text = make_table([LiveServer("node1", "node1", (LiveDevice(0, written),))], "1.0", "aarch64")
    assert written in text
    said = held_against(text, job=plan("node1"), own={"node1": [0]}, npus={"node1": {0: Address(held, 64)}})
    assert said.passed is same
    assert said.places == (set() if same else {("node1", 0)})


# rank-table-differs


def file(text: str) -> HostFile:
    """The file as the fact reads it: the text of a large file is not fetched, any other is stripped."""
    return HostFile(posix_cksum(text.encode()), "" if len(text) > MOST else text.strip())


def copies(
    texts: Mapping[str, str | None],
    *,
    told: Mapping[str, str] | None = None,
    given: str | None = None,
    path: str = PATH,
) -> Judgement:
    """Run the check on hosts with these files at `path`, and a table of the command line at PATH."""
    absent = HostFile("", trouble="there is no such file")
    job = replace(
        plan(env=told or {}),
        told_tables=told_tables([ProcessEnv("env0.log", None, told or {})]),
        table_paths=tuple(
            dict.fromkeys(
                [*[p for p in (told or {}).values() if p[0] == "/"], *([PATH] if given is not None else [])]
            )
        ),
    )
    found = {host: {path: absent if text is None else file(text)} for host, text in texts.items()}
    return judge("rank-table-differs", found, job, seen(given) if given is not None else None, ())


TOLD = {"RANK_TABLE_FILE": PATH}
SMALL = table(*HOSTS)
LARGE = SMALL + " " * MOST
BOM = "\ufeff" + SMALL


@pytest.mark.parametrize("text", [SMALL, LARGE, BOM], ids=["small", "large", "bom"])
@pytest.mark.parametrize("told", [TOLD, {}], ids=["told", "not told"])
def test_the_same_file_as_the_one_given(text: str, told: dict[str, str]) -> None:
    assert copies(everywhere(text), told=told, given=text).passed


@pytest.mark.parametrize(
    ("odd", "says"),
    [
        (SMALL.replace("node2", "node9"), '"server_id": "node9"'),
        (LARGE, "another checksum"),
        (SMALL.replace("\n", "\r\n"), "other line ends"),
        (SMALL.strip() + "\n}", "lines instead of"),
    ],
    ids=["line", "large", "line ends", "length"],
)
@pytest.mark.parametrize("given", [SMALL, None], ids=["given", "majority"])
def test_another_file_on_one_host(odd: str, says: str, given: str | None) -> None:
    said = copies({**everywhere(SMALL), "node3": odd}, told=TOLD, given=given).only
    assert said.hosts == ("node3",)
    assert says in said.actual
    shown = [evidence.text for evidence in said.evidence]
    assert shown == [f"cksum {posix_cksum(t.encode())}" for t in (odd, SMALL)]


def test_the_given_table_counts_even_if_all_hosts_differ() -> None:
    said = copies(everywhere(SMALL), told=TOLD, given=SMALL.replace("node2", "node9")).only
    assert said.hosts == HOSTS


def test_an_old_file_at_the_path_of_the_controller_is_ignored() -> None:
    """The launch names another path for the table."""
    old = SMALL.replace("node2", "node9")
    assert copies(everywhere(old), told={"RANK_TABLE_FILE": "/data/hccl.json"}, given=SMALL).passed
    assert copies(everywhere(old), given=SMALL).only.hosts == HOSTS


def test_the_file_that_the_launch_names_is_missing() -> None:
    texts = {**everywhere(SMALL), "node2": None}
    assert copies(texts, told=TOLD).only.hosts == ("node2",)
    assert copies(texts, given=SMALL).passed, "nobody said that it lies there"


@pytest.mark.parametrize("name", ["RANK_TABLE_FILE", "MINDSPORE_HCCL_CONFIG_PATH"])
def test_a_relative_path_is_not_followed(name: str) -> None:
    said = copies(everywhere(SMALL.replace("node2", "node9")), told={name: "conf/hccl.json"}, given=SMALL)
    assert not said.problems
    assert said.unknown == f"{name}=conf/hccl.json depends on the directory in which the job is started"


# The table that checks are given.


def given_table(*said: Capture | MissingFact, env: Mapping[str, str] | None = None) -> JobTable | MissingFact:
    hosts = tuple(Host(f"node{n}", f"node{n}") for n in range(1, len(said) + 1))
    heard = {
        host.name: HostAnswer(
            host.name,
            {} if isinstance(one, MissingFact) else {"tables": one},
            {"tables": one} if isinstance(one, MissingFact) else {},
            True,
            0.0,
            1.0,
        )
        for host, one in zip(hosts, said, strict=True)
    }
    wishes = JobWishes(env=TOLD if env is None else env)
    recording = Recording(1, "0", "check", "standard", "ssh", "", 1.0, hosts, wishes, {}, heard=heard)
    found = run_facts(read_recording(recording))[RANK_TABLE.name]
    assert isinstance(found, JobTable | MissingFact)
    return found


def printed(text: str, *, checksum: int = 7, path: str = PATH) -> Capture:
    return Capture("tables", 0, f"@ {checksum} {len(text)} {path} file\n{text}\n")


def test_the_table_of_most_hosts_is_used() -> None:
    found = given_table(printed(SMALL), printed(table("node1")), printed(SMALL))
    assert isinstance(found, JobTable)
    assert (found.text, found.given, found.checksum) == (SMALL.strip(), False, "7")


@cases_with(MissingFact, printed, Capture)
def test_a_table_that_only_could_not_be_read_is_not_absent(
    said: Capture | MissingFact, env: Mapping[str, str], reason: str, absent: bool
) -> None:
    found = given_table(said, env=env)
    assert isinstance(found, MissingFact)
    assert reason in found.reason
    assert found.absent is absent

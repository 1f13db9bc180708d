"""Processes, devices and addresses are mapped to ranks and hosts only if something shows the mapping."""

from doctor.job.ranktable import read_table
from doctor.logs.judge.job_facts import JobFacts, JobHost
from doctor.logs.judge.parties import bare, key, named, numbers, places_of
from doctor.logs.model import LogFile, LogLine, Logs, Party
from tests.support.cases import cases
from tests.support.paths import ROOT

TABLE = ROOT / "tests" / "samples" / "rank_table" / "v1.0_two_servers.json"
PLAN = JobFacts(
    hosts=(JobHost("node1", ("10.0.0.1", "127.0.0.1"), 2), JobHost("node2", ("10.0.0.2",), 2)),
)


@cases
def test_addresses_in_every_form(written: str, ip: str, device: int | None) -> None:
    assert bare(written) == (ip, device)


@cases
def test_numbers_of_ranks(text: str, expected: tuple[int, ...]) -> None:
    assert numbers(text) == expected


def test_an_address_is_its_host_by_the_plan() -> None:
    places = places_of(Logs(), PLAN)
    assert places.settled(Party(address="[10.0.0.2]:4711"), None).host == "node2"
    assert places.settled(Party(address="10.0.0.9"), None) == Party(address="10.0.0.9")
    assert places.settled(Party(address="127.0.0.1"), None).host is None
    assert places.settled(Party(host="node2.cluster.example"), None).host == "node2"


def test_a_device_is_its_rank_by_the_plan() -> None:
    places = places_of(Logs(), PLAN)
    assert places.settled(Party(address="10.0.0.2/1"), None).rank == 3
    assert places.settled(Party(address="10.0.0.2/7"), None).rank is None
    assert places.settled(Party(rank=2), None).host == "node2"


def test_a_device_is_its_rank_by_the_rank_table() -> None:
    table, _ = read_table(TABLE.read_text())
    assert table is not None
    entry = next(each for each in table.entries if each.rank)
    server = next(each for each in table.servers if entry in each.entries)
    places = places_of(Logs(), JobFacts(tables=(table,)))
    found = places.settled(Party(address=f"{server.host_ip or server.id}/{entry.device}"), None)
    assert (found.rank, found.host) == (entry.rank, places.host_of_rank[entry.rank or 0])


def test_a_process_is_its_rank_once_a_line_says_so() -> None:
    said = LogLine("a.log", 1, "", who=Party(rank=3, host="node2", pid=70))
    places = places_of(Logs((LogFile("a.log", progress=(said,)),)), JobFacts())
    assert places.settled(Party(host="node2", pid=70), None).rank == 3
    assert places.settled(Party(host="node1", pid=70), None).rank is None


def test_a_process_of_two_ranks_is_neither() -> None:
    lines = tuple(LogLine("a.log", 1, "", who=Party(rank=rank, pid=70)) for rank in (1, 2))
    file = LogFile("a.log", progress=lines)
    assert places_of(Logs((file,)), JobFacts()).settled(Party(pid=70), file).rank is None


def test_who_is_named() -> None:
    assert list(named({"ranks": "1,3"})) == [Party(rank=1), Party(rank=3)]
    assert list(named({"peer_address": "10.0.0.2", "bytes": "7"}, "peer_")) == [Party(address="10.0.0.2")]
    assert list(named({"bytes": "7"})) == []
    assert key(Party(address="10.0.0.2:1", device=1)) == key(Party(address="10.0.0.2:2", device=1))

"""How much one host may send, and what happens if it sends more: the others are judged as if alone."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest

from doctor.live.agents import MOST_MEMBERS, LookAgents, LookHost, LookPatience
from doctor.live.onhost import ranks, room
from doctor.live.onhost.tree import Tree
from doctor.transport import Line
from tests.support.hang.known import KNOWN

NAMES = ("node1", "node2")


class Said:
    """A session with hosts whose lines are known: those before the request to look, and those after it."""

    def __init__(self, lines: Mapping[str, tuple[Iterable[bytes], Iterable[bytes]]]) -> None:
        self.lines = lines
        self.heard: dict[str, Iterator[bytes]] = {host: iter(find) for host, (find, _) in lines.items()}

    def send(self, host: str, line: bytes) -> None:
        if b'"do":"look"' in line and host in self.heard:
            self.heard[host] = iter(self.lines[host][1])

    def receive(self, timeout: float) -> Line | None:
        del timeout
        for host, lines in self.heard.items():
            if (line := next(lines, None)) is not None:
                return Line(host, line)
        return None

    def end(self, host: str) -> None:
        self.heard.pop(host, None)

    def close(self) -> None:
        pass


def member(pid: int, **more: Any) -> bytes:
    known = {"host": "", "pid": pid, "parent": 1, "job": "node1:1", "rank": 0, "world": 2, **more}
    return json.dumps({"say": "member", "member": known}).encode()


FOUND = b'{"say":"found","ranks":1}'
SEEN = b'{"say":"seen","at":1.0,"apart":2.0}'
GOOD = ((member(5), FOUND), (b'{"say":"look","which":"b","look":{"pid":5,"state":"S"}}', SEEN))
FILES = json.dumps(["x" * 4_000] * 64)
LARGE = f'{{"say":"look","which":"b","look":{{"pid":7,"state":"S","files":{FILES}}}}}'.encode()
THREADS = ",".join(['{"tid":1,"name":"","state":"","syscall":["a","b","c","d"]}'] * 4_000)
SMALL = f'{{"say":"look","which":"b","look":{{"pid":7,"state":"S","threads":[{THREADS}]}}}}'.encode()
TEXT = json.dumps(
    {"say": "library", "text": {"source": "nccl-ras", "name": "x", "text": "x" * 576_000}}
).encode()


def heard(find: Iterable[bytes], looks: Iterable[bytes]) -> LookAgents[LookHost]:
    session = Said({"node1": GOOD, "node2": (find, looks)})
    patience = LookPatience(whole=60.0)
    agents = LookAgents[LookHost](session, NAMES, patience, math.inf)
    agents.find(lambda: None)
    agents.look(2.0, lambda: None)
    return agents


@pytest.mark.slow
@pytest.mark.parametrize("line", [LARGE, SMALL, TEXT], ids=["bytes", "values", "libraries"])
def test_a_host_that_says_too_much_counts_as_not_seen(line: bytes) -> None:
    agents = heard((member(7), FOUND), (line for _ in range(1_000)))
    assert agents.unreached == {"node2": "it sent more than 64 MB, so it counts as not seen"}
    bad = agents.agents["node2"]
    assert (bad.members, bad.looks, bad.libraries) == ({}, {}, []), "nothing of it is kept"
    good = agents.agents["node1"].evidence()
    assert [m.b.state for m in good.members if m.b] == ["S"]


def test_nor_may_it_have_more_ranks_than_any_host() -> None:
    agents = heard((member(pid) for pid in range(10, 3 * MOST_MEMBERS)), (SEEN,))
    assert agents.unreached == {"node2": "it reported more than 4,096 processes, so it counts as not seen"}


def test_a_full_host_is_heard() -> None:
    pids = range(10, 10 + MOST_MEMBERS)
    looks = (
        f'{{"say":"look","which":"{w}","look":{{"pid":{pid},"state":"S"}}}}' for pid in pids for w in "ab"
    )
    find = (*(member(pid) for pid in pids), FOUND)
    agents = heard(find, (*(each.encode() for each in looks), SEEN))
    assert not agents.unreached
    assert len(agents.agents["node2"].evidence().members) == MOST_MEMBERS


def test_what_an_agent_may_say_fits_into_what_is_heard() -> None:
    whole = room.FOR_MEMBERS + 2 * room.FOR_LOOK + room.FOR_BETWEEN + room.FOR_LIBRARIES
    assert whole + room.LONGEST < room.WHOLE


@pytest.mark.slow
def test_nobody_takes_the_room_of_others() -> None:
    place = room.Room(1 << 20, ["root", "mallory"])
    assert not all(place.takes("mallory", "x" * 10_000) for _ in range(100))
    assert place.takes("root", "x" * 500_000)
    row = {
        "state": "S",
        "name": "python",
        "start": 1,
        "command": ["python", "x.py"],
        "exe": "",
        "hidden": False,
    }
    rows = [
        {**row, "pid": pid, "parent": 1, "uid": uid, "groups": False, "ours": False, "blocked": False}
        | {
            "typed": False,
            "exe": "",
            "env": {"RANK": str(pid % 99), "WORLD_SIZE": "99", "MASTER_PORT": str(pid)},
        }
        for pid, uid in [*((pid, 65534) for pid in range(10, 6_000)), (7_000, 0)]
    ]
    found = ranks.members(Tree(KNOWN, rows))
    assert len(found) <= ranks.MOST
    assert 7_000 in {one["pid"] for one in found}

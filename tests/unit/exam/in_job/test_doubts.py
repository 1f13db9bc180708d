"""The parts of a report about ranks that could not be sure of each other."""

from types import SimpleNamespace
from typing import Any

import msgspec

from doctor.exam.in_job.hub import Hub, HubMember
from doctor.exam.in_job.messages import MEMBER, Hello
from doctor.exam.in_job.rank_env import read_job_rank

JOB = {"RANK": "0", "WORLD_SIZE": "5", "MASTER_ADDR": "node1", "MASTER_PORT": "29500"}
PLACES = {f"node{n}": (f"node{n}", "") for n in range(1, 5)}


def of(more: dict[str, str], **sure: bool) -> Hub:
    """Rank 0 on node1, and one rank on each of these hosts."""
    hub = Hub(read_job_rank({**JOB, **more}), hello(0, "node1"))
    for rank, (host, is_sure) in enumerate(sure.items(), 1):
        link: Any = SimpleNamespace(closed=False)
        hub.members[rank] = HubMember(hello(rank, host, is_sure), link)
    return hub


def hello(rank: int, host: str, sure: bool = False, **env: str) -> Hello:
    return Hello(rank, 5, host, "", 1, 1, 1, "0", env=env, sure=sure)


def test_ranks_that_are_sure_say_nothing() -> None:
    assert of({}).doubts(PLACES) == []
    assert of({}, node1=True, node2=True).doubts(PLACES) == []
    assert of({"DOCTOR_JOB_KEY": "x" * 16}, node2=True).doubts(PLACES) == []


def test_hosts_that_cannot_be_sure_of_rank_0_are_named() -> None:
    (said,) = of({}, node1=True, node2=False, node3=False, node4=True).doubts(PLACES)
    assert said.startswith("the ranks on node[2-3] could not verify rank 0 by anything that only this user")
    assert "DOCTOR_JOB_KEY" in said


def test_a_short_key_is_named() -> None:
    assert of({"DOCTOR_JOB_KEY": "secret"}, node2=True).doubts(PLACES) == [
        "DOCTOR_JOB_KEY has 6 characters: it can be guessed"
    ]


def test_ranks_that_were_not_let_in_are_named_and_counted() -> None:
    hub = of({})
    hub.refused.update(dict.fromkeys(range(1, 5), "another process has its number"))
    assert hub.doubts(PLACES)[0] == "rank 1 was not let in: another process has its number"


def test_a_long_variable_keeps_no_rank_out() -> None:
    """Paths of libraries are long."""
    said = hello(1, "node1", LD_LIBRARY_PATH="/opt/lib:" * 400)
    assert MEMBER.decode(msgspec.json.encode(said)) == said

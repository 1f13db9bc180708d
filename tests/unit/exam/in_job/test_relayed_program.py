"""How much rank 0 keeps of the output of a program on another rank: never more than a bound, and nothing
after its end.
"""

from typing import Any

import msgspec
import pytest

from doctor.exam.in_job.hub import Hub, HubMember
from doctor.exam.in_job.messages import EndProgram, Hello
from doctor.exam.in_job.rank_env import read_job_rank
from doctor.exam.in_job.relay import JobTransport
from doctor.exam.in_job.relayed_program import MOST_UNREAD, RelayedProgram
from doctor.exam.in_job.wire import PIECE, STDERR, STDOUT
from doctor.model import AnswerEnd, UnreachedHost, UnreachedKind
from doctor.transport import Script
from doctor.transport.errors import CannotReach
from doctor.transport.question import MeshQuestion
from tests.support.transport_servers import why_ended

PLACES = {"node1": ("node1", ""), "node2": ("node2", "")}
SCRIPTS = {"node2": Script("", b"", b"end", MeshQuestion())}


class Link:
    """A link to a rank that answers each start of a program with the result of `says`."""

    closed = full = False

    def __init__(self, says: Any = lambda _: None) -> None:
        self.told: list[msgspec.Struct] = []
        self.says = says
        self.hub: Hub | None = None

    def tell(self, message: Any) -> None:
        self.told.append(message)
        if self.hub and type(message).__name__ == "StartProgram":
            self.says(self.hub.programs[message.number])


def a_hub(link: Any) -> Hub:
    """Rank 0 on node1, and a rank on node2."""
    job = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "node1", "MASTER_PORT": "29500"}
    hub = Hub(read_job_rank(job), Hello(0, 2, "node1", "", 1, 1, 1, "0", env={}))
    hub.members[1] = HubMember(Hello(1, 2, "node2", "", 1, 1, 1, "0", env={}), link)
    link.hub = hub
    return hub


def begun(link: Any) -> tuple[RelayedProgram, dict[int, RelayedProgram]]:
    living: dict[int, RelayedProgram] = {}
    return RelayedProgram(link, MeshQuestion(), living), living


def kept(program: RelayedProgram) -> int:
    return len(program._out) + len(program._err)


@pytest.mark.parametrize("stop", ["cut", "end", "over"])
def test_nothing_is_kept_of_what_comes_after_the_end(stop: str) -> None:
    program, _ = begun(Link())
    getattr(program, stop)(*([0] if stop == "over" else []))
    program.came(STDOUT, b"x" * 100)
    program.came(STDERR, b"x" * 100)
    assert kept(program) == 0


def test_one_that_floods_is_ended_and_costs_nothing_more() -> None:
    link = Link()
    program, living = begun(link)
    for _ in range(2 * MOST_UNREAD // PIECE):
        program.came(STDOUT, b"x" * PIECE)
        assert kept(program) <= MOST_UNREAD
    assert kept(program) == 0
    assert link.told[-1] == EndProgram(program.number)
    assert living == {}
    assert not program.finished()
    with pytest.raises(CannotReach) as error:
        program.take()
    assert error.value.kind is UnreachedKind.FLOOD
    program.end()
    assert len([told for told in link.told if isinstance(told, EndProgram)]) == 1


def flood(program: RelayedProgram) -> None:
    for _ in range(MOST_UNREAD // PIECE + 1):
        program.came(STDERR, b"x" * PIECE)


def test_the_host_is_named_as_flooding() -> None:
    transport = JobTransport(a_hub(Link(flood)), PLACES, {})
    (outcome,) = transport.run(SCRIPTS, 5)
    assert isinstance(outcome, UnreachedHost)
    assert (outcome.host, outcome.kind) == ("node2", UnreachedKind.FLOOD)
    session = transport.open(SCRIPTS)
    assert why_ended(session) is UnreachedKind.FLOOD
    session.close()


def test_programs_leave_the_hub_at_their_end() -> None:
    def answer(program: RelayedProgram) -> None:
        program.came(STDOUT, b"here\nend\n")
        program.over(0)

    hub = a_hub(Link(answer))
    transport = JobTransport(hub, PLACES, {})
    for _ in range(3):
        (outcome,) = transport.run(SCRIPTS, 5)
        assert not isinstance(outcome, UnreachedHost)
        assert (outcome.end, outcome.stdout, outcome.rc) == (AnswerEnd.DONE, b"here\nend\n", 0)
    assert hub.programs == {}

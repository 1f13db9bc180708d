"""Many hosts and little time: which hosts are asked, the cost of the others, and the report about them."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping

import pytest

from doctor.errors import UsageError
from doctor.model import Answer, AnswerEnd, UnreachedHost, UnreachedKind
from doctor.transport import Script
from doctor.transport.errors import CannotReach
from doctor.transport.program import converse
from doctor.transport.threads import MOST_WAITING, Outcome, ThreadedTransport, Turn
from tests.support.transport_servers import why_ended


class Written(Mapping[str, Script]):
    """Scripts of many hosts; counts the scripts that were looked up."""

    def __init__(self, hosts: int) -> None:
        self.hosts = [f"node{number}" for number in range(hosts)]
        self.written = 0

    def __getitem__(self, host: str) -> Script:
        self.written += 1
        return Script("", b"", b"")

    def __iter__(self) -> Iterator[str]:
        return iter(self.hosts)

    def __len__(self) -> int:
        return len(self.hosts)


class Fake(ThreadedTransport):
    """Dials `fanout` hosts at a time. Each call lasts as long as nobody answers: until `freed`."""

    name = "fake"

    def __init__(self, fanout: int, *, deaf: bool = False) -> None:
        super().__init__()
        self.room = threading.Semaphore(fanout)
        self.freed = threading.Event()
        self.deaf = deaf
        self.most = 0

    def program(self, host: str, command: str, turn: Turn) -> Silent:  # noqa: ARG002
        with self.room:
            turn.begin()
            self.most = max(self.most, threading.active_count())
            if self.deaf:
                self.freed.wait(20)
            return Silent()

    def give_up(self, host: str) -> str:  # noqa: ARG002
        return "it was dialled"

    def close(self) -> None:
        self.freed.set()


class Silent:
    """A program that ends at once. See `Program`."""

    def wait(self, seconds: float) -> None:
        """Nothing comes."""

    def ring(self) -> None:
        """Nobody waits."""

    def take(self) -> tuple[bytes, bytes]:
        return b"", b""

    def give(self, data: memoryview) -> int:
        return len(data)

    def finished(self) -> bool:
        return True

    def broken(self) -> bool:
        return False

    def status(self, seconds: float) -> int | None:  # noqa: ARG002
        return 0

    def hang_up(self) -> None:
        """It has ended."""

    def end(self) -> None:
        """It has ended."""


def kinds(outcomes: list[Outcome]) -> Counter[UnreachedKind | AnswerEnd]:
    return Counter(each.kind if isinstance(each, UnreachedHost) else each.end for each in outcomes)


@pytest.mark.slow
def test_hosts_whose_turn_does_not_come_say_so_and_cost_nothing() -> None:
    transport, scripts = Fake(fanout=4, deaf=True), Written(50_000)
    began = time.monotonic()
    outcomes = list(transport.run(scripts, 60.0, began + 0.5))
    assert time.monotonic() - began < 5
    transport.close()
    assert kinds(outcomes) == {UnreachedKind.TIMEOUT: 4, UnreachedKind.DEADLINE: 49_996}
    assert {each.host for each in outcomes} == set(scripts.hosts)
    late = {each.summary for each in outcomes if isinstance(each, UnreachedHost) and each.kind == "deadline"}
    assert late == {"Its turn had not come when the time for the whole run was over."}
    assert transport.most < MOST_WAITING + 50
    assert scripts.written <= MOST_WAITING + 4


@pytest.mark.slow
def test_every_host_has_its_turn_where_there_is_time() -> None:
    transport, scripts = Fake(fanout=4), Written(2000)
    outcomes = list(transport.run(scripts, 60.0, time.monotonic() + 60))
    assert kinds(outcomes) == {AnswerEnd.DONE: 2000}
    assert len({each.host for each in outcomes}) == 2000


def test_nobody_is_dialled_after_the_end() -> None:
    transport, scripts = Fake(fanout=4), Written(100)
    outcomes = list(transport.run(scripts, 60.0, time.monotonic() - 1))
    assert kinds(outcomes) == {UnreachedKind.DEADLINE: 100}
    assert (transport.most, scripts.written) == (0, 0)
    with pytest.raises(CannotReach):
        Turn(60.0, time.monotonic() - 1).begin()


def test_a_host_has_no_more_time_than_the_run() -> None:
    now = time.monotonic()
    assert Turn(60.0, now + 5).begin() == pytest.approx(now + 5, abs=1)
    assert Turn(5.0, now + 60).begin() == pytest.approx(now + 5, abs=1)


def test_what_was_answered_in_time_is_kept() -> None:
    transport = Fake(fanout=1)
    [got] = transport.run(Written(1), 60.0, time.monotonic() + 60)
    assert isinstance(got, Answer)


def test_hosts_wait_for_threads_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start
    most = threading.active_count() + 3

    def limited(thread: threading.Thread) -> None:
        if threading.active_count() >= most:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    assert kinds(list(Fake(fanout=2).run(Written(300), 60.0))) == {AnswerEnd.DONE: 300}


def test_a_shortage_of_threads_is_no_fault_of_a_host(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    transport = Fake(fanout=4)
    monkeypatch.setattr(threading.Thread, "start", start)
    outcomes = list(transport.run(Written(3), 60.0))
    assert kinds(outcomes) == {UnreachedKind.CONTROLLER: 3}
    session = transport.open({"node1": Script("", b"", b"")})
    assert why_ended(session) is UnreachedKind.CONTROLLER
    session.close()


class Slept(Silent):
    """A program whose output has arrived, and is handed over a moment later."""

    def __init__(self) -> None:
        self.said = [b"", b"DONE\n"]

    def take(self) -> tuple[bytes, bytes]:
        return (self.said.pop(0), b"") if self.said else (b"", b"")

    def finished(self) -> bool:
        return False


def test_what_came_while_this_program_was_stopped_is_read() -> None:
    got = converse("node1", Slept(), Script("", b"", b"DONE"), time.monotonic() - 1)
    assert (got.stdout, got.end) == (b"DONE\n", AnswerEnd.DONE)
    assert converse("node1", Slept(), Script("", b"", b"x"), 0.0).end is AnswerEnd.TIMEOUT


def test_a_mistake_of_the_person_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def program(*_: object) -> Silent:
        raise UsageError("ssh_config: port of node1 is not a number: many")

    transport = Fake(fanout=4)
    monkeypatch.setattr(transport, "program", program)
    with pytest.raises(UsageError, match="port of node1"):
        list(transport.run(Written(3), 60.0))

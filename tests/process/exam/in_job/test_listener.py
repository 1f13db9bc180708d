"""Rank 0's port: a client that has not proved to belong to the job does not keep anyone out."""

import os
import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from queue import SimpleQueue

import msgspec
import pytest

from doctor.exam.in_job.find_head import FoundHead, find_head
from doctor.exam.in_job.handshake import Introduction, Stranger, endpoint
from doctor.exam.in_job.listener import MOST_VISITORS, RankListener, RankVisitor
from doctor.exam.in_job.messages import Beat, Hello
from doctor.exam.in_job.rank_env import JobRank, read_job_rank
from doctor.exam.in_job.wire import CONTROL, Loop
from tests.support.injob import await_true, free_port

HELLO = Hello(1, 2, "node1", "", 1, 1, 1, "0")
HEALTHY = 64
"""As many clients as once sufficed to take every place."""


@pytest.fixture
def seat() -> JobRank:
    port = str(free_port())
    return read_job_rank({"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port})


@pytest.fixture
def came(seat: JobRank) -> Iterator[SimpleQueue[RankVisitor]]:
    """The clients that a listener of that job admits."""
    queue: SimpleQueue[RankVisitor] = SimpleQueue()
    listener = RankListener(seat, queue.put)
    yield queue
    listener.close()


def come(seat: JobRank, said: msgspec.Struct | bytes = HELLO) -> socket.socket:
    """Connect as a rank of the job, with `said` as its first message."""
    found = find_head(seat, time.monotonic() + 20)
    assert isinstance(found, FoundHead), found
    loop = Loop(lambda *_: None, lambda _: None, lambda _: None, lambda *_: None)
    link = loop.link(found.connection, found.seals)
    link.send(CONTROL, 0, said if isinstance(said, bytes) else msgspec.json.encode(said))
    link.flush()
    return found.connection


@pytest.mark.parametrize("slow", [HEALTHY, MOST_VISITORS + 50])
def test_slow_strangers_keep_no_rank_out(seat: JobRank, came: SimpleQueue[RankVisitor], slow: int) -> None:
    over = threading.Event()
    with ExitStack() as stack:
        knocking = [
            stack.enter_context(socket.create_connection(("127.0.0.1", seat.ports[0]))) for _ in range(slow)
        ]

        def dribble() -> None:
            while not over.wait(0.1):
                for each in knocking:
                    with suppress(OSError):
                        each.send(b"x")

        thread = threading.Thread(target=dribble, daemon=True)
        thread.start()
        began = time.monotonic()
        stack.enter_context(come(seat))
        visitor = came.get(timeout=20)
        over.set()
        thread.join()
    assert visitor.hello == HELLO
    assert time.monotonic() - began < 15
    visitor.connection.close()


def test_one_that_proves_itself_and_says_nothing_is_let_go(
    seat: JobRank, came: SimpleQueue[RankVisitor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("doctor.exam.in_job.listener.SILENT", 0.5)
    found = find_head(seat, time.monotonic() + 20)
    assert isinstance(found, FoundHead)
    with found.connection as connection:
        connection.settimeout(10)
        assert connection.recv(1) == b""
    assert came.empty()


def test_who_does_not_say_who_it_is_is_let_go(seat: JobRank, came: SimpleQueue[RankVisitor]) -> None:
    with come(seat, Beat()) as connection:
        connection.settimeout(10)
        assert connection.recv(1) == b""
    assert came.empty()


@pytest.mark.parametrize(
    "said", [b'{"do": "hello", "host": "\xbd"}', b'{"do": "hello", "x": ' + b"[" * 60_000, b"\xff"]
)
def test_what_cannot_be_read_ends_nobody_else(
    seat: JobRank, came: SimpleQueue[RankVisitor], said: bytes
) -> None:
    with come(seat, said) as stranger:
        stranger.settimeout(20)
        assert stranger.recv(1) == b""
    with come(seat):
        visitor = came.get(timeout=20)
        assert visitor.hello == HELLO
        visitor.connection.close()


def test_a_connection_that_was_meant_for_another_place_is_refused(seat: JobRank) -> None:
    """As through a relay, or with translated addresses. Both sides report it."""
    listener = RankListener(seat, lambda _: None)
    try:
        with socket.create_connection(("127.0.0.1", seat.ports[0])) as connection:
            lines = connection.makefile("rb")
            there = endpoint(("10.1.2.3", 4711))
            mine = Introduction(seat.token, there)
            connection.sendall(mine.answer(lines.readline().rstrip()))
            with pytest.raises(
                Stranger, match=r"what comes to 10\.1\.2\.3:4711 arrives at 127\.0\.0\.1 port"
            ):
                mine.confirm(lines.readline().rstrip())
            assert lines.read(1) == b""
        assert "by a relay or translation" in " ".join(listener.turned_away)
    finally:
        listener.close()


def test_without_descriptors_the_oldest_stranger_goes(seat: JobRank, came: SimpleQueue[RankVisitor]) -> None:
    """A process has a limited number of descriptors; a rank is admitted all the same."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = len(os.listdir("/proc/self/fd"))
    with ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        for _ in range(20):
            stack.enter_context(socket.create_connection(("127.0.0.1", seat.ports[0])))
        await_true(lambda: len(os.listdir("/proc/self/fd")) >= taken + 40)
        stranger = stack.enter_context(socket.socket())  # which gets the lowest number that is free
        resource.setrlimit(resource.RLIMIT_NOFILE, (stranger.fileno() + 1, hard))
        stranger.settimeout(60)
        stranger.connect(("127.0.0.1", seat.ports[0]))
        assert stranger.recv(7) == b"cluster"
    assert came.empty()

"""Lines of several hosts, one of which prints without end: the cost for the others."""

import threading
from collections.abc import Iterable, Iterator

import pytest

from doctor.model import UnreachedKind
from doctor.transport import Line, Script, SessionEnd
from doctor.transport.session import LINE_COST, MOST_UNHEARD, Sessions
from tests.support.transport_servers import why_ended
from tests.unit.transport.test_threads import Silent

PIECE = 256 * 1024


class Talker(Silent):
    """A program that prints these pieces; `stderr` is where. See `Program`."""

    def __init__(self, pieces: Iterable[bytes], *, stderr: bool = False) -> None:
        self.pieces = iter(pieces)
        self.stderr = stderr
        self.taken = 0
        self.over = threading.Event()
        self.bell = threading.Event()
        self.done = False

    def wait(self, seconds: float) -> None:
        self.bell.wait(seconds)
        self.bell.clear()

    def ring(self) -> None:
        self.bell.set()

    def take(self) -> tuple[bytes, bytes]:
        piece = next(self.pieces, b"")
        self.done = not piece
        self.taken += len(piece)
        return (b"", piece) if self.stderr else (piece, b"")

    def finished(self) -> bool:
        return self.done

    def end(self) -> None:
        self.over.set()


def endless(piece: bytes) -> Iterator[bytes]:
    while True:
        yield piece


def opened(**programs: Talker) -> Sessions:
    scripts = dict.fromkeys(programs, Script("", b"", b""))
    return Sessions(scripts, lambda host, _: programs[host])


def heard(session: Sessions, most: int = 1000) -> list[Line | SessionEnd]:
    news = (session.receive(5) for _ in range(most))
    return [each for each in news if each is not None]


EMPTY = b"\n" * PIECE


@pytest.mark.parametrize("piece", [EMPTY, b"x" * 99 + b"\n", b"y" * PIECE + b"\n"])
def test_a_flood_keeps_no_other_host_waiting(piece: bytes) -> None:
    quiet = [b"one\ntwo\nthree\n"]
    session = opened(loud=Talker(endless(piece)), quiet=Talker(quiet))
    session._voices["quiet"].thread.join(5)
    turns = [news.host for news in heard(session, 9)]
    session.close()
    assert turns.count("quiet") == 4  # and its end


@pytest.mark.parametrize("piece", [EMPTY, b"x" * 99 + b"\n", b"y" * PIECE + b"\n"])
def test_a_flood_that_nobody_hears_takes_bounded_memory(piece: bytes) -> None:
    loud = Talker(endless(piece))
    session = opened(loud=loud, quiet=Talker([b"one\n"]))
    while not (voice := session._voices["loud"]).unheard >= MOST_UNHEARD:
        pass
    lines = len(voice.news)
    assert lines * LINE_COST <= MOST_UNHEARD + 2 * PIECE
    assert loud.taken <= MOST_UNHEARD + 3 * PIECE
    session.close()


@pytest.mark.slow
def test_nothing_is_lost_of_a_host_that_was_left_waiting() -> None:
    pieces = [b"%d\n%d" % (number, number) + b"\n" * (number % 7) for number in range(30_000)]
    session = opened(loud=Talker(pieces))
    texts = []
    while isinstance(news := session.receive(5), Line):
        texts.append(news.text)
    assert isinstance(news, SessionEnd)
    assert texts == b"".join(pieces).removesuffix(b"\n").split(b"\n")


def test_a_host_that_is_ended_says_no_more() -> None:
    loud = Talker(endless(EMPTY))
    session = opened(loud=loud)
    assert isinstance(session.receive(5), Line)
    session.end("loud")
    assert loud.over.wait(5)
    session._voices["loud"].thread.join(5)
    assert session.receive(0) is None
    session.end("nobody")


def test_a_flood_of_complaints_ends_a_host() -> None:
    session = opened(loud=Talker(endless(b"no\n" * 1000), stderr=True))
    assert why_ended(session) is UnreachedKind.FLOOD

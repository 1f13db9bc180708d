"""A link between two ranks that carries more than its peer reads at once."""

import socket
from queue import SimpleQueue

import pytest

from doctor.exam.in_job.handshake import Seal, Seals
from doctor.exam.in_job.wire import FULL, Loop, RankLink

KEY = bytes(32)


def unheard(*_: object) -> None:
    pytest.fail("nothing is said on this link, and it does not end")


def test_a_link_that_was_full_says_when_it_is_not_any_more() -> None:
    drained = SimpleQueue[tuple[RankLink, bool]]()
    loop = Loop(unheard, unheard, lambda link: drained.put((link, link.full)), lambda *_: None)
    here, there = socket.socketpair()
    link = loop.link(here, Seals(Seal(KEY, b"a"), Seal(KEY, b"b")))
    loop.start()
    with here, there:
        link.send(1, 0, bytes(2 * FULL))
        loop.adopt(link)
        assert link.full
        assert drained.empty(), "nobody has read it"
        left = 2 * FULL
        while left > 0:
            left -= len(there.recv(1 << 20))
        assert drained.get(timeout=10) == (link, False)
        assert drained.empty(), "once is enough"
        loop.stop()

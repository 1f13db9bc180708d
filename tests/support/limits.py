"""A limit on the processor time of a piece of code, so that a busy or a slow machine changes no result."""

import contextlib
import re
import signal
import time
from collections.abc import Iterator

_WORK = re.compile(r"(\w+)=(\d+)")
_USUAL = 0.020
"""Processor seconds that it takes on the machine for which the limits were chosen."""


class TooSlow(BaseException):
    """Not an Exception, so that the tested code cannot swallow it."""


def slowness() -> float:
    """How many times longer than on the usual machine a fixed piece of Python takes now; at least 1."""
    began = time.process_time()
    for turn in range(480):
        text = " ".join(f"a{number}={number}" for number in range(turn, turn + 100))
        assert len(dict(_WORK.findall(text))) == 100
    return max(1.0, (time.process_time() - began) / _USUAL)


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Stop the block with TooSlow once it has used this much processor time of this process. A machine that
    is slower than the usual one is given as much more time.
    """
    given = seconds * slowness()
    running = True

    def stop(*_: object) -> None:
        if running:
            raise TooSlow(f"used more than {given:g} s of processor time")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, given)
    try:
        yield
    finally:
        running = False
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)

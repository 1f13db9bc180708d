"""A limit on the processor time of a piece of code, so that a busy machine changes no result."""

import contextlib
import signal
from collections.abc import Iterator


class TooSlow(BaseException):
    """Not an Exception, so that the tested code cannot swallow it."""


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Stop the block with TooSlow once it has used this much processor time of this process."""
    running = True

    def stop(*_: object) -> None:
        if running:
            raise TooSlow(f"used more than {seconds:g} s of processor time")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        running = False
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)

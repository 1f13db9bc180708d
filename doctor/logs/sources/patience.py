"""How long may be read: what a small file unpacks to must not keep anybody for hours."""

from __future__ import annotations

import io
import os
import select
import time
from typing import BinaryIO

from doctor.logs.sources.limits import Damaged, Limits

TOO_LONG = "reading took too long for its size: give fewer files at once"
LATE = "the --deadline came before its end"


class Patience:
    """Seconds of work, more of them for more input; or the seconds that a person gave, by the clock.

    Work is what this process computes: a pipe that is silent, and a machine that is busy, cost nothing.
    """

    def __init__(self, limits: Limits, deadline: float | None = None) -> None:
        self._per_byte = limits.seconds_a_megabyte / (1 << 20)
        self._worked_until = time.process_time() + limits.seconds
        self._until = None if deadline is None else time.monotonic() + deadline
        self._parent = 0
        self.granted = 0.0

    def afresh(self, limits: Limits) -> Patience:
        """For what is next, whatever this one has worked; a person's deadline stays."""
        new = Patience(limits)
        new._until = self._until
        return new

    def grant(self, size: int) -> None:
        """For so many bytes as they were given: what they unpack to is not known, and earns nothing."""
        self.granted += size * self._per_byte
        self._worked_until += size * self._per_byte

    def forked(self, used: float, parent: int) -> None:
        """Now in another process, whose clock begins at nothing: what was worked before the fork counts."""
        self._worked_until -= used
        self._parent = parent

    def shared(self, worked: float, granted: float) -> None:
        """What another process worked and was granted counts here too."""
        self._worked_until += granted - worked

    @property
    def over(self) -> str:
        """Why nothing is read any more; empty while there is time."""
        if self._parent and os.getppid() != self._parent:
            os._exit(1)  # nobody waits for what is read here
        if self._until is not None:
            return LATE if time.monotonic() > self._until else ""
        return TOO_LONG if time.process_time() > self._worked_until else ""

    def check(self) -> None:
        if self.over:
            raise Damaged(self.over)

    def wait_for(self, pipe: BinaryIO) -> None:
        """Until it says something, or the time is over."""
        if self._until is None:
            return
        try:
            select.select([pipe], [], [], max(0.0, self._until - time.monotonic()))
        except (io.UnsupportedOperation, ValueError, OSError):
            return  # bytes in memory
        self.check()

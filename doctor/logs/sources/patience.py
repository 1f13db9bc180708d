"""The time limit of reading: a small file that unpacks to a huge one must not take hours."""

from __future__ import annotations

import io
import os
import select
import time
from collections.abc import Callable
from typing import BinaryIO

from doctor.logs.sources.limits import DamagedInput, ReadLimits

TOO_LONG = "reading took too long for its size: give fewer files at once"
LATE = "the --deadline came before its end"


class Patience:
    """A limit in seconds of CPU time, which grows with the input; or the user's deadline, by the clock.

    Only CPU time of this process counts: waiting for a silent pipe or a busy machine costs nothing.
    """

    def __init__(
        self, limits: ReadLimits, deadline: float | None = None, taken: Callable[[int], None] | None = None
    ) -> None:
        """`taken` is called with the size of each piece of input, as it is on the disk."""
        self._per_byte = limits.seconds_a_megabyte / (1 << 20)
        self._worked_until = time.process_time() + limits.seconds
        self._until = None if deadline is None else time.monotonic() + deadline
        self._parent = 0
        self.taken = taken
        self.granted = 0.0

    def afresh(self, limits: ReadLimits) -> Patience:
        """A full new limit for the next input; the user's deadline stays."""
        new = Patience(limits, taken=self.taken)
        new._until = self._until
        return new

    def grant(self, size: int) -> None:
        """Add time for `size` bytes of input; what they unpack to adds nothing."""
        self.granted += size * self._per_byte
        self._worked_until += size * self._per_byte
        if self.taken:
            self.taken(size)

    def forked(self, used: float, parent: int, at_once: int = 1) -> None:
        """Continue in a forked process, whose CPU clock starts at 0: the time used before the fork counts.
        The time that is left is divided among the processes that may run at once.
        """
        left = self._worked_until - used
        self._worked_until = left / at_once if left > 0 else left
        self._parent = parent

    def shared(self, worked: float, granted: float) -> None:
        """Add the time that another process used and was granted."""
        self._worked_until += granted - worked

    @property
    def over(self) -> str:
        """Why reading must stop; empty while there is time."""
        if self._parent and os.getppid() != self._parent:
            os._exit(1)  # the parent ended: nobody waits for the result
        if self._until is not None:
            return LATE if time.monotonic() > self._until else ""
        return TOO_LONG if time.process_time() > self._worked_until else ""

    def late(self, by: float) -> bool:
        """Whether the user's deadline passed more than `by` seconds ago."""
        return self._until is not None and time.monotonic() > self._until + by

    def check(self) -> None:
        if self.over:
            raise DamagedInput(self.over)

    def wait_for(self, pipe: BinaryIO) -> None:
        """Wait until the pipe has data, or the time is over."""
        if self._until is None:
            return
        try:
            poll = select.poll()
            poll.register(pipe, select.POLLIN)
            poll.poll(max(0.0, self._until - time.monotonic()) * 1000)
        except (io.UnsupportedOperation, ValueError, OSError):
            return  # bytes in memory
        self.check()

"""Notices that this program was paused (SIGSTOP, a suspended machine): later failures then blame no host."""

import contextlib
import threading
import time

BEAT = 0.5
PAUSE = 4.0
"""Seconds that count as a pause. Even on a busy machine a thread waits for less than that."""


class Pauses:
    """A thread that should wake up at each beat. If it wakes up late, the whole program was paused."""

    def __init__(self) -> None:
        self._longest = 0.0
        self._woke = time.monotonic()
        self._over = threading.Event()
        with contextlib.suppress(RuntimeError):  # if no thread can start, another finding reports it
            threading.Thread(target=self._beat, name="pauses", daemon=True).start()

    @property
    def longest(self) -> float:
        """The longest pause in seconds; 0 if there was none."""
        missed = time.monotonic() - self._woke
        return max(self._longest, missed if missed >= PAUSE else 0.0)

    def close(self) -> None:
        self._over.set()

    def _beat(self) -> None:
        while not self._over.wait(BEAT):
            self._longest, self._woke = self.longest, time.monotonic()

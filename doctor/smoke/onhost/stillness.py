"""For how long nothing has moved on a host, counted in the agent's own looks.

A look counts for a few turns at most: an agent that got no CPU itself for a second has not seen a rank stand
still for a second, and accuses nobody. Python 3.6 and later.
"""

import time

POLL = 0.02
MOST = 5 * POLL


class Stillness:
    def __init__(self) -> None:
        self.quiet = 0.0
        self.gap = 0.0
        self._phase = None  # type: tuple[int, bool] | None
        self._seconds = 0.0
        self._looked = time.monotonic()

    def seconds(self) -> float:
        """What the time since the last look counts for."""
        now = time.monotonic()
        self._seconds = min(now - self._looked, MOST)
        self._looked = now
        return self._seconds

    def poll(self, moved: bool, phase: "tuple[int, bool] | None") -> None:
        """A look in which some page moved or none did; `phase` is that of the rank farthest behind."""
        self.quiet += self._seconds
        if phase is None:  # nobody lives who could move
            self.quiet = 0.0
        if phase != self._phase:
            self._phase, self.gap = phase, 0.0
        elif moved:
            self.gap = max(self.gap, self.quiet)
        if moved:
            self.quiet = 0.0

"""The training step of a rank, by its stack."""

from doctor.live.evidence import Look
from doctor.live.places import main_thread

FASTEST = 10_000
"""A counter that changes by at least this much between two looks does not count steps."""


def made_step(before: int | None, now: int | None) -> bool:
    """Whether a counter shows training steps. The counter of an endless loop rises too fast."""
    return before is not None and now is not None and 0 < abs(now - before) < FASTEST


def step_of(look: Look | None) -> int | None:
    thread = main_thread(look)
    return thread.step if thread else None

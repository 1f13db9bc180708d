"""How far a run is: what its parts say while they work, for whoever shows it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Stage:
    """Two that are equal mean that nothing has moved in between."""

    phase: str
    """In a word: "hosts", "network", "smoke"."""
    doing: str
    done: int = 0
    of: int = 0
    """0 where nothing is counted."""
    moves: int = 0
    """Grows with whatever moves, also where the words stay the same."""
    part: str = ""
    """Of the phase: with -v, a log has a line when one begins."""
    waiting: Collection[str] = field(default=(), compare=False)
    """The hosts that have not answered, or that the others wait for; it may change while it is shown."""
    ranks: Collection[int] = field(default=(), compare=False)
    """Their ranks, where only some of them are waited for."""
    limit: float | None = field(default=None, compare=False)
    """Seconds after which whatever does not move is given up."""


Tell = Callable[[Stage], object]

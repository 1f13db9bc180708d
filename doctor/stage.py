"""The progress of a run, as its parts report it to whatever displays it."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Stage:
    """One state of the progress; two equal ones mean that nothing moved in between."""

    phase: str
    """One word: "hosts", "network", "smoke"."""
    doing: str
    done: int = 0
    of: int = 0
    """0 if nothing is counted."""
    moves: int = 0
    """Grows whenever something moves, even if the words stay the same."""
    part: str = ""
    """A part of the phase: with -v, a log gets a line when a part begins."""
    waiting: Collection[str] = field(default=(), compare=False)
    """The hosts that have not answered, or that the others wait for; it may change while it is displayed."""
    ranks: Collection[int] = field(default=(), compare=False)
    """The ranks waited for, if they are only some of a host's ranks."""
    patient: bool = False
    """Whether nothing is wrong if nothing moves for a while."""
    limit: float | None = field(default=None, compare=False)
    """Seconds without progress after which the run gives up."""


Tell = Callable[[Stage], object]

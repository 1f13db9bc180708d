"""A job that runs, and the hosts that it has lost. Types only."""

from dataclasses import dataclass

from doctor.live.evidence import JobMember


@dataclass(frozen=True, slots=True)
class LostHost:
    """A host without the other ends of connections that ranks have to it."""

    host: str
    ranks: tuple[int, ...]
    """The missing ranks that were there; empty if unknown."""
    waiting: tuple[int, ...]
    """The ranks that have these connections."""
    address: str
    """The address to which they are."""
    unsure: str = ""
    """Why a rank may be there all the same; empty if none may."""
    happened: str = ""
    """What happened to it since the job was started, in words; empty if nothing shows it."""
    started: float | None = None
    """Seconds since it was started again; None if it was not."""


@dataclass(frozen=True, slots=True)
class RunningJob:
    """Processes that belong together."""

    name: str
    launcher: str
    world: int | None
    ranks: tuple[JobMember, ...]
    helpers: tuple[JobMember, ...]
    hosts: tuple[str, ...]
    missing: tuple[int, ...] = ()
    """Ranks that were not found."""
    gone: tuple[tuple[int, str], ...] = ()
    """The missing ranks whose host answered, with that host."""
    started: float | None = None
    """In seconds since 1970, by the clock of one of its hosts."""
    age: float = 0.0
    """The age of its youngest rank."""
    bound: frozenset[tuple[str, int]] = frozenset()
    """Host and PID of the ranks that a launcher started, or that are connected to other ranks of their owner.
    Another user's process cannot be one of them.
    """
    stray: bool = False
    """Other ranks hold the numbers that these processes claim."""
    lost: tuple[LostHost, ...] = ()
    starters: tuple[JobMember, ...] = ()
    """Its launchers, if it has no rank yet."""

    @property
    def first(self) -> JobMember | None:
        """Its first rank, or its first launcher."""
        return next(iter((*self.ranks, *self.starters)), None)

    @property
    def owner(self) -> str:
        return self.first.user if self.first else ""

    @property
    def expected(self) -> int:
        return max(self.world or 0, len(self.ranks))

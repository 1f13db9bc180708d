"""One reason why a job ended, and all parties that have it."""

from dataclasses import dataclass, field

from doctor.logs.judge.event import Event
from doctor.logs.judge.kinds import SuspectKind
from doctor.logs.judge.parties import Key, key
from doctor.logs.model import LogLine, Party

MOST = 200
"""The most deaths, or lines of one reason, that are compared with each other."""


@dataclass(slots=True)
class Suspect:
    """One reason, and all parties that have it."""

    who: dict[Party, None]
    events: list[Event]
    exceptions: list[LogLine] = field(default_factory=list)
    beside: tuple[Party, ...] = ()
    """Ranks in the same table of torchrun, whose logs do not say why they ended."""
    confirmed: bool = False
    """Whether the launcher and either the kernel or the scheduler report it."""

    @property
    def keys(self) -> frozenset[Key]:
        return frozenset(key(each) for each in self.who)

    @property
    def one(self) -> Party:
        return next(iter(self.who))

    @property
    def symptoms(self) -> list[Event]:
        """One event of each symptom."""
        return list({each.id: each for each in self.events}.values())

    @property
    def head(self) -> Event | None:
        return self.events[0] if self.events else None

    @property
    def hard(self) -> bool:
        return self.confirmed or any(each.kind is SuspectKind.DIED for each in self.events)

    @property
    def overcome(self) -> bool:
        return bool(self.events) and all(each.overcome for each in self.events)

"""The state of each rank and of each host's agent, from their messages."""

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeVar, cast

import msgspec

from doctor.agents.session import RemoteAgent
from doctor.model import UnreachedHost
from doctor.smoke import events
from doctor.smoke.messages import PageLine, sample
from doctor.smoke.onhost.page import PHASES
from doctor.smoke.result import Exit, HostOutcome, RankOutcome, Sample, SmokeSeat

E = TypeVar("E", bound=msgspec.Struct)
MOST_EVENT_BYTES = 16 * 2**20
"""The limit for one rank; events beyond it are ignored. A run of a thousand steps sends a tenth of it."""


@dataclass(slots=True)
class LiveRank:
    """One rank, from what its agent reports."""

    seat: SmokeSeat
    looks: list[tuple[float, Sample]] = field(default_factory=list)
    """The last two looks at its page, some time apart, with the times by the controller's clock."""
    state: str = ""
    cpu: list[float] = field(default_factory=list)
    pid: int | None = None
    exit: Exit | None = None
    stack: str = ""
    reports: dict[type, list[events.Event]] = field(default_factory=lambda: defaultdict(list))
    heard_bytes: int = 0
    entered: list[tuple[str, float]] = field(default_factory=list)
    disturbed_at: float | None = None
    done: bool = False

    @property
    def sample(self) -> Sample | None:
        return self.looks[-1][1] if self.looks else None

    @property
    def phase(self) -> str:
        told = self.entered[-1][0] if self.entered else "spawned"
        return max(told, self.sample.phase if self.sample else "spawned", key=PHASES.index)

    def take(self, event: events.Event, now: float, size: int = 0) -> None:
        self.heard_bytes += size
        if self.heard_bytes > MOST_EVENT_BYTES:
            return
        if isinstance(event, events.PhaseEvent):
            self.entered.append((event.phase, now))
        elif isinstance(event, events.RankEnd):
            self.done = True
            self.entered.append(("done", now))
        else:
            self.reports[type(event)].append(event)

    def look(self, line: PageLine, now: float, apart: float) -> None:
        """Keep a new look at its page; the two that are kept are at least `apart` seconds apart."""
        seen = sample(line)
        self.state = line.state or self.state
        if seen is None:
            return
        if line.disturbed is not None and self.disturbed_at is None:
            self.disturbed_at = now - line.disturbed
        if len(self.looks) > 1 and now - self.looks[0][0] < apart:
            self.looks[-1] = (now, seen)
            self.cpu[-1] = line.cpu
        else:
            self.looks = [*self.looks[-1:], (now, seen)]
            self.cpu = [*self.cpu[-1:], line.cpu]

    def seen(self, ended: float) -> RankOutcome:
        first = self._first
        backend = first(events.BackendEvidence)
        seconds = {
            phase: round(max(0.0, after - at), 4)
            for (phase, at), (_, after) in pairwise([*self.entered, ("", ended)])
            if phase != "done"
        }
        return RankOutcome(
            rank=self.seat.rank,
            phase=self.phase,  # type: ignore[arg-type]  # one of PHASES
            samples=tuple(each for _, each in self.looks),
            state=self.state,
            cpu=round(max(0.0, self.cpu[-1] - self.cpu[0]), 3) if len(self.cpu) > 1 else None,
            pid=self.pid,
            exit=self.exit,
            error=first(events.Error),
            stack=self.stack,
            backend=backend.text if backend else "",
            started=first(events.RankStart),
            collectives=first(events.Collectives),
            bits=first(events.GradientBits),
            init=first(events.InitialParameters),
            batches=self._all(events.BatchHashes),
            steps=self._all(events.TrainStep),
            audits=self._all(events.Audit),
            solo=first(events.Solo),
            pairs=self._all(events.Transfer),
            segments=first(events.Segments),
            sweep=self._all(events.CollectiveTimes),
            alone=self._all(events.Alone),
            seconds=seconds,
            done=self.done,
            disturbed=None if self.disturbed_at is None else round(max(0.0, ended - self.disturbed_at), 3),
        )

    def _all(self, kind: type[E]) -> tuple[E, ...]:
        return cast("tuple[E, ...]", tuple(self.reports[kind]))

    def _first(self, kind: type[E]) -> E | None:
        return next(iter(self._all(kind)), None)


@dataclass(slots=True)
class LiveHost(RemoteAgent):
    """One host, seen through its agent."""

    ready_at: float = 0.0
    """When it was ready, or when the run began if it is not ready yet: not all hosts are reached at once."""
    silence: float = 0.0
    """Seconds without a message while the controller listened. It ends when the agent `spoke`."""
    said: int = 0
    """The number of messages that it sent; a long one counts several times."""
    unanswered: int = 0
    """How many looks in a row it has left unanswered."""
    imported_at: float | None = None
    told: bool = False
    """Whether its ranks were asked to join."""
    quiet: float = 0.0
    gap: float = 0.0
    looked: int = 0
    """The number of the last look that it answered."""
    trouble: str = ""
    lost: UnreachedHost | None = None
    heard: dict[str, Any] = field(default_factory=dict)
    """What it said that the outcome has under the same names."""

    def seen(self, began: float) -> HostOutcome:
        return HostOutcome(
            host=self.host,
            login=round(self.ready_at - began, 3) if self.ready else None,
            imported=None if self.imported_at is None else round(self.imported_at - began, 3),
            trouble=self.trouble,
            lost=self.lost,
            **self.heard,
        )

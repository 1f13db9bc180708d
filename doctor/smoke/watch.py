"""What is known of a running smoke run, and when it must be ended. It decides that something is wrong; who is
guilty is for `judge` to say.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeVar, cast

import msgspec

from doctor.model import Unreached
from doctor.smoke.judge.mismatch import off_schedule
from doctor.smoke.limits import Patience, stall_limit
from doctor.smoke.onhost.page import PHASES
from doctor.smoke.onhost.schedule import schedule
from doctor.smoke.onhost.shape import Entry
from doctor.smoke.result import (
    Audit,
    Backend,
    Batch,
    Collectives,
    Done,
    EndKind,
    Entered,
    Error,
    Event,
    Exit,
    Hiccup,
    HostSeen,
    Init,
    Pair,
    RankSeen,
    Sample,
    Seat,
    SmokePlan,
    Solo,
    Started,
    Step,
)
from doctor.smoke.words import PageLine, Pages, sample

E = TypeVar("E", bound=msgspec.Struct)
MOST_EVENTS = 20_000
"""Of one rank; more are no longer believed."""


@dataclass(slots=True)
class RankWatch:
    """One rank, as far as it was heard of."""

    seat: Seat
    looks: list[tuple[float, Sample]] = field(default_factory=list)
    """The last two looks at its page that were taken apart, with the controller's time."""
    state: str = ""
    cpu: list[float] = field(default_factory=list)
    pid: int | None = None
    exit: Exit | None = None
    stack: str = ""
    events: dict[type, list[Event]] = field(default_factory=lambda: defaultdict(list))
    heard: int = 0
    entered: list[tuple[str, float]] = field(default_factory=list)
    disturbed_at: float | None = None
    done: bool = False

    @property
    def sample(self) -> Sample | None:
        return self.looks[-1][1] if self.looks else None

    @property
    def phase(self) -> str:
        told = self.entered[-1][0] if self.entered else "spawned"
        seen = self.sample.phase if self.sample else "spawned"
        return max(told, seen, key=PHASES.index)

    @property
    def ended_badly(self) -> bool:
        return self.exit is not None and not (self.done and self.exit.code == 0)

    def take(self, event: Event, now: float) -> None:
        self.heard += 1
        if self.heard > MOST_EVENTS:
            return
        if isinstance(event, Entered):
            self.entered.append((event.phase, now))
        elif isinstance(event, Done):
            self.done = True
            self.entered.append(("done", now))
        else:
            self.events[type(event)].append(event)

    def look(self, line: PageLine, now: float, apart: float) -> None:
        """A new look at its page; two that are kept are `apart` seconds from each other, or differ."""
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

    def seen(self, ended: float) -> RankSeen:
        first = self._first
        backend = first(Backend)
        spans = [*self.entered, ("", ended)]
        seconds = {
            phase: round(after - at, 4) for (phase, at), (_, after) in pairwise(spans) if phase != "done"
        }
        return RankSeen(
            rank=self.seat.rank,
            phase=self.phase,  # type: ignore[arg-type]  # one of PHASES
            samples=tuple(each for _, each in self.looks),
            state=self.state,
            cpu=round(self.cpu[-1] - self.cpu[0], 3) if len(self.cpu) > 1 else None,
            pid=self.pid,
            exit=self.exit,
            error=first(Error),
            stack=self.stack,
            backend=backend.text if backend else "",
            started=first(Started),
            collectives=first(Collectives),
            init=first(Init),
            batches=self._all(Batch),
            steps=self._all(Step),
            audits=self._all(Audit),
            solo=first(Solo),
            pairs=self._all(Pair),
            seconds=seconds,
            done=self.done,
            disturbed=None if self.disturbed_at is None else round(ended - self.disturbed_at, 3),
        )

    def _all(self, kind: type[E]) -> tuple[E, ...]:
        return cast("tuple[E, ...]", tuple(self.events[kind]))

    def _first(self, kind: type[E]) -> E | None:
        return next(iter(self._all(kind)), None)


@dataclass(slots=True)
class HostWatch:
    """One host's agent."""

    host: str
    ready: bool = False
    gone: bool = False
    heard_at: float = 0.0
    imported_at: float | None = None
    told: bool = False
    """Its ranks were told to join."""
    quiet: float = 0.0
    gap: float = 0.0
    looked: int = 0
    """The last look that it answered."""
    python: str = ""
    torch: str = ""
    cores: int = 0
    load: float = 0.0
    reverse_dns: float | None = None
    peak_memory: int = 0
    trouble: str = ""
    lost: Unreached | None = None
    noise: list[str] = field(default_factory=list)

    def seen(self, began: float) -> HostSeen:
        return HostSeen(
            host=self.host,
            python=self.python,
            imported=None if self.imported_at is None else round(self.imported_at - began, 3),
            cores=self.cores,
            load=self.load,
            reverse_dns=self.reverse_dns,
            peak_memory=self.peak_memory,
            trouble=self.trouble,
            lost=self.lost,
        )


@dataclass(frozen=True, slots=True)
class Alarm:
    """Something is wrong. `sure`: no second look is needed."""

    kind: EndKind
    cell: int | None = None
    limit: float | None = None
    sure: bool = True


class Watch:
    """The state of one run. `now` is the controller's monotonic clock everywhere."""

    def __init__(self, plan: SmokePlan, patience: Patience, began: float) -> None:
        self.plan = plan
        self.patience = patience
        self.began = began
        self.hosts = {host: HostWatch(host, heard_at=began) for host in plan.hosts}
        self.ranks = [RankWatch(seat) for seat in plan.seats]
        self.shapes = [plan.shape(cell) for cell in range(len(plan.cells))]
        self.schedules: dict[int, list[Entry]] = {
            seat.rank: schedule(self.shapes[seat.cell], seat.place) for seat in plan.seats
        }
        self.hiccups: list[Hiccup] = []
        self.stopped_since: dict[int, float] = {}
        self.off_since: dict[int, int] = {}
        """Rank -> the version of the page that was first seen off its schedule."""
        self.exit_at: float | None = None

    @property
    def finished(self) -> bool:
        return all(rank.done for rank in self.ranks)

    @property
    def all_ready(self) -> bool:
        return all(PHASES.index(rank.phase) >= PHASES.index("ready") for rank in self.ranks)

    def pages(self, host: HostWatch, pages: Pages, now: float) -> None:
        host.quiet, host.gap = pages.quiet, pages.gap
        if pages.id is not None:
            host.looked = max(host.looked, pages.id)
        for line in pages.ranks:
            if line.rank >= len(self.ranks) or self.ranks[line.rank].seat.host != host.host:
                continue
            rank = self.ranks[line.rank]
            rank.look(line, now, self.patience.again)
            if rank.state in ("T", "t"):
                self.stopped_since.setdefault(line.rank, now)
            else:
                self.stopped_since.pop(line.rank, None)

    def alarm(self, now: float) -> Alarm | None:
        """The first thing that is wrong, the surest first."""
        for host in self.hosts.values():
            if host.trouble or host.lost:
                return Alarm("lost" if host.lost else "trouble")
        if any(rank.ended_badly for rank in self.ranks):
            self.exit_at = self.exit_at or now
            if now - self.exit_at >= self.patience.grace or all(r.exit or r.done for r in self.ranks):
                return Alarm("exit", self._cell(lambda rank: rank.ended_badly))
            return None
        if any(now - since >= self.patience.stopped for since in self.stopped_since.values()):
            return Alarm("stopped", self._cell(lambda rank: rank.seat.rank in self.stopped_since))
        return next(iter([*self._off(), *self._silent(now), *self._late_imports(now), *self._still()]), None)

    def _cell(self, guilty: Callable[[RankWatch], bool]) -> int | None:
        return next((rank.seat.cell for rank in self.ranks if guilty(rank)), None)

    def _off(self) -> Iterator[Alarm]:
        """A rank whose page is off its schedule, at two looks."""
        for number, rank in enumerate(self.ranks):
            looks = [each for _, each in rank.looks]
            shape, place = self.shapes[rank.seat.cell], rank.seat.place
            if looks and all(off_schedule(each, shape, place) for each in looks):
                first = self.off_since.setdefault(number, len(looks))
                if len(looks) > 1 or first != len(looks):
                    yield Alarm("mismatch", rank.seat.cell)
            else:
                self.off_since.pop(number, None)

    def _silent(self, now: float) -> Iterator[Alarm]:
        for host in self.hosts.values():
            waited = now - host.heard_at
            if host.ready and not host.gone and waited >= self.patience.silent:
                host.trouble = f"its agent fell silent for {waited:.0f} s"
                yield Alarm("trouble")

    def _late_imports(self, now: float) -> Iterator[Alarm]:
        """torch may lie on a slow network disk; but not for a minute, nor far behind the others."""
        done = sorted(h.imported_at - self.began for h in self.hosts.values() if h.imported_at is not None)
        limit = self.patience.imports
        if 2 * len(done) > len(self.hosts):
            limit = min(limit, 3 * done[len(done) // 2] + 10)
        if now - self.began >= limit:
            for host in self.hosts.values():
                if host.imported_at is None:
                    host.trouble = f"torch was not imported within {limit:.0f} s"
                    yield Alarm("trouble")

    def _still(self) -> Iterator[Alarm]:
        """A cell in which no rank moved for as long as the limit; it takes a second look to be sure."""
        for cell, ranks in enumerate(self.plan.cells):
            members = [self.ranks[rank] for rank in ranks]
            hosts = [self.hosts[host] for host in dict.fromkeys(rank.seat.host for rank in members)]
            if any(host.imported_at is None for host in hosts) or all(rank.done for rank in members):
                continue
            quiet = min(host.quiet for host in hosts)
            if quiet < self.patience.floor:
                continue
            limit = self.limit(cell)
            if quiet >= limit:
                yield Alarm("still", cell, limit, sure=False)

    def limit(self, cell: int) -> float:
        members = [self.ranks[rank] for rank in self.plan.cells[cell]]
        gap = max(self.hosts[host].gap for host in {rank.seat.host for rank in members})
        seen = [
            (rank.sample, self.schedules[rank.seat.rank]) for rank in members if rank.sample and not rank.done
        ]
        if len(seen) < sum(not rank.done for rank in members):
            return self.patience.first
        return stall_limit(self.patience, gap, seen)

    def moved(self, cell: int, before: dict[int, int]) -> bool:
        """Whether some rank of the cell has gone on since its page had these versions."""
        return any(
            rank.sample is not None and rank.sample.version != before.get(rank.seat.rank)
            for rank in (self.ranks[number] for number in self.plan.cells[cell])
        )

    def versions(self) -> dict[int, int]:
        return {rank.seat.rank: rank.sample.version for rank in self.ranks if rank.sample}

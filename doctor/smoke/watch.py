"""When a smoke run must be ended. It decides that something is wrong; `judge` finds out who is at fault."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from doctor.job.framework import FRAMEWORKS
from doctor.smoke.judge.deviation import entries_of, off_schedule
from doctor.smoke.judge.exits import ended_badly
from doctor.smoke.limits import SmokePatience, stall_limit
from doctor.smoke.live import LiveHost, LiveRank
from doctor.smoke.messages import Pages
from doctor.smoke.onhost.page import PHASES
from doctor.smoke.onhost.shape import ScheduledCall
from doctor.smoke.result import EndKind, Hiccup, SmokePlan

READY = PHASES.index("ready")
EACH = 0.1
"""Additional seconds for each host: in a large cluster the last host is reached late."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """Something is wrong. `sure`: no second look is needed."""

    kind: EndKind
    cell: int | None = None
    limit: float | None = None
    sure: bool = True


class Watch:
    """The state of one run. `now` is the controller's monotonic clock everywhere."""

    def __init__(self, plan: SmokePlan, patience: SmokePatience, began: float) -> None:
        self.plan = plan
        self.patience = patience
        self.began = began
        self.hosts = {host: LiveHost(host, ready_at=began) for host in plan.hosts}
        self.ranks = [LiveRank(seat) for seat in plan.seats]
        self.shapes = [plan.shape(cell) for cell in range(len(plan.cells))]
        self.schedules: dict[int, Sequence[ScheduledCall]] = {
            seat.rank: entries_of(self.shapes[seat.cell], seat.place) for seat in plan.seats
        }
        self.hiccups: list[Hiccup] = []
        self.stopped_since: dict[int, float] = {}
        self.exit_at: float | None = None
        self.frozen = False
        """Whether pages no longer count, because evidence is being collected and that may move ranks."""
        self.abandoned = False
        """Whether agents ended because the controller left them alone for too long."""

    @property
    def finished(self) -> bool:
        return all(rank.done for rank in self.ranks)

    @property
    def all_ready(self) -> bool:
        return all(PHASES.index(rank.phase) >= READY for rank in self.ranks)

    @property
    def any_joined(self) -> bool:
        return any(PHASES.index(rank.phase) > READY for rank in self.ranks)

    def pages(self, host: LiveHost, pages: Pages, now: float) -> None:
        host.quiet, host.gap = pages.quiet, pages.gap
        if pages.id is not None:
            host.looked = max(host.looked, pages.id)
        for line in () if self.frozen else pages.ranks:
            rank = self.rank_on(host, line.rank)
            if rank is None:
                continue
            rank.look(line, now, self.patience.again)
            if rank.state in ("T", "t") and not rank.done:
                self.stopped_since.setdefault(line.rank, now)
            else:
                self.stopped_since.pop(line.rank, None)

    def rank_on(self, host: LiveHost, number: int) -> LiveRank | None:
        """The rank with that number, if it is on this host: a host may report only on its own ranks."""
        rank = self.ranks[number] if number < len(self.ranks) else None
        return rank if rank and rank.seat.host == host.host else None

    def ended(self, rank: LiveRank) -> None:
        """Forget that the rank was stopped: a process that is gone is not."""
        self.stopped_since.pop(rank.seat.rank, None)

    def alarm(self, now: float) -> Alarm | None:
        """The first thing that is wrong, the surest first."""
        if self.abandoned:
            return Alarm("interrupted")
        for host in self.hosts.values():
            if host.trouble or host.lost:
                return Alarm("lost" if host.lost else "trouble")
        if ended := [rank for rank in self.ranks if ended_badly(rank.exit, rank.done)]:
            self.exit_at = self.exit_at or now
            if now - self.exit_at >= self.patience.grace or all(r.exit or r.done for r in self.ranks):
                return Alarm("exit", ended[0].seat.cell)
            return None
        if any(now - since >= self.patience.stopped for since in self.stopped_since.values()):
            return Alarm("stopped", self.ranks[min(self.stopped_since)].seat.cell)
        return next(iter([*self._off_schedule(), *self._silent(), *self._late(now), *self._still()]), None)

    def _off_schedule(self) -> Iterator[Alarm]:
        """Ranks whose pages were off their schedules at two looks."""
        for rank in self.ranks:
            shape, place = self.shapes[rank.seat.cell], rank.seat.place
            if len(rank.looks) > 1 and all(off_schedule(each, shape, place) for _, each in rank.looks):
                yield Alarm("mismatch", rank.seat.cell)

    def _silent(self) -> Iterator[Alarm]:
        """Hosts whose agents are silent. If all of several agents are, the controller itself is cut off."""
        silent = [h for h in self.hosts.values() if h.ready and h.silence >= self.patience.silent]
        if len(silent) > 1 and len(silent) == len(self.hosts):
            yield Alarm("interrupted")
            return
        for host in silent:
            host.trouble, host.mute = f"its agent fell silent for {host.silence:.0f} s", True
            yield Alarm("trouble")

    def _late(self, now: float) -> Iterator[Alarm]:
        """Hosts that have not yet started their ranks, and should have."""
        answer, imports = self.patience.start + EACH * len(self.hosts), self._import_limit()
        for host in self.hosts.values():
            if not host.ready and now - self.began >= answer:
                host.trouble = f"its agent did not answer within {answer:.0f} s"
            elif host.ready and host.imported_at is None and now - host.ready_at >= imports:
                host.trouble = f"{FRAMEWORKS[self.plan.framework]} was not imported within {imports:.0f} s"
            elif self._ranks_missing(host, now):
                first, name = self.patience.first, FRAMEWORKS[self.plan.framework]
                host.trouble = f"{first:.0f} s after {name} was imported its ranks were not started"
            if host.trouble:
                yield Alarm("trouble")

    def _ranks_missing(self, host: LiveHost, now: float) -> bool:
        if host.imported_at is None or now - host.imported_at < self.patience.first:
            return False
        return any(self.ranks[seat.rank].pid is None for seat in self.plan.on(host.host))

    def _import_limit(self) -> float:
        """Seconds for the import, perhaps from a slow disk: no host may be far behind the others."""
        done = sorted(h.imported_at - h.ready_at for h in self.hosts.values() if h.imported_at is not None)
        if 2 * len(done) > len(self.hosts):
            return min(self.patience.imports, 3 * done[len(done) // 2] + 10)
        return self.patience.imports

    def _still(self) -> Iterator[Alarm]:
        """Cells in which no rank moved for as long as the limit; a second look must confirm that."""
        cells: Sequence[int] = range(len(self.plan.cells))
        if not self.all_ready:  # all ranks of all cells wait for one: none may join before
            cells = [next(rank.seat.cell for rank in self.ranks if PHASES.index(rank.phase) < READY)]
        for cell in cells:
            quiet = self.quiet(cell)
            if quiet < self.patience.floor:
                continue
            limit, mute = self.limit(cell), self.patience.mute
            silent = self.all_ready and any(host.silence >= mute for host in self.waiting(cell))
            # If a host is silent while the others stand still, a look is due before the limit.
            if quiet >= limit or (silent and quiet >= mute):
                yield Alarm("still", cell, limit, sure=False)

    def together(self, cell: int) -> Sequence[int]:
        """The ranks that wait for each other."""
        return self.plan.cells[cell] if self.all_ready else range(len(self.ranks))

    def waiting(self, cell: int) -> Sequence[LiveHost]:
        """The hosts of the ranks that have something to do or to wait for."""
        members = [self.ranks[rank] for rank in self.together(cell)]
        names = dict.fromkeys(rank.seat.host for rank in members if not rank.done and rank.exit is None)
        return [self.hosts[name] for name in names]

    def quiet(self, cell: int) -> float:
        """For how long no rank of the cell has moved, by the reports of at least half of the hosts."""
        hosts = self.waiting(cell)
        if any(host.imported_at is None for host in hosts):
            return 0.0
        speaking = [host for host in hosts if host.silence < self.patience.mute]
        if 2 * len(speaking) < len(hosts):
            return 0.0
        return min((host.quiet for host in speaking), default=0.0)

    def limit(self, cell: int) -> float:
        members = [self.ranks[rank] for rank in self.plan.cells[cell]]
        gap = max(self.hosts[host].gap for host in {rank.seat.host for rank in members})
        awaited = [rank for rank in members if not rank.done]
        seen = [(rank.sample, self.schedules[rank.seat.rank]) for rank in awaited if rank.sample]
        if any(page.version == 0 for page, _ in seen):
            return self._own_interpreter(cell)
        if len(seen) < len(awaited):
            return self.patience.first
        return stall_limit(self.patience, gap, seen)

    def _own_interpreter(self, cell: int) -> float:
        """The limit if ranks cannot be forked: then each imports torch itself, all of them at once."""
        imported = [h.imported_at - h.ready_at for h in self.waiting(cell) if h.imported_at is not None]
        again = self.patience.first + 4 * max(imported, default=0.0)
        return min(again, max(self.patience.first, self.patience.imports))

    def versions(self, ranks: Sequence[int]) -> dict[int, int]:
        seen = {rank: self.ranks[rank].sample for rank in ranks}
        return {rank: sample.version for rank, sample in seen.items() if sample}

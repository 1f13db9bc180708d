"""One cell of a run that ended early: which ranks wait for which, and which judge is responsible.

Rules are tried in the order of their certainty. The first that applies decides; what later ones would find is
a consequence.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Literal

from doctor.smoke.judge.deviation import PageDeviation, entries_of, off_schedule
from doctor.smoke.judge.exits import ended_badly, way_of
from doctor.smoke.onhost.page import PHASES
from doctor.smoke.onhost.shape import CellShape, ScheduledCall
from doctor.smoke.onhost.trainplan import ACROSS
from doctor.smoke.result import RankOutcome, Sample, SmokePlan, SmokeResult
from doctor.text.grouped import grouped
from doctor.waits import roots

Waits = Mapping[int, tuple[int, ...]]
JOIN = PHASES.index("join")


@dataclass(frozen=True, slots=True)
class Stall:
    """Why no rank goes on.

    `behind`: `places` never got as far as the first collective, and others wait there. `together`: no rank
    got there. `outside`: `places` never entered what others wait in. `inside`: `places` have all entered the
    same collective, and it does not end. `alone`: no rank waits for another, all are outside.
    """

    kind: Literal["behind", "together", "outside", "inside", "alone"]
    places: tuple[int, ...]
    waits: Waits


def stall_of(shape: CellShape, pages: Mapping[int, Sample | None], phases: Mapping[int, str]) -> Stall:
    """The stall of the ranks that have not ended; `pages` has None if a page was never seen."""
    early = {
        place: (PHASES.index(phases[place]), page.step if page else 0)
        for place, page in pages.items()
        if (page is None or page.position == 0) and PHASES.index(phases[place]) <= JOIN
    }
    if early:
        lowest = min(early.values())
        last = tuple(place for place, moment in early.items() if moment == lowest)
        return Stall("behind" if len(last) < shape.world else "together", last, {})
    waits = waits_for(shape, {place: page for place, page in pages.items() if page is not None})
    outside = {place for place, page in pages.items() if page is None or not page.inside}
    awaited = roots(waits)
    if guilty := tuple(sorted(outside.intersection(awaited))):
        return Stall("outside", guilty, waits)
    sinks = tuple(place for place in waits if not waits[place])
    return Stall("inside", sinks, waits) if waits else Stall("alone", tuple(pages), waits)


def waits_for(shape: CellShape, pages: Mapping[int, Sample]) -> dict[int, tuple[int, ...]]:
    """Each rank inside a collective -> its members that have not entered it. Ended ranks have entered all."""
    waits: dict[int, tuple[int, ...]] = {}
    for place, page in pages.items():
        entries = entries_of(shape, place)
        if page.inside and 0 < page.position <= len(entries):
            entry = entries[page.position - 1]
            waits[place] = tuple(
                other
                for other in entry.call.members or shape.members(entry.call.group, place)
                if other != place
                and other in pages
                and pages[other].position < position_of(shape, place, entry, other)
            )
    return waits


def position_of(shape: CellShape, place: int, entry: ScheduledCall, other: int) -> int:
    """The position of the same collective in another member's schedule."""
    members = entry.call.members
    if members:
        # A pair has no numbering of its own: what counts is how often these two have met in this way.
        own, theirs = (members, entry.call.op), (members, ACROSS.get(entry.call.op, entry.call.op))
        made = entries_of(shape, place)[: entry.position]
        before = sum((each.call.members, each.call.op) == own for each in made)
        same = (e.position for e in entries_of(shape, other) if (e.call.members, e.call.op) == theirs)
        return next(islice(same, before - 1, None))
    name = (entry.call.group, entry.seq)
    same = (each.position for each in entries_of(shape, other) if (each.call.group, each.seq) == name)
    return next(same)


Cause = Literal["mismatch", "crash", "stopped", "stall", "connection", "slow"]
STANDS = 1.0
"""Seconds without a move that count as standing still in a cell that was not the one watched."""
READY = PHASES.index("ready")


@dataclass(frozen=True)
class EndedCell:
    """Cell `number` of a run that ended early."""

    result: SmokeResult
    number: int

    @cached_property
    def plan(self) -> SmokePlan:
        return self.result.plan

    @cached_property
    def shape(self) -> CellShape:
        return self.plan.shape(self.number)

    @cached_property
    def ranks(self) -> tuple[RankOutcome, ...]:
        return self.result.cell_ranks(self.number)

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.plan.seat(seen.rank).host for seen in self.ranks))

    @cached_property
    def living(self) -> tuple[RankOutcome, ...]:
        return tuple(seen for seen in self.ranks if not seen.done and seen.exit is None)

    @cached_property
    def fallen(self) -> tuple[RankOutcome, ...]:
        """The ranks that ended badly."""
        return tuple(seen for seen in self.ranks if ended_badly(seen.exit, seen.done))

    @cached_property
    def stopped(self) -> tuple[RankOutcome, ...]:
        return tuple(seen for seen in self.living if seen.state in ("T", "t"))

    @cached_property
    def off(self) -> dict[int, PageDeviation]:
        """Ranks whose page is off their schedule: at two looks, or at the last one if they are dead."""
        found: dict[int, PageDeviation] = {}
        for place, seen in enumerate(self.ranks):
            known = [off_schedule(page, self.shape, place) for page in looks(seen)[-2:]]
            sure = seen.exit is not None or (len(known) == 2 and known[0])
            if sure and known and known[-1]:
                found[seen.rank] = known[0] or known[-1]
        return found

    @cached_property
    def frozen(self) -> bool:
        """Whether no living rank moved between two looks; in a cell that was not watched, for the limit."""
        moved = any(len({page.version for page in looks(seen)[-2:]}) > 1 for seen in self.living)
        if moved or not self.living:
            return False
        end = self.result.end
        if end.kind == "still" and end.cell in (None, self.number):
            return True
        limit = end.limit or STANDS
        return all(len(looks(seen)) > 1 and looks(seen)[-1].still >= limit for seen in self.living)

    @cached_property
    def stall(self) -> Stall:
        places = {self.plan.seat(seen.rank).place: seen for seen in self.living}
        pages = {place: last_look(seen) for place, seen in places.items()}
        return stall_of(self.shape, pages, {place: phase_of(seen) for place, seen in places.items()})

    @cached_property
    def cause(self) -> Cause | None:
        if self.fallen and self.off:
            return "mismatch"
        if any(way_of(seen) != "connection" for seen in self.fallen):
            return "crash"
        if self.stopped:
            return "stopped"
        if self.off:
            return "mismatch"
        hung = self.result.end.kind in ("still", "deadline")
        if hung and self.frozen:
            return "stall"
        if self.fallen:
            return "connection"
        return "slow" if hung and self.result.end.cell in (None, self.number) and self.living else None

    def entries(self, rank: int) -> tuple[ScheduledCall, ...]:
        return entries_of(self.shape, self.plan.seat(rank).place)

    def others(self, ranks: Iterable[int]) -> tuple[int, ...]:
        """The rest of the cell: the victims of these ranks."""
        guilty = set(ranks)
        return tuple(seen.rank for seen in self.ranks if seen.rank not in guilty)

    def beside(self, hosts: Collection[str]) -> tuple[int, ...]:
        """The ranks on other hosts than these."""
        return tuple(seen.rank for seen in self.ranks if self.plan.seat(seen.rank).host not in hosts)


def cells_with(result: SmokeResult, *causes: Cause) -> Iterator[EndedCell]:
    """The cells that one of these causes explains."""
    if result.end.kind in ("done", "interrupted"):
        return
    for number in range(len(result.plan.cells)):
        cell = EndedCell(result, number)
        if not _explained(cell) and cell.cause in causes:
            yield cell


def _explained(cell: EndedCell) -> bool:
    """Whether the cell lost a host: what its ranks did then proves nothing against any of them."""
    end = cell.result.end
    if end.kind in ("exit", "stopped", "mismatch") and end.cell == cell.number:
        return False
    hosts = [seen for seen in cell.result.hosts if seen.host in cell.hosts]
    return any(seen.lost or (seen.trouble and end.kind in ("lost", "trouble")) for seen in hosts)


def looks(seen: RankOutcome) -> list[Sample]:
    """The looks at its page that were not taken while it was being written."""
    return [page for page in seen.samples if not page.version % 2]


def last_look(seen: RankOutcome) -> Sample | None:
    pages = looks(seen)
    return pages[-1] if pages else None


def phase_of(seen: RankOutcome) -> str:
    return place_of(seen)[0]


def place_of(seen: RankOutcome) -> tuple[str, int]:
    """The phase and step of the last look."""
    page = last_look(seen)
    return (page.phase, page.step) if page else (seen.phase, 0)


def where(seen: RankOutcome) -> tuple[str, int | None]:
    """The phase of the last look, and its step if that is a training step."""
    phase, step = place_of(seen)
    return phase, step if phase == "train" else None


def by_host(
    plan: SmokePlan, ranks: Iterable[RankOutcome]
) -> Iterator[tuple[tuple[str, ...], list[RankOutcome]]]:
    """Culprits by host; the host itself is named if it has several ranks and all of them are culprits."""
    ordered = sorted(ranks, key=lambda seen: seen.rank)
    for host, here in grouped((plan.seat(seen.rank).host, seen) for seen in ordered).items():
        yield (host,) if len(here) > 1 and len(here) == len(plan.on(host)) else (), here


def only_host(cell: EndedCell) -> tuple[str, ...]:
    """Who is at fault if all ranks are: their host if there is only one, else nobody."""
    return cell.hosts if len(cell.hosts) == 1 else ()

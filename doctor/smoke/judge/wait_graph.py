"""Which ranks wait for which, in a cell that stands still. Ranks are named by their places in the cell."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from doctor.smoke.judge.deviation import entries_of
from doctor.smoke.onhost.page import PHASES
from doctor.smoke.onhost.shape import CellShape, ScheduledCall
from doctor.smoke.result import Sample
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
        # A pair has no numbering of its own: what counts is how often these two have met.
        before = [each for each in entries_of(shape, place)[: entry.position] if each.call.members == members]
        meetings = [each.position for each in entries_of(shape, other) if each.call.members == members]
        return meetings[len(before) - 1]
    name = (entry.call.group, entry.seq)
    same = (each.position for each in entries_of(shape, other) if (each.call.group, each.seq) == name)
    return next(same)

"""The time line of all ranks: equal events of several ranks are one line."""

from collections.abc import Iterator
from dataclasses import dataclass

from doctor.logs.judge.case import LogCase
from doctor.logs.judge.clocks import TOGETHER
from doctor.logs.judge.event import Event
from doctor.logs.judge.kinds import SuspectKind
from doctor.logs.judge.words import ENDS, told, who
from doctor.logs.model import Party
from doctor.text.grouped import grouped

MOST = 20


@dataclass(slots=True)
class _StoryEntry:
    at: float | None
    head: Event
    who: dict[Party, None]
    number: int


def story_of(case: LogCase) -> tuple[tuple[float | None, str], ...]:
    """The time line; if it is too long, the first and the last entries are kept."""
    entries: list[_StoryEntry] = []
    open_ones: dict[tuple[str, SuspectKind], _StoryEntry] = {}
    for event in case.events:
        if event.kind is SuspectKind.CONFIRMS:
            continue
        at = case.clocks.at(event.line)
        same = open_ones.get((event.id, event.kind))
        if same is None or not _near(same.at, at):
            same = open_ones[event.id, event.kind] = _StoryEntry(at, event, {}, 0)
            entries.append(same)
        same.who.update(dict.fromkeys(event.who))
        same.number += event.sighting.count
    lines = [(each.at, _sentence(each)) for each in entries]
    lines += list(_steps(case))
    lines.sort(key=lambda each: (each[0] is None, each[0] or 0.0))
    if len(lines) > MOST:
        left = len(lines) - MOST + 1
        lines = [*lines[: MOST // 2], (None, f"{left} more events"), *lines[left + MOST // 2 :]]
    return tuple(lines)


def _near(one: float | None, other: float | None) -> bool:
    return one == other if one is None or other is None else abs(one - other) <= TOGETHER


def _sentence(entry: _StoryEntry) -> str:
    """The sentence of an entry. Lines about the end of a rank are not counted: they all mean the same end."""
    again = entry.head.kind not in ENDS and entry.number > max(1, len(entry.who))
    return told(tuple(entry.who), entry.head) + (f" ({entry.number} lines)" if again else "")


def _steps(case: LogCase) -> Iterator[tuple[float | None, str]]:
    """The last step of each rank; ranks with the same last step share an entry."""
    by_step = grouped((step, rank) for rank, (step, _) in case.last_steps.items())
    for step, ranks in sorted(by_step.items())[:4]:
        times = [at for rank in ranks if (at := case.clocks.at(case.last_steps[rank][1])) is not None]
        parties = [case.places.settled(Party(rank=rank), None) for rank in ranks]
        yield max(times, default=None), f"{who(parties)} logged step {step}, and none after it"

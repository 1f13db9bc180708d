"""PyTorch's flight recorder: the last collective that each rank has enqueued and completed in each group.

A dump is a pickle or JSON. The host reduces it to a few numbers, as JSON (see `agents/onhost/recorder.py`):

    {"pg_status": {"0": {"last_enqueued_collective": 4, "last_completed_collective": 3}}, "pg_config": {},
     "entries": [{"pg_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": 4, "is_p2p": false,
       "profiling_name": "gloo:all_reduce", "retired": false, "time_created_ns": 1795284713637598022}]}

A rank is behind if the others have completed every collective that it has enqueued, and are in the next one.
A rank that has only enqueued fewer is not behind: hosts run ahead of their devices by different amounts.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec

from doctor.live.evidence import Word
from doctor.live.libraries.groups import GroupStanding, opinion_of, standing
from doctor.live.libraries.opinions import Opinion, Source, Subject, decoded, silent
from doctor.live.libraries.rank_finder import HostText, RankFinder
from doctor.text.grouped import grouped

WAITED = 5.0
"""Seconds after which an unfinished collective counts: a younger one may be about to end."""
FRESH = 60.0
"""The age in seconds up to which a dump is trusted: an older one may show an earlier stall."""
DEFAULT = "0"
"""The group of all ranks."""

_Number = Annotated[int, msgspec.Meta(ge=-1, le=2**62)]


class _GroupStatus(msgspec.Struct, frozen=True):
    last_enqueued_collective: _Number = -1
    last_completed_collective: _Number = -1


class _Group(msgspec.Struct, frozen=True):
    ranks: Any = None


class _DumpEntry(msgspec.Struct, frozen=True):
    process_group: tuple[Word, ...] = ()
    pg_id: _Number = -1
    collective_seq_id: _Number = -1
    is_p2p: bool = False
    profiling_name: Word = ""
    retired: bool = False
    state: Word = ""
    time_created_ns: _Number = -1

    @property
    def over(self) -> bool:
        return self.retired or self.state == "completed"


class Dump(msgspec.Struct, frozen=True):
    pg_status: dict[Word, _GroupStatus] = {}
    pg_config: dict[Word, _Group] = {}
    entries: tuple[_DumpEntry, ...] = ()
    rank: _Number = -1


@dataclass(frozen=True, slots=True)
class Position:
    """The position of a rank in a group."""

    subject: Subject
    enqueued: int
    completed: int
    age: float
    """Seconds since the dump. Ages are compared instead of times because the clocks of hosts may differ."""
    waited: float
    """Seconds since the first unfinished collective was enqueued; 0 if there is none."""
    operation: str


def opinion(who: RankFinder) -> Opinion | None:
    dumps: list[tuple[HostText, Dump]] = []
    problem = ""
    for said in _newest(who.said(Source.RECORDER)):
        dump: Dump | str = said.about.problem or decoded(said.about.text, Dump)
        if isinstance(dump, str):
            problem = f"{said.about.name} on {said.host}: {dump}"
        else:
            dumps.append((said, dump))
    if not dumps:
        return _silent(problem) if problem else None
    groups = grouped(pair for said, dump in dumps for pair in _positions(who, said, dump))
    receiving = {who.of_text(said).key for said, dump in dumps if _waits_for_message(said, dump)}
    standings = [
        each
        for (name, members), positions in groups.items()
        if (each := _standing(name, len(members) or who.world, positions)) is not None
    ]
    if receiving:
        standings.append(GroupStanding((), frozenset(receiving), "", whole=False))
    age = max(0.0, *(who.hosts[said.host].at - said.about.at for said, _ in dumps))
    found = opinion_of(
        Source.RECORDER,
        "The flight recorder",
        standings,
        entered="entered",
        launched="all ranks have entered the collective that does not end",
        old=f", by dumps up to {age:.0f} s old" if age > FRESH else "",
    )
    whose = f"{len(dumps)} of {who.world or len(who.ranks)} ranks"
    none = f"it has dumps of {whose}, and in no group do they show who waits for whom"
    return found or _silent(problem or none)


def _silent(why: str) -> Opinion:
    return silent(Source.RECORDER, f"The flight recorder's dumps are not used: {why}.")


def _newest(texts: Iterable[HostText]) -> list[HostText]:
    """The newest dump of each process, whether it is a file or the rank's own answer."""
    newest: dict[tuple[str, int], HostText] = {}
    for each in texts:
        if each.about.pid is None:
            continue
        key = (each.host, each.about.pid)
        kept = newest.get(key)
        if kept is None or (not each.about.problem, each.about.at) >= (not kept.about.problem, kept.about.at):
            newest[key] = each
    return list(newest.values())


def _positions(
    who: RankFinder, said: HostText, dump: Dump
) -> Iterable[tuple[tuple[str, tuple[int, ...]], Position]]:
    """The rank's position in each group, keyed by name and members: each rank numbers groups differently, and
    names need not be unique.
    """
    now = who.hosts[said.host].at
    names = {entry.pg_id: entry.process_group[0] for entry in dump.entries if entry.process_group}
    entries = grouped((entry.pg_id, entry) for entry in dump.entries)
    for number, name in names.items():
        mine = [e for e in entries[number] if not e.is_p2p and e.collective_seq_id >= 0]
        members = _members(dump.pg_config.get(name))
        if not mine or (not members and name != DEFAULT):
            continue
        status = dump.pg_status.get(str(number), _GroupStatus())
        pure = not any(e.is_p2p for e in entries[number])
        last = max(mine, key=lambda e: e.collective_seq_id)
        done = [e.collective_seq_id for e in mine if e.over]
        waiting = [e for e in mine if not e.over and e.collective_seq_id > max(done, default=-1)]
        first = min(waiting, key=lambda e: e.collective_seq_id, default=None)
        yield (
            (name, members),
            Position(
                subject=who.of_text(said),
                enqueued=max(last.collective_seq_id, status.last_enqueued_collective if pure else -1),
                completed=max([*done, status.last_completed_collective if pure else -1]),
                age=now - said.about.at,
                waited=now - first.time_created_ns / 1e9 if first else 0.0,
                operation=(first or last).profiling_name.replace(":", " "),
            ),
        )


def _members(group: _Group | None) -> tuple[int, ...]:
    """The ranks of a group, written as `"[0, 1]"` or as a list. The recorder omits them for gloo."""
    ranks = group.ranks if group else None
    if isinstance(ranks, str) and len(ranks) < 100_000:
        return tuple(int(number) for number in re.findall(r"\d{1,8}", ranks))
    if isinstance(ranks, list):
        return tuple(number for number in ranks if isinstance(number, int))
    return ()


def _waits_for_message(said: HostText, dump: Dump) -> bool:
    """Whether it is in a send or receive. The dump does not show whether the other side has arrived."""
    old = said.about.at - WAITED
    return any(e.is_p2p and not e.over and 0 < e.time_created_ns / 1e9 <= old for e in dump.entries)


def _standing(name: str, members: int, positions: Sequence[Position]) -> GroupStanding | None:
    """None if no rank is seen to wait in this group."""
    waiting = [p for p in positions if p.waited and p.waited - p.age >= WAITED]
    if not waiting:
        return None
    done = max(position.completed for position in positions)
    waited = max(position.waited for position in waiting)
    ahead = [p for p in waiting if p.enqueued > done == p.completed]
    behind = [p for p in positions if p not in ahead and p.enqueued <= done and waited - p.age >= WAITED]
    if not ahead:
        return None
    late = [(each.subject, each.enqueued) for each in behind]
    return standing(name, done + 1, ahead[0].operation, [each.subject for each in ahead], late, members)

"""Ranks and hosts with a reason of their own: killed, crashed, a full disk, a broken device.

What only follows from another's end is none: an exit code after a lost connection, a kill after SIGTERM.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from doctor.logs.judge.blame import Blame
from doctor.logs.judge.case import Case, Event
from doctor.logs.judge.kinds import Kind, lacks_memory, signal_of
from doctor.logs.judge.parties import Key, covers, key
from doctor.logs.judge.words import ended, told, who
from doctor.logs.model import Form, Line, Party, Role
from doctor.model import UNDECIDED, Confidence

SOON = 60.0
"""Seconds between the kernel's word and the launcher's of the same end."""
_COMPLAINTS = (Kind.WAITS, Kind.CLOSED, Kind.LINK, Kind.ABSENT)
_RAISED = "ended with an exception of the program"
MOST = 200
"""Deaths, and lines of one reason, that are compared with each other."""
_EXCEPTION = re.compile(
    r"(?:^|[\s:])((?:\w{1,60}\.){0,9}\w{0,60}(?:Error|Exception|Interrupt|SystemExit)\b(?::.*)?$)"
)


@dataclass(slots=True)
class Suspect:
    """One reason, and all whom it holds."""

    who: dict[Party, None]
    events: list[Event]
    exceptions: list[Line] = field(default_factory=list)
    confirmed: bool = False
    """The kernel or the scheduler, and the launcher, say the same."""

    @property
    def keys(self) -> frozenset[Key]:
        return frozenset(key(each) for each in self.who)

    @property
    def one(self) -> Party:
        return next(iter(self.who))

    @property
    def symptoms(self) -> list[Event]:
        """One event of each."""
        return list({each.id: each for each in self.events}.values())

    @property
    def head(self) -> Event | None:
        return self.events[0] if self.events else None

    @property
    def hard(self) -> bool:
        return self.confirmed or any(each.kind is Kind.DIED for each in self.events)

    @property
    def overcome(self) -> bool:
        return bool(self.events) and all(each.overcome for each in self.events)


def suspects(case: Case) -> list[Suspect]:
    deaths = _deaths(case)
    others = _by_symptom(case)
    _exceptions(case, deaths, others)
    kept = []
    for death in _known_first(case, deaths):
        reason = next((each for each in others if _explains_death(each, death)), None)
        if reason is None:
            kept.append(death)
        else:
            reason.events += death.events
            reason.exceptions += death.exceptions
    return [*kept, *others]


def _known_first(case: Case, deaths: list[Suspect]) -> list[Suspect]:
    """Without those whose own log, which would tell of a lost connection, is missing, if others have one."""
    if not case.left_alone:
        return deaths
    own = [
        each for each in deaths if each.hard or each.exceptions or {p.rank for p in each.who} & case.logged
    ]
    return own or deaths


def explains(one: Event, other: Event) -> bool:
    return any(fnmatchcase(other.id, glob) for glob in one.sighting.symptom.explains)


def _deaths(case: Case) -> list[Suspect]:
    found: list[Suspect] = []
    for event in case.of(Kind.DIED, Kind.LEFT):
        if _follows(case, event):
            continue
        for party in event.who:
            same = next((each for each in found[:MOST] if _same(case, each, party, event)), None)
            if same is None:
                found.append(Suspect({party: None}, [event]))
                continue
            same.events.append(event)
            if party.rank is not None and same.one.rank is None:
                same.who = {party: None}
    for each in found:
        each.events.sort(key=lambda event: (not lacks_memory(event.sighting), event.kind is not Kind.DIED))
        forms = {event.line.form for event in each.events}
        by_kernel = any(
            lacks_memory(event.sighting) or event.line.form is Form.KERNEL for event in each.events
        )
        pids = [{who.pid for who in event.who if who.pid is not None} for event in each.events]
        each.confirmed = by_kernel and len(forms) > 1 and len(set().union(*pids)) < 2
    return found


def _same(case: Case, death: Suspect, party: Party, event: Event) -> bool:
    """The kernel knows a process, Slurm a host or a task, the launcher a rank. A container numbers its
    processes otherwise than its host.
    """
    one = death.one
    if key(one) == key(party) or covers(one, party) or covers(party, one):
        return True
    if one.host is None or one.host != party.host or (one.rank is None) is (party.rank is None):
        return False
    pair = [event, *death.events]
    killed = any(lacks_memory(each.sighting) for each in pair)
    near = case.clocks.apart(death.events[0].line, event.line)
    by_kill = all(lacks_memory(each.sighting) or signal_of(each.sighting) == 9 for each in pair)
    return killed and by_kill and (near is None or abs(near) <= SOON)


def _follows(case: Case, event: Event) -> bool:
    """The end of a rank that complained of others before, or that its launcher had told to end."""
    if lacks_memory(event.sighting):
        return False
    if event.keys & case.stopped and signal_of(event.sighting) in (9, None):
        return True
    if event.ranks and event.ranks <= case.left_alone:
        return True
    # unless it ended before them, it may have waited as well, and what it said of that is not here
    waits = case.of(Kind.WAITS)
    return event.kind is Kind.LEFT and bool(waits) and not any(case.before(event, each) for each in waits)


def _by_symptom(case: Case) -> list[Suspect]:
    """Equal reasons are one, whoever has them."""
    found: dict[str, Suspect] = {}
    for event in case.of(Kind.ROOT):
        suspect = found.setdefault(event.id, Suspect({}, []))
        suspect.events.append(event)
        suspect.who.update(dict.fromkeys(event.who))
    kept: list[Suspect] = []
    for suspect in found.values():
        same = next((each for each in kept if _of_one_line(each, suspect)), None)
        if same is None:
            kept.append(suspect)
        else:
            same.events += suspect.events
    return kept


def _of_one_line(one: Suspect, other: Suspect) -> bool:
    """Two symptoms of the very same lines are one reason."""
    places = [{(each.line.file, each.line.number) for each in of.events} for of in (one, other)]
    return one.keys == other.keys and places[0] == places[1]


def _explains_death(reason: Suspect, death: Suspect) -> bool:
    if any(lacks_memory(each.sighting) for each in death.events):
        return False
    one = death.one
    return any(key(each) == key(one) or (one.rank is None and covers(one, each)) for each in reason.who)


def _exceptions(case: Case, deaths: list[Suspect], others: Sequence[Suspect]) -> None:
    """Of the program: nobody knows them, but they end a rank. One after a lost connection is no reason."""
    known = {key(each) for suspect in others for each in suspect.who}
    lone = {key(party) for suspect in deaths for party in suspect.who}
    complain = {each.line.file for each in case.of(*_COMPLAINTS)}
    ill = bool(complain) or bool(deaths)
    for party, line in case.odd:
        mine = key(party, line.file)
        if raised(line) is None or mine in known or party.rank in case.left_alone:
            continue
        if party.rank is None and (mine[0] != "host" or line.file in complain):
            continue
        death = next((each for each in deaths if mine in each.keys), None)
        if death is not None:
            death.exceptions.append(line)
        elif ill and mine not in lone:
            deaths.append(Suspect({party: None}, [], [line]))


def raised(line: Line) -> str | None:
    """The exception that a line is the last of: "ValueError: shard 0017 is empty"."""
    found = _EXCEPTION.search(line.text[:2000]) if line.form is Form.PYTHON else None
    return found[1].strip()[:200] if found else None


def _other_size(case: Case, suspect: Suspect) -> Blame:
    """Of two ranks that issued different collectives, the one with the smaller buffer says so. That may be
    either of them.
    """
    at = {each.rank for each in suspect.who if each.rank is not None}
    last = case.world or max(case.covered, default=0) + 1
    near = {(rank + by) % last for rank in at for by in (-1, 0, 1)} if last > 1 else at
    parties = tuple(case.places.settled(Party(rank=rank), None) for rank in sorted(near))
    says = f"{who(suspect.who)} received data of a size that it did not expect"
    says += f": it, or a neighbour, issued another collective{UNDECIDED}"
    how = ("an operation was skipped, added or reordered on one side",)
    return Blame(says, parties, tuple(suspect.events), Confidence.SUSPECT, how)


def blame_of(case: Case, suspect: Suspect, confidence: Confidence) -> Blame:
    head = suspect.head
    how = []
    if head is None:
        line = suspect.exceptions[0]
        says = f"{who(suspect.who)} {_RAISED}: {raised(line)}"
        return Blame(says, tuple(suspect.who), (), confidence, (), tuple(suspect.exceptions), nameless=True)
    if "Received data size" in head.line.text:
        return _other_size(case, suspect)
    says = told(tuple(suspect.who), head)
    if suspect.exceptions:
        says = f"{who(suspect.who)} {_RAISED}: {raised(suspect.exceptions[-1])}"
    if suspect.confirmed:
        forms = "the kernel" if any(e.line.form is Form.KERNEL for e in suspect.events) else "the scheduler"
        how.append(f"{forms} and the launcher say the same of it: {ended(suspect.events[-1])}")
    elif head.kind is Kind.LEFT and not suspect.exceptions:
        how.append("no other rank is told to have ended earlier, and its log does not say why it did")
    silent = [key for key in suspect.keys if key[0] == "rank" and key[1] not in case.left_alone]
    if silent and case.left_alone - {key[1] for key in silent}:
        verb = "complain" if len(silent) > 1 else "complains"
        if verb == "complains":
            how.append("others complain of a lost connection or of waiting; it does not")
        else:
            how.append("others complain of a lost connection or of waiting; they do not")
    return Blame(
        says, tuple(suspect.who), tuple(suspect.events), confidence, tuple(how), tuple(suspect.exceptions),
        nameless=head.kind is Kind.LEFT and bool(suspect.exceptions),
    )  # fmt: skip


def ordered(case: Case, found: Iterable[Suspect], accused: frozenset[Key]) -> tuple[list[Suspect], bool]:
    """The likeliest first, and whether it is the only one that can be the cause."""
    several = list(found)
    kept = [
        each for each in several if not any(_caused(case, by, each) for by in several if by is not each)
    ] or several

    kinds = list({each.id: each for each in case.events}.values())

    def rank(each: Suspect) -> tuple[bool, int, int]:
        tier = 0 if each.confirmed or each.keys & accused else 1 if each.hard else 2
        reach = sum(any(explains(event, other) for event in each.symptoms) for other in kinds)
        return (each.overcome, tier, -reach)

    kept.sort(key=rank)
    for place in range(1, len(kept)):
        best = kept[0]
        if rank(kept[place])[:2] == rank(best)[:2] and _earlier(case, kept[place], best):
            kept.insert(0, kept.pop(place))
    best = kept[0]
    sure = all(
        (each.overcome and not best.overcome)
        or each.keys <= best.keys
        or _tier_better(rank(best), rank(each))
        or _earlier(case, best, each)
        for each in kept[1:]
    )
    return kept, sure


def _tier_better(one: tuple[bool, int, int], other: tuple[bool, int, int]) -> bool:
    return one[1] == 0 and other[1] > 0


def _earlier(case: Case, one: Suspect, other: Suspect) -> bool:
    lines = [_lines(one), _lines(other)]
    return bool(lines[0] and lines[1]) and all(
        any(case.clocks.before(a, b) for a in lines[0]) for b in lines[1]
    )


def _lines(of: Suspect) -> list[Line]:
    return ([each.line for each in of.events] or of.exceptions)[:MOST]


def _caused(case: Case, by: Suspect, other: Suspect) -> bool:
    """`by` explains it, and it does not explain `by`."""
    if not by.events or not other.events or (by.overcome and not other.overcome):
        return False
    forth = any(explains(one, two) for one in by.symptoms for two in other.symptoms)
    back = any(explains(two, one) for one in by.symptoms for two in other.symptoms)
    return forth and not back and not _earlier(case, other, by)


def consequence(event: Event) -> bool:
    return event.sighting.symptom.role is Role.CONSEQUENCE

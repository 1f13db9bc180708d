"""Two who disagree, about a collective, a size or a version, are two suspects: whoever speaks may be right.

A symptom is of this kind if its line can name the other one: `take` has a group other_rank or other_address.
"""

from collections import defaultdict
from dataclasses import replace

from doctor.logs.judge.blame import LogBlame
from doctor.logs.judge.case import LogCase
from doctor.logs.judge.event import Event
from doctor.logs.judge.kinds import SuspectKind, signal_of
from doctor.logs.judge.parties import key, named
from doctor.logs.judge.suspect import Suspect
from doctor.logs.judge.waits import other_operation
from doctor.logs.judge.words import MOST, titled, who
from doctor.logs.model import Party
from doctor.model import UNDECIDED, Confidence
from doctor.text.ranks import ranks_text

_OTHER = "(?P<other_"
_SIZES = "Received data size"
"""gloo: data came for a smaller buffer. Its ring passes data on to the neighbours."""


def disagrees(event: Event) -> bool:
    return _OTHER in (event.sighting.symptom.take or "") or _SIZES in event.line.text


def disagreement(case: LogCase, suspect: Suspect) -> LogBlame:
    """The one with whom most disagree, or all who do."""
    events = tuple(suspect.events)
    if _SIZES in events[0].line.text:
        return _of_neighbours(case, suspect)
    if found := other_operation(case, case.of(SuspectKind.WAITS)):
        return replace(found, events=(*found.events[::-1], *events))
    against: dict[Party, set[Party]] = defaultdict(set)
    for event in filter(disagrees, events):  # a launcher tells of its end, too
        others = [case.places.settled(each, None) for each in named(event.sighting.taken, "other_")]
        for one in event.who:
            against[one].update(others)
        for other in others:
            against[other].update(event.who)
    odd = [each for each, by in against.items() if 1 < len(by) == len(against) - 1]
    title = titled(events)
    if len(odd) == 1:
        by = tuple(against[odd[0]])
        how = f"{who(by)} say so, each of a collective with {who(odd)}"
        says = f"{who(odd)} disagrees with {len(by)} others: {title}"
        return LogBlame(says, tuple(odd), events, Confidence.SUSPECT, (how,))
    parties = tuple(each for each in against if key(each)[0] != "file")
    if not parties:
        return LogBlame(title, (), events, Confidence.SUSPECT)
    of = f"{who(parties)} disagree" if len(parties) > 1 else f"{who(parties)} and another one disagree"
    return LogBlame(f"{of}: {title}{UNDECIDED}", parties, events, Confidence.SUSPECT)


def _of_neighbours(case: LogCase, suspect: Suspect) -> LogBlame:
    """Two ranks issued different collectives, and the one with the smaller buffer reports it. Either of them
    may be wrong.
    """
    taken, wrote = suspect.events[0].sighting.taken, tuple(suspect.who)
    came, room = taken.get("received"), taken.get("expected")
    sizes = f"data of {came} bytes came for a buffer of {room}" if came and room else ""
    how = ["the sizes of the two sides differ" if sizes else "the line says so"]
    if all(each.rank is None for each in wrote) and (aborted := _aborted(case, suspect)):
        how.append(f"the line has no rank; {who(aborted)} is the one that ended itself (SIGABRT) there")
        wrote = aborted
    at = {each.rank for each in wrote if each.rank is not None}
    last = case.world or max(case.covered, default=0) + 1
    near = {(rank + by) % last for rank in at for by in (-1, 0, 1)}
    parties = tuple(case.places.settled(Party(rank=rank), None) for rank in sorted(near))
    beside = f" ({ranks_text(near - at, most=MOST)})" if near - at else ""
    says = f"{who(wrote)} or a neighbour{beside} issued a different collective from the others"
    says += f": {sizes or 'data came that had another size'}{UNDECIDED}"
    return LogBlame(says, parties, tuple(suspect.events), Confidence.SUSPECT, tuple(how))


def _aborted(case: LogCase, suspect: Suspect) -> tuple[Party, ...]:
    """The writer of a line without a rank: the only rank that ended itself in the same launcher's log."""
    files = {each.line.file for each in suspect.events}
    ended = [
        each
        for each in case.of(SuspectKind.LEFT)
        if each.line.file in files and signal_of(each.sighting) == 6
    ]
    ranks = {party.rank: party for each in ended for party in each.who}
    return tuple(ranks.values()) if len(ranks) == 1 else ()

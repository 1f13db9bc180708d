"""Parties and what happened to them, in words."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from doctor.agents.onhost.kernel_kills import SAID
from doctor.logs.judge.event import Event
from doctor.logs.judge.kinds import SuspectKind, exit_of, lacks_memory, signal_of
from doctor.logs.judge.parties import bare, key
from doctor.logs.model import Form, Party
from doctor.text.hostprogram import table
from doctor.text.nodeset import fold, is_host
from doctor.text.ranks import ranks_text
from doctor.text.signalname import signal_name

MOST = 4
"""The most ranges of ranks that a sentence names."""
MOST_OTHERS = 8
"""The most parties without a rank, or of their devices, that a sentence names."""
_NOBODY = "a rank"
*_TABLES, (_, *_THINGS) = table(__file__, "words.txt")
_ROWS, _VALUES = ([row.split(": ", 1) for row in rows] for rows in _TABLES)
REPORTERS = {Form(form): name for form, name in _ROWS}
"""Who writes the lines of a form. Anybody may write a plain line."""
_OF_PLACES = (SuspectKind.ROOT, SuspectKind.LINK, SuspectKind.WAITS, SuspectKind.CLOSED)
_OF_THINGS = tuple(map(SuspectKind, ["root", "link", "confirms", "after", "scheduler"]))
ENDS = (SuspectKind.DIED, SuspectKind.LEFT, SuspectKind.STOPPED)
_NAMED = dict(_VALUES)
"""The values that a sentence names, and how."""
_THING = re.compile("|".join(_THINGS))
"""What a line names: a file, an address, a word in quotes, a device."""
_LABELS = re.compile(r"(?:\S{1,80}: )*")
"""Who writes, in front of a line."""
_MOST_THINGS = 2
_OF_EACH = ("cuda_device", "tried", "free", "left", "capacity", "room", "held", "own")


def who(parties: Iterable[Party]) -> str:
    """Parties in words: "rank 2 on node3", "ranks 0-1, 3", "device 1 of 127.10.0.1"; if unknown, "a rank"."""
    several = list(dict.fromkeys(parties))
    ranks = {each.rank for each in several if each.rank is not None}
    said: list[str] = []
    if ranks:
        hosts = {each.host for each in several if each.rank is not None}
        on = f" on {folded(h for h in hosts if h)}" if None not in hosts and len(hosts) <= MOST else ""
        said.append(ranks_text(ranks, most=MOST) + on)
    unknown = [each for each in several if each.rank is None]
    others = dict.fromkeys(_one(each) for each in unknown if key(each)[0] != "file" or not ranks)
    others.pop(_NOBODY, None)
    said += [*others][:MOST_OTHERS]
    if len(others) > MOST_OTHERS:
        said.append(f"{len(others) - MOST_OTHERS} more")
    if not said:
        return _NOBODY
    return " and ".join(said) if len(said) < 3 else ", ".join(said[:-1]) + " and " + said[-1]


def many(parties: Iterable[Party]) -> bool:
    return len(set(parties)) > 1


def _one(party: Party) -> str:
    place = party.host or (bare(party.address)[0] or party.address if party.address else "")
    if party.device is not None:
        if party.pid is not None and not place:
            return f"process {party.pid} (device {party.device})"
        return f"device {party.device} of {place}" if place else f"device {party.device}"
    if party.pid is not None:
        return f"process {party.pid}" + (f" on {place}" if place else "")
    if party.address and not party.host:
        return party.address
    if party.host and party.address and not bare(party.host)[0]:
        return f"{party.host} ({bare(party.address)[0]})"
    return place or _NOBODY


def folded(hosts: Iterable[str]) -> str:
    names = sorted(set(hosts))
    return fold(names) if names and all(map(is_host, names)) else ", ".join(names)


def ended(event: Event) -> str:
    """How a rank ended: "was killed by the kernel for lack of memory"."""
    if lacks_memory(event.sighting):
        return SAID
    number = signal_of(event.sighting)
    if number == 9:
        return "was killed (SIGKILL)"
    if event.kind is SuspectKind.STOPPED:
        return f"was told to end ({signal_name(number)})" if number else "was ended by its launcher"
    if number is not None:
        return f"died of {signal_name(number)}"
    return f"ended with exit code {exit_of(event.sighting)}"


def told(parties: Sequence[Party], event: Event, events: Iterable[Event] = ()) -> str:
    """What happened to the parties, as one sentence without its full stop. `events` are more of the kind."""
    same = (event, *(each for each in events if each.id == event.id))
    shared = len({*parties}) > 2  # a line names two ranks on a CUDA device, and there are several lines
    hidden = (*(_OF_EACH if shared else ()), *(("process",) if event.kind in ENDS else ()))
    about = which(same, ends=not many(parties), hidden=hidden)
    title = event.sighting.symptom.title + about
    if event.kind is SuspectKind.SCHEDULER:  # the writer of the line does not matter
        return title
    card = event.sighting.taken.get("card")
    parties = parties or event.who or (event.by,)
    kinds = {key(each)[0] for each in parties}
    local = event.sighting.taken.get("local_rank") or event.sighting.taken.get("local")
    where = f" (local rank {local})" if local and all(each.rank is None for each in parties) else ""
    if kinds == {"file"}:
        title = f"device {card}: {title}" if card else title
        return f"a rank{where} {ended(event)}{about}" if event.kind in ENDS else title
    of = who(parties)
    if card and not many(parties) and "device " not in of:
        of += f" (device {card})"
    if event.kind not in ENDS:
        return f"{of}: {title}"
    name = event.sighting.taken.get("process")
    if kinds == {"host"} and all(each.host for each in parties):
        of = f"a process on {of}"
    elif kinds == {"pid"} and name:
        of = f"{of} ({name})"
    said = ended(event) + about
    said = said if not many(parties) else said.replace("was ", "were ", 1).replace(" its ", " their ", 1)
    return f"{of}{where} {said}"


def waited(waiters: Sequence[Party], event: Event, events: Sequence[Event]) -> str:
    """What ranks say that waited in vain or were left: they are not to blame, and do not know who is."""
    of, card = who(waiters), event.sighting.taken.get("card")
    of = f"device {card}" if card and of == _NOBODY else of
    if of == _NOBODY:
        return told(waiters, event, events)
    same = [event, *(each for each in events if each.id == event.id)]
    if event.kind is SuspectKind.CLOSED:
        return f"unknown who: {of} lost a connection ({titled(same, ends=False)})"
    return f"unknown who: {of} waited for others ({titled(same)})"


def titled(events: Sequence[Event], *, ends: bool = True) -> str:
    """What happened, with what the lines of all these events name."""
    same = [each for each in events if each.id == events[0].id]
    return events[0].sighting.symptom.title + which(same, ends=ends)


def which(events: Sequence[Event], *, ends: bool = True, hidden: Collection[str] = ()) -> str:
    """What the lines name, such as a module, a port or, with `ends`, the other end: " (node1, port 29500)".
    `hidden` values are left out.
    """
    event = events[0]
    hosts = [each.sighting.taken.get("host", "").removeprefix("::ffff:") for each in events]
    far = [who(event.peers)] if event.peers else hosts if event.kind in _OF_PLACES else []
    here = {*_places(event.who)}
    others = dict.fromkeys(each for each in far if ends and each and each not in here and each != _NOBODY)
    said = [_some(others)] if others else []
    found: dict[str, dict[str, None]] = {}
    for each in events:
        for name, value in each.sighting.taken.items():
            if (name in _NAMED or name.startswith("which")) and name not in hidden and value:
                found.setdefault(name, {})[value.strip()] = None
    said += [_NAMED[name].format(_some(found[name])) for name in _NAMED if name in found]
    said += [_some(values) for name, values in found.items() if name not in _NAMED]
    own = "local" in event.id.split("-")  # its own end is at fault
    if not said and ends and event.kind in _OF_THINGS and not own:
        said = [*_things(event)][:_MOST_THINGS]
    return f" ({', '.join(dict.fromkeys(said))})" if said else ""


def _places(parties: Iterable[Party]) -> Iterator[str]:
    return (place for each in parties for place in (each.host, each.address) if place)


def _things(event: Event) -> Iterator[str]:
    """What its line names, and the words of its symptom do not, if no field of the symptom takes it."""
    line, symptom = event.line.text, event.sighting.symptom
    literals = (word for each in symptom.patterns for word in each)
    others = (value for name, value in event.sighting.taken.items() if name.startswith("other"))
    places = _places((*event.who, *event.peers))
    cards = [each.device for each in (event.by, *event.who)]
    parts = (f"device {each}" for each in (*cards, event.sighting.taken.get("card")))
    known = "\n".join((symptom.title, *literals, *others, *places, *parts))
    for found in _THING.finditer(line):
        thing = next(filter(None, found.groups()))
        thing = f"device {thing}" if found["device"] else thing
        speaks = _LABELS.fullmatch(line[: found.start()]) and line[found.end() :].startswith(":")
        if not (speaks or thing in known):
            yield thing


def _some(values: Iterable[str]) -> str:
    several = list(values)
    every = [each for each in several if f"{each}.0" not in several]  # PCI addresses with their function
    more = f" and {len(every) - MOST_OTHERS} more" if len(every) > MOST_OTHERS else ""
    return " and ".join(every) if len(every) == 2 else ", ".join(every[:MOST_OTHERS]) + more


def aftermath(waited: Iterable[int], closed: Iterable[int]) -> str:
    """What happened to the other ranks, as the end of a sentence after a semicolon."""
    lost, late = set(closed), set(waited) - set(closed)
    said = []
    if lost:
        their = "their" if len(lost) > 1 else "its"
        said.append(f"{ranks_text(lost, most=MOST)} lost {their} connection")
    if late:
        said.append(f"{ranks_text(late, most=MOST)} waited in vain")
    return "; " + " and ".join(said) if said else ""

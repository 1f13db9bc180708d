"""Parties and what happened to them, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from doctor.logs.judge.case import Event
from doctor.logs.judge.kinds import SuspectKind, exit_of, lacks_memory, signal_of
from doctor.logs.judge.parties import bare, key
from doctor.logs.model import Party
from doctor.text.nodeset import fold, is_host
from doctor.text.ranks import ranks_text

MOST = 4
"""The most ranges of ranks, or parties without a rank, that a sentence names."""
_NAMED = {
    "port": "port {}",
    "visible": "visible: {}",
    "cuda_device": "CUDA device {}",
    "library": "{}",
    "path": "{}",
    "said": "{}",
}
"""The values that a sentence names, and how."""
ENDS = (SuspectKind.DIED, SuspectKind.LEFT, SuspectKind.STOPPED)
_SIGNALS = {4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM"}


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
    others = list(dict.fromkeys(_one(each) for each in unknown))
    said += others[:MOST]
    if len(others) > MOST:
        said.append(f"{len(others) - MOST} more")
    if not said:
        return "a rank"
    return " and ".join(said) if len(said) < 3 else ", ".join(said[:-1]) + " and " + said[-1]


def many(parties: Iterable[Party]) -> bool:
    return len(set(parties)) > 1


def _one(party: Party) -> str:
    place = party.host or (bare(party.address)[0] or party.address if party.address else "")
    if party.device is not None:
        return f"device {party.device} of {place}" if place else f"device {party.device}"
    if party.pid is not None:
        return f"process {party.pid}" + (f" on {place}" if place else "")
    if party.address and not party.host:
        return party.address
    if party.host and party.address and not bare(party.host)[0]:
        return f"{party.host} ({bare(party.address)[0] or party.address})"
    return place or "a rank"


def folded(hosts: Iterable[str]) -> str:
    names = sorted(set(hosts))
    return fold(names) if names and all(map(is_host, names)) else ", ".join(names)


def ended(event: Event) -> str:
    """How a rank ended: "was killed by the kernel for lack of memory"."""
    if lacks_memory(event.sighting):
        return "was killed by the kernel for lack of memory (oom-kill)"
    number = signal_of(event.sighting)
    name = _SIGNALS.get(number or 0, f"signal {number}")
    if number == 9:
        return "was killed (SIGKILL)"
    if event.kind is SuspectKind.STOPPED:
        return f"was ended by its launcher ({name})" if number else "was ended by its launcher"
    if number is not None:
        return f"died of {name}"
    code = exit_of(event.sighting)
    if code is not None:
        return f"ended with exit code {code}"
    return f": {event.sighting.symptom.title}"


def told(parties: Sequence[Party], event: Event) -> str:
    """What happened to the parties, as one sentence without its full stop."""
    title = event.sighting.symptom.title + _which(event, len({*parties}))
    if event.kind is SuspectKind.SCHEDULER:  # the writer of the line does not matter
        return title
    card = event.sighting.taken.get("card")
    if all(key(each)[0] == "file" for each in parties or event.who or (event.by,)):
        title = f"device {card}: {title}" if card else title
        return title if event.kind not in ENDS else f"a rank {ended(event)}".replace("rank :", "rank:")
    of = who(parties or event.who or (event.by,))
    if card and len({*parties}) < 2 and "device " not in of:
        of += f" (device {card})"
    if event.kind in ENDS:
        said = ended(event)
        said = said if not many(parties) else said.replace("was ", "were ", 1).replace(" its ", " their ", 1)
        return f"{of}{said}" if said.startswith(":") else f"{of} {said}"
    return f"{of}: {title}"


def _which(event: Event, parties: int) -> str:
    """The device that the line names by its bus address, or the adapter: " (PCI 0000:3b:00)"."""
    taken = dict(event.sighting.taken)
    if parties > 2:  # a line names two ranks, and there are several lines
        taken.pop("cuda_device", None)
    named = [f"PCI {taken['pci']}"] if taken.get("pci") else []
    named += [taken["adapter"]] if taken.get("adapter") else []
    named += [said.format(taken[name]) for name, said in _NAMED.items() if taken.get(name)]
    return f" ({', '.join(named)})" if named else ""


def aftermath(waited: Iterable[int], closed: Iterable[int]) -> str:
    """What happened to the other ranks, as the end of a sentence after a semicolon."""
    lost, late = set(closed), set(waited) - set(closed)
    said = []
    if lost:
        said.append(f"{ranks_text(lost, most=MOST)} lost their connection" if len(lost) > 1 else "")
        said[-1] = said[-1] or f"{ranks_text(lost)} lost its connection"
    if late:
        said.append(f"{ranks_text(late, most=MOST)} waited in vain")
    return "; " + " and ".join(said) if said else ""

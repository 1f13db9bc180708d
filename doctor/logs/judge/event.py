"""One sighting that counts: of which kind it is, who wrote it, and whom it is about."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import translate
from functools import cache

from doctor.logs.judge.kinds import SuspectKind, killed_pid, kind_of
from doctor.logs.judge.parties import Key, PartyMaps, key, named, numbers
from doctor.logs.model import OF_OTHERS, Form, LogFile, LogLine, Party, Sighting

Writer = Callable[[LogLine], Party]
NEAR_END = 200
"""This number of last lines counts as the end of a file."""
LAST_WORDS = 3
"""A `repeated` symptom that occurs once, in a warning, counts within this number of lines from the end."""
LATE = 60.0
"""Seconds before the last line that still count as the end of a file."""
_BY_SHELL = re.compile(r": line \d{1,6}: +\d{1,9} [A-Z][\w ]{3,40} +(?:\(core dumped\) )?\S.*'$")
MOST_READY = 100_000
"""The most ranks that a list of those that are ready may imply."""
_OF_NOBODY = {"schedulers", "supervisor", "ray-resources", "deepspeed-child", "deepspeed-others-ended"}
"""Symptoms, and families of them, whose lines no rank writes, whatever else its file holds."""
_ABOUT_OTHERS = {
    *("kubernetes-container-ended", "mpi-ssh-host-key", "mpi-daemon-missing", "ceph-slow", "ray-actor-died")
}
"""Symptoms that say nothing of their writer, nor of its host."""
_LEFT_OUT = re.compile(r"\b(?:Ignor(?:e|ed|ing)|Skip(?:ped|ping)?) ")
_OF_OTHERS = {SuspectKind.NAMES, SuspectKind.DIED, SuspectKind.LEFT, SuspectKind.STOPPED}


@dataclass(frozen=True, slots=True)
class Event:
    """A sighting that counts. `who` are the parties that it is about; empty if they are unknown."""

    sighting: Sighting
    kind: SuspectKind
    by: Party
    who: tuple[Party, ...] = ()
    peers: tuple[Party, ...] = ()
    overcome: bool = False
    """Its rank went on after it."""
    doubted: bool = False
    """Its log says later that the training is over: so may a script whose program ended."""

    @property
    def line(self) -> LogLine:
        return self.sighting.first

    @property
    def id(self) -> str:
        return self.sighting.symptom.id

    @property
    def keys(self) -> frozenset[Key]:
        return frozenset(key(each, self.line.file) for each in self.who or (self.by,))

    @property
    def ranks(self) -> frozenset[int]:
        return frozenset(each.rank for each in self.who or (self.by,) if each.rank is not None)


def explains(one: Event, other: Event) -> bool:
    return _pattern(one.sighting.symptom.explains).match(other.id) is not None


@cache
def _pattern(globs: tuple[str, ...]) -> re.Pattern[str]:
    """Matches what one of the globs does; no glob matches nothing."""
    return re.compile("|".join(map(translate, globs)) or r"(?!)")


def event_of(sighting: Sighting, file: LogFile, places: PartyMaps, writer: Writer) -> Event | None:
    kind = kind_of(sighting)
    if kind is None or not _counts(sighting, file):
        return None
    line, taken, symptom = sighting.first, sighting.taken, sighting.symptom
    of_nobody = not _OF_NOBODY.isdisjoint((symptom.family, symptom.id))
    by = Party(host=line.who.host) if of_nobody else writer(line)
    by = Party() if symptom.id in _ABOUT_OTHERS else by
    about = tuple(places.settled(each, None) for each in (*named(taken), *_not_ready(taken, file)))
    guilty = tuple(places.settled(each, None) for each in named(taken, "guilty_"))
    peers = tuple(places.settled(each, None) for each in named(taken, "peer_"))
    of_others = line.form in OF_OTHERS or kind in _OF_OTHERS
    if line.form is Form.KERNEL and "victim" in taken:
        about = _on_device(taken, by, places)
    elif line.form is Form.KERNEL and not any(each.pid is not None for each in about):
        pid = killed_pid(sighting)
        about = tuple(replace(each, pid=pid) for each in about)
    if of_others:
        there = Party(host=by.host)
        about = tuple(
            places.settled(filled(each, there if each.rank is None and not each.address else Party()), file)
            for each in about
        )
        if not about and kind is not SuspectKind.NAMES:
            itself = line.form is Form.MPI and "Signal: " in line.text  # the crash handler of Open MPI
            launcher = line.form in (Form.MPI, Form.SLURM) and by.rank is None and not itself
            about = (by,) if key(by)[0] != "file" and not launcher else ()
    else:
        of_peer = any("(?P<peer_" in each for each in (symptom.take, *symptom.below))
        if kind in (SuspectKind.LINK, SuspectKind.WAITS, SuspectKind.CLOSED) and not (peers or of_peer):
            peers = tuple(replace(each, rank=None) for each in about if each.host or each.address)
            peers = tuple(places.settled(each, None) for each in peers)
            if "client socket has failed to connect to" in line.text:
                peers = ()  # in this message torch does not print the addresses that it tried
        own = replace(about[0], address=None) if len(about) == 1 else Party()
        if by.rank is not None or by.device is not None or by.host or file.who != Party():
            own = replace(own, pid=None)  # the writer is known better
        if own.rank is None and not of_peer:  # it is that of another end
            own = replace(own, host=None)
        by = places.settled(filled(by, own), file)
        named_ranks = [each for each in about if each.rank is not None]
        several = kind is SuspectKind.ROOT and len(named_ranks) > 1
        about = tuple(places.settled(each, file) for each in named_ranks) if several else (by,)
    return Event(sighting, kind, by, guilty or about, peers)


def _not_ready(taken: Mapping[str, str], file: LogFile) -> Iterable[Party]:
    """The ranks that a list of those that are ready lacks; beyond its end only if the number is known."""
    ready = {*numbers(taken.get("ready", ""))}
    if not ready:
        return ()
    world = max(max(ready) + 1, file.world or 0)
    return [Party(rank=each) for each in range(world) if each not in ready] if world < MOST_READY else ()


def _on_device(taken: Mapping[str, str], by: Party, places: PartyMaps) -> tuple[Party, ...]:
    """The rank that used the faulty device. Its process met the fault, and is not to blame for it."""
    pid = taken["victim"]
    party = places.settled(Party(host=by.host, pid=int(pid) if pid.isdecimal() else None), None)
    return (replace(party, pid=None),) if party.rank is not None or party.host else ()


def _counts(sighting: Sighting, file: LogFile) -> bool:
    needs, last = sighting.symptom.needs, sighting.last
    if _LEFT_OUT.search(last.text[:200]) and last.form is Form.PLAIN and last.level in ("", "INFO", "DEBUG"):
        needs = "end"
    if needs in ("", "effect", "differs") or (
        needs == "repeated" and (sighting.count > 1 or is_raised(last))
    ):
        return True
    if needs == "end":
        return below(file, last) < LAST_WORDS
    if needs == "repeated" and last.form is Form.KERNEL:
        return False
    made = max((step.number for step in file.progress), default=0)
    over = [line.number for line in file.over if line.number > made]
    if needs == "unfinished" and (file.lines in over or any(number < last.number for number in over)):
        return False
    near = below(file, last) <= (LAST_WORDS if needs == "repeated" else NEAR_END)
    if needs == "no-step" or file.last_at is None or last.at is None:
        return near
    return near and file.last_at - last.at <= LATE


def below(file: LogFile, line: LogLine) -> int:
    """How many lines stand below it, but those of the command that a shell quotes with it to the end."""
    told = _BY_SHELL.search(line.text) is not None and line.text.count("'") % 2 == 1
    quoted = told and file.last is not None and file.last.text.endswith("'")
    return 0 if quoted else file.lines - line.number


def is_raised(line: LogLine) -> bool:
    """Whether the line ends a traceback, or is the exception alone."""
    return line.form is Form.PYTHON and line.level == "ERROR"


def filled(who: Party, more: Party) -> Party:
    """The party with what is only known of `more`."""
    return Party(
        more.rank if who.rank is None else who.rank,
        more.host if who.host is None else who.host,
        more.device if who.device is None else who.device,
        more.pid if who.pid is None else who.pid,
        who.address,
    )

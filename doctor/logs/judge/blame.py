"""The result of a rule of the judge: who is to blame, how that is known, and by which lines.

Who holds the memory of a device is known by the numbers in the message of an allocator that got none.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from doctor.logs.judge.event import Event
from doctor.logs.judge.kinds import killed_pid, lacks_memory
from doctor.logs.judge.parties import Key, key
from doctor.logs.model import Form, LogCause, LogLine, Party, Role, Symptom
from doctor.logs.remedy import filled
from doctor.model import Confidence, Remedy

_SIZE = r"\b(\d{1,12}(?:\.\d{1,6})?) (bytes|[KMGT]iB)"
_TOTAL = re.compile(rf"total capacity of {_SIZE}|{_SIZE} total capacity")
_FREE = re.compile(rf"of which {_SIZE} is free|{_SIZE} free")
_OWN = re.compile(rf"this process has {_SIZE}|{_SIZE} reserved in total")
_ALLOCATED = re.compile(rf"allocated memory {_SIZE} is allocated by PyTorch")
_OTHER = re.compile(rf"Process \d{{1,9}} has {_SIZE} memory in use")
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")
BY_OTHERS = "other processes hold most of the memory that is in use, by the numbers in its message"


def held_by_others(text: str) -> bool:
    """Whether more than half of what is in use belongs to others than the process that asked for more."""
    total, free, own = (_bytes(pattern.search(text)) for pattern in (_TOTAL, _FREE, _OWN))
    if total is None or free is None:
        return False
    used, listed = total - free, sum(_bytes(found) or 0 for found in _OTHER.finditer(text))
    if own is None and (allocated := _bytes(_ALLOCATED.search(text))):
        own, listed = allocated, 0  # in a container it does not know itself, and lists itself as another one
    return max(listed, used - own if own is not None else 0) > used / 2


def _bytes(found: re.Match[str] | None) -> float | None:
    if found is None:
        return None
    number, unit = (group for group in found.groups() if group)
    return float(number) * 1024.0 ** _UNITS.index(unit)


MOST_LINES = 4


@dataclass(frozen=True, slots=True)
class LogBlame:
    """`events` prove it, and the first has its symptom. Without events, it follows from something missing."""

    says: str
    who: tuple[Party, ...] = ()
    events: tuple[Event, ...] = ()
    confidence: Confidence = Confidence.STRONG
    how: tuple[str, ...] = ()
    lines: tuple[LogLine, ...] = ()
    """Lines besides those of the events."""
    role: Role = Role.ROOT
    nameless: bool = False
    """It has no symptom: its events only confirm it."""
    checks: tuple[str, ...] = ()
    """Checks that come before those of the symptoms."""
    brief: str = ""
    unseen: str = ""
    """`brief` and `unseen` are fields of LogCause, and count only without a symptom."""

    @property
    def keys(self) -> frozenset[Key]:
        return frozenset(key(each) for each in self.who)

    def charge(self, because: int | None = None, more: str = "") -> LogCause:
        symptoms = list(dict.fromkeys(each.sighting.symptom for each in self.events))
        first = symptoms[0] if symptoms and not self.nameless else None
        checks = (*self.checks, *(check for each in symptoms for check in each.checks))
        lines = (*(each.line for each in _spread(self.events)), *self.lines)
        causes, how = first.causes if first else (), self.how
        if any(held_by_others(line.text) for line in lines):
            causes = tuple(sorted(causes, key=lambda cause: not cause.startswith("another process")))
            how = (*how, BY_OTHERS)
        return LogCause(
            symptom=first.id if first else None,
            says=self.says + more,
            who=self.who,
            role=self.role,
            because=because,
            how=how,
            lines=tuple(dict.fromkeys(lines))[:MOST_LINES],
            causes=causes,
            checks=tuple(dict.fromkeys(checks)),
            remedy=Remedy(first.id, self._to_do(first)) if first and first.remedy else None,
            confidence=self.confidence,
            count=max(1, sum(map(_times, _once(self.events)))),
            brief="" if first else self.brief,
            unseen=first.unseen if first else self.unseen,
        )

    def _to_do(self, symptom: Symptom) -> tuple[str, ...]:
        """What the symptom says to type, with what the lines name filled in."""
        own = [each.sighting.taken for each in reversed(self.events) if each.id == symptom.id]
        taken = {name: said for each in own for name, said in each.items() if said}
        told = self.who or tuple(each.by for each in self.events)
        hosts = dict.fromkeys(host for each in told if (host := each.host))
        return tuple(filled(line, taken, [*hosts]) for line in symptom.remedy)


def _times(event: Event) -> int:
    """How often it happened: the kernel says of one kill in several lines."""
    return 1 if event.line.form is Form.KERNEL and lacks_memory(event.sighting) else event.sighting.count


def _once(events: Iterable[Event]) -> Iterator[Event]:
    """The events without those lines of the kernel that only repeat that a process was killed."""
    told: set[int | None] = set()
    for each in events:
        if each.line.form is Form.KERNEL and lacks_memory(each.sighting):
            pid = killed_pid(each.sighting)
            if pid in told:
                continue
            told.add(pid)
        yield each


def _spread(events: Iterable[Event]) -> list[Event]:
    """The events, with one event of each symptom first."""
    several = list(_once(events))
    firsts = {each.id: each for each in reversed(several)}
    heads = [each for each in several if firsts[each.id] is each]
    return [*heads, *(each for each in several if firsts[each.id] is not each)]

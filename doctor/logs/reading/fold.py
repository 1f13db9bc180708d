"""Collects the symptoms of one file. Repetitions are counted, not kept."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from doctor.logs.forms.line_facts import LineFacts
from doctor.logs.model import Form, LogLine, Role, Symptom

MOST = 4000
"""The most sightings of one file; after that, those of further parties are counted together."""
APART = ("pci", "adapter", "gpu", "gpu_node", "process", "server", "earlier_xid", "ranks", "peer_ranks")
"""Values of a message that tell two events of one writer apart."""
KERNELS = (*APART, "pid", "victim", "disk")
"""The same for the kernel, whose events belong to processes."""
_PART = re.compile(r"(disk (?:nvme\d{1,4}|(?:[sv]|xv|h)d[a-z]{1,3}))(?:[np]?\d\w*)?$")
"""A namespace or a partition of a disk."""
OBJECTS = {
    Role.CONSEQUENCE: ("rank",),
    Role.NAMES: ("address", "device"),
    Role.ROOT: ("host", "file", "name", "module", "library", "interface"),
}
"""And what the causes and the accused of one writer are about."""
Subject = tuple[str, ...]


class UnresolvedParty(NamedTuple):
    """A party before it is known which rank a process or a local rank is."""

    rank: int | None = None
    host: str | None = None
    pid: int | None = None
    device: int | None = None
    local: int | None = None
    worker: int | None = None
    task: bool = False
    """Whether the rank is the number of a task of Slurm."""


def who_of(facts: LineFacts) -> UnresolvedParty:
    return UnresolvedParty(
        facts.rank, facts.host, facts.pid, facts.device, facts.local, facts.worker, facts.task
    )


def subject(symptom: Symptom, taken: Mapping[str, str], form: Form) -> Subject:
    """What a message is about, so that only messages about the same are counted together."""
    names: tuple[str, ...] = KERNELS if form is Form.KERNEL else APART
    names += tuple(name for name in taken if name.startswith(("guilty_", "which")))
    if symptom.role in OBJECTS:
        names += OBJECTS[symptom.role]
    if symptom.above or symptom.below:
        names = tuple(sorted(taken))
    return tuple(_PART.sub(r"\1", f"{name} {taken[name]}") for name in names if name in taken)


@dataclass(slots=True)
class EventFold:
    symptom: Symptom
    who: UnresolvedParty
    form: Form
    first: LogLine
    last: LogLine
    taken: Mapping[str, str]
    count: int = 1
    again: tuple[int, str, LineFacts] | None = None
    """The last repetition: its number, its text, its values. It becomes a line only at the end."""


@dataclass(slots=True)
class Fold:
    seen: dict[tuple[str, UnresolvedParty, Subject], EventFold] = field(default_factory=dict)

    def repeats(
        self,
        symptom: str,
        who: UnresolvedParty,
        about: Subject,
        number: int,
        text: str,
        facts: LineFacts,
        times: int = 1,
    ) -> bool:
        """Count a repetition; False if it is not a repetition."""
        known = self.seen.get((symptom, who, about))
        if known is None and len(self.seen) >= MOST:
            known = self.seen.get((symptom, UnresolvedParty(), ()))
        if known is None:
            return False
        known.count += times
        if known.again is None or known.again[0] < number:
            known.again = (number, text, facts)
        return True

    def add(
        self, symptom: Symptom, taken: Mapping[str, str], who: UnresolvedParty, about: Subject, line: LogLine
    ) -> None:
        who, about = (UnresolvedParty(), ()) if len(self.seen) >= MOST else (who, about)
        self.seen[symptom.id, who, about] = EventFold(symptom, who, line.form, line, line, dict(taken))

    def finish(self, made: Callable[[int, str, LineFacts], LogLine]) -> None:
        for each in self.seen.values():
            if each.again:
                each.last, each.again = made(*each.again), None

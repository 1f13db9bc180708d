"""Collects the symptoms of one file. Repetitions are counted, not kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from doctor.logs.forms.line_facts import LineFacts
from doctor.logs.model import Form, LogLine, Symptom

MOST = 4000
"""The most sightings of one file; after that, those of further parties are counted together."""


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


def about(taken: Mapping[str, str]) -> str:
    """Whom or what a message is about, if that is not its writer: "" for most messages."""
    return "\n".join(value for name, value in taken.items() if name.startswith(("guilty_", "which")))


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
    seen: dict[tuple[str, UnresolvedParty, str], EventFold] = field(default_factory=dict)

    def repeats(
        self,
        symptom: Symptom,
        who: UnresolvedParty,
        taken: Mapping[str, str],
        number: int,
        text: str,
        facts: LineFacts,
    ) -> bool:
        """Count a repetition; False if it is not a repetition."""
        known = self.seen.get((symptom.id, who, about(taken)))
        if known is None and len(self.seen) >= MOST:
            known = self.seen.get((symptom.id, UnresolvedParty(), ""))
        if known is None:
            return False
        known.count += 1
        known.again = (number, text, facts)
        return True

    def add(self, symptom: Symptom, taken: Mapping[str, str], who: UnresolvedParty, line: LogLine) -> None:
        what = about(taken)
        if len(self.seen) >= MOST:
            who, what = UnresolvedParty(), ""
        self.seen[symptom.id, who, what] = EventFold(symptom, who, line.form, line, line, dict(taken))

    def finish(self, made: Callable[[int, str, LineFacts], LogLine]) -> None:
        for each in self.seen.values():
            if each.again:
                each.last, each.again = made(*each.again), None

"""Collects the symptoms of one file. Repetitions are counted, not kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from doctor.logs.forms.said import Said
from doctor.logs.model import Form, Line, Symptom

MOST = 4000
"""Sightings of one file; after that, those of further parties are counted together."""


class Who(NamedTuple):
    """A party before it is known which rank a process or a local rank is."""

    rank: int | None = None
    host: str | None = None
    pid: int | None = None
    device: int | None = None
    local: int | None = None


def who_of(said: Said) -> Who:
    return Who(said.rank, said.host, said.pid, said.device, said.local)


@dataclass(slots=True)
class Folded:
    symptom: Symptom
    who: Who
    form: Form
    first: Line
    last: Line
    taken: Mapping[str, str]
    count: int = 1
    again: tuple[int, str, Said] | None = None
    """The last repetition: its number, its text, its values. It becomes a line only at the end."""


@dataclass(slots=True)
class Fold:
    seen: dict[tuple[str, Who], Folded] = field(default_factory=dict)

    def repeats(self, symptom: Symptom, who: Who, number: int, text: str, said: Said) -> bool:
        """Count a repetition; False if it is not a repetition."""
        known = self.seen.get((symptom.id, who))
        if known is None and len(self.seen) >= MOST:
            known = self.seen.get((symptom.id, Who()))
        if known is None:
            return False
        known.count += 1
        known.again = (number, text, said)
        return True

    def add(self, symptom: Symptom, taken: Mapping[str, str], who: Who, line: Line) -> None:
        who = Who() if len(self.seen) >= MOST else who
        self.seen[symptom.id, who] = Folded(symptom, who, line.form, line, line, dict(taken))

    def finish(self, made: Callable[[int, str, Said], Line]) -> None:
        for each in self.seen.values():
            if each.again:
                each.last, each.again = made(*each.again), None

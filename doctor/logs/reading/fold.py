"""The symptoms of one file. Repetitions are counted, not kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from doctor.logs.forms.said import Said
from doctor.logs.model import Form, Line, Symptom

MOST = 4000
"""Sightings of one file; then those of further parties are counted together."""


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


@dataclass(slots=True)
class Fold:
    seen: dict[tuple[str, Who], Folded] = field(default_factory=dict)

    def add(self, symptom: Symptom, taken: Mapping[str, str], who: Who, line: Line) -> None:
        key = (symptom.id, who)
        if key not in self.seen and len(self.seen) >= MOST:
            key = (symptom.id, Who())
        known = self.seen.get(key)
        if known is None:
            self.seen[key] = Folded(symptom, key[1], line.form, line, line, dict(taken))
            return
        known.count += 1
        known.last = line

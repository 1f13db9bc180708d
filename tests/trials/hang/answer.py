"""What `doctor hang` answered in a trial."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tests.support.hang.named import culprits, suspects
from tests.trials.outcome import Outcome

Named = Mapping[str, Any]


@dataclass(frozen=True)
class Answer:
    name: str
    number: int
    place: str
    code: int
    said: str
    seconds: float

    @cached_property
    def report(self) -> Mapping[str, Any] | None:
        try:
            report: Mapping[str, Any] = json.loads(self.said)
        except ValueError:
            return None
        return report

    @property
    def hang(self) -> Mapping[str, Any]:
        """Its part of the report."""
        return self.report["hang"] if self.report else {"state": "", "notes": ()}

    @property
    def guilty(self) -> Sequence[Named]:
        return culprits(self.report) if self.report else []

    @property
    def suspected(self) -> Sequence[Named]:
        return suspects(self.report) if self.report else []

    def outcome(self, detected: bool, named: bool, alone: bool) -> Outcome:
        if self.report is None:
            return Outcome.silent(
                self.name, self.number, self.place, self.seconds, self.code, self.said[-500:]
            )
        rights = self.hang.get("rights") or {"unread": ()}
        words = (
            self.report["headline"],
            *map(_sentence, (*self.guilty, *self.suspected)),
            *self.hang["notes"],
            *(() if detected else rights["unread"]),
        )
        return Outcome(
            self.name, self.number, self.place, detected, named, alone, None, self.seconds, self.code, words
        )


def _sentence(named: Named) -> str:
    return f"rank {named['rank']} on {named['host']}: {named['summary']}"


def functions(named: Named) -> list[str]:
    """Of its stack."""
    return [frame["function"].rpartition(".")[2] for frame in named["hang"]["stack"]]

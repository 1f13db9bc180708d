"""The outcome of one trial, and that of a smoke run: its report, compared with the fault."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

Verdict = Literal["right", "silent", "wrong", "falsely"]
VERDICTS: tuple[Verdict, ...] = ("right", "silent", "wrong", "falsely")
Found = Mapping[str, Any]
MISSED = "the injected fault was not found"
"""How a run reports that it missed the fault: under the fault's own check, without a culprit."""


@dataclass(frozen=True, slots=True)
class Truth:
    """The fault.

    `checks` are the checks that may report it; if there are no `hosts`, all hosts are at fault. `ranks` is
    None if the host is at fault and not one of its ranks: then the ranks are not compared.
    """

    checks: frozenset[str]
    hosts: frozenset[str]
    ranks: frozenset[int] | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run; a healthy one is `detected` if nothing was found. `alone`: nobody else is blamed.

    `latency` is the time in seconds since the fault; None if the fault does not end the run.
    """

    fault: str
    number: int
    place: str
    detected: bool
    named: bool
    alone: bool
    latency: float | None
    seconds: float
    code: int
    said: tuple[str, ...]

    @classmethod
    def silent(cls, fault: str, number: int, place: str, seconds: float, code: int, *said: str) -> Outcome:
        """Of a run that has no report."""
        return cls(fault, number, place, False, False, True, None, seconds, code, said)

    @property
    def right(self) -> bool:
        """The fault is found, exactly its culprit is named, and nothing else is blamed."""
        return self.detected and self.named and self.alone

    @property
    def verdict(self) -> Verdict:
        """An innocent one is accused, nothing is found, or the wrong thing is said about it."""
        return (
            "right" if self.right else "falsely" if not self.alone else "wrong" if self.detected else "silent"
        )


def trouble(report: Mapping[str, Any]) -> list[Found]:
    """Findings that report a fault, as opposed to something that was not examined."""
    return [found for found in report["findings"] if found["status"] != "unknown"]


@dataclass(frozen=True, slots=True)
class Ran:
    """How a run ended; `report` is None if it could not write one."""

    code: int
    report: Mapping[str, Any] | None
    errors: str
    seconds: float


def judged(
    fault: str, number: int, place: str, truth: Truth | None, ran: Ran, latency: float | None = None
) -> Outcome:
    """Compare a report with the truth; without a truth, nothing is broken."""
    if ran.report is None:
        why = f"no report: {ran.errors.strip()[-500:]}"
        return Outcome.silent(fault, number, place, ran.seconds, ran.code, why)
    found = trouble(ran.report)
    said = tuple(map(sentence, found))
    if truth is None:
        calm = not found
        return Outcome(fault, number, place, calm, calm, calm, None, ran.seconds, ran.code, said)
    mine = [f for f in found if f["check"] in truth.checks and not f["summary"].startswith(MISSED)]
    lead = [each for each in mine if each["because"] is None] or mine
    named = bool(lead) and hosts(lead) == truth.hosts and (truth.ranks is None or ranks(lead) == truth.ranks)
    alone = hosts(found) <= truth.hosts and (truth.ranks is None or ranks(found) <= truth.ranks)
    return Outcome(fault, number, place, bool(mine), named, alone, latency, ran.seconds, ran.code, said)


def hosts(found: Iterable[Found]) -> frozenset[str]:
    return frozenset(host for each in found for host in each["hosts"])


def ranks(found: Iterable[Found]) -> frozenset[int]:
    places = [place for each in found for place in each["where"]]
    return frozenset(place["rank"] for place in places if place["rank"] is not None)


def sentence(found: Found) -> str:
    where = ",".join(map(str, sorted(ranks([found]))))
    return f"{found['status']} {found['check']} {found['nodeset']} rank {where or '-'}: {found['summary']}"


def append(path: Path, outcome: Outcome) -> None:
    with path.open("a") as file:
        file.write(json.dumps(asdict(outcome)) + "\n")


def load(path: Path) -> list[Outcome]:
    """The outcomes of earlier trials, which this run continues."""
    if not path.exists():
        return []
    lines = path.read_text().splitlines()
    return [Outcome(**{**kept, "said": tuple(kept["said"])}) for kept in map(json.loads, lines)]

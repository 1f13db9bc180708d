"""A charge: what one smoke run proves, against whom, and how it is known."""

from __future__ import annotations

from dataclasses import dataclass

from doctor.model import Confidence, Evidence, Severity
from doctor.smoke.result import SmokePlan
from doctor.text.ranks import ranks_text as ranks_text

WARNINGS = ("smoke-straggler", "smoke-contention", "smoke-slow-link")
"""Checks whose charges, when they do not say otherwise, leave a host fit for a job."""


@dataclass(frozen=True, slots=True)
class Charge:
    """One fault. `ranks` are the culprits; `hosts` are the culprits when it is a host and not one of its
    ranks. With neither, no one in particular is at fault. `kind` distinguishes the faults of one check.

    The words name neither a host nor a rank that is a culprit: the report does. They may name others.
    """

    check: str
    kind: str
    summary: str
    expected: str = ""
    actual: str = ""
    ranks: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    victims: tuple[int, ...] = ()
    phase: str = ""
    step: int | None = None
    peer: str | None = None
    """The other end of a link that is at fault."""
    confidence: Confidence = Confidence.CERTAIN
    """Of a charge whose culprits are known; one that is `undecided` is a suspicion."""
    severity: Severity | None = None
    evidence: tuple[Evidence, ...] = ()
    commands: tuple[str, ...] = ()
    undecided: bool = False
    """The culprits are suspects: it was one of them, and it is not known which."""

    def culprit_hosts(self, plan: SmokePlan) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*(plan.seat(rank).host for rank in self.ranks), *self.hosts]))


def since_text(step: int, right_until: int | None) -> str:
    """Since when something is wrong that was last seen right at `right_until`."""
    if right_until is not None and right_until + 1 < step:
        return f"from a step between {right_until + 1} and {step} on"
    return f"from step {step} on"

"""A charge: what one smoke run proves, against whom, and how it is known."""

from dataclasses import dataclass

from doctor.model import Confidence, Evidence, Severity
from doctor.smoke.result import SmokePlan
from doctor.text.hostprogram import table
from doctor.text.ranks import ranks_text as ranks_text

Worded = tuple[str, str, str, str, str, str]
"""The check, the kind, the summary, what was expected, what was seen, and the phase, as charges begin."""
_CHARGES = {name: lines for name, *lines in table(__file__, "charges.txt")}
WARNINGS = ("smoke-straggler", "smoke-contention", "smoke-slow-link")
"""Checks whose charges leave a host fit for a job, unless a charge has a severity of its own."""


@dataclass(frozen=True, slots=True)
class SmokeCharge:
    """One fault. `ranks` are the culprits; `hosts` are the culprits if a host is at fault and not one of its
    ranks. With neither, no one in particular is at fault. `kind` distinguishes the faults of one check.

    The texts do not name the culprit host or rank, because the report does. They may name others.
    """

    check: str
    kind: str
    summary: str
    expected: str = ""
    actual: str = ""
    phase: str = ""
    ranks: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    victims: tuple[int, ...] = ()
    step: int | None = None
    peer: str | None = None
    """The other end of a link that is at fault."""
    confidence: Confidence = Confidence.CERTAIN
    """The confidence if the culprits are known; an `undecided` charge is a suspicion."""
    severity: Severity | None = None
    evidence: tuple[Evidence, ...] = ()
    commands: tuple[str, ...] = ()
    remedy: str | None = None
    """A remedy that fits better than that of the check, if there are no commands."""
    undecided: bool = False
    """The culprits are suspects: it was one of them, but it is unknown which."""

    @property
    def is_fault(self) -> bool:
        """Whether the charge makes a host unfit, as opposed to a warning."""
        return self.severity is Severity.FAIL or (self.severity is None and self.check not in WARNINGS)

    def culprit_hosts(self, plan: SmokePlan) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*(plan.seat(rank).host for rank in self.ranks), *self.hosts]))


def worded(name: str, /, **values: object) -> Worded:
    """The first fields of the charge of this name in charges.txt, with its values."""
    of_what, summary, expected, actual = (line.format(**values) for line in _CHARGES[name])
    check, kind, *phase = of_what.split()
    return check, kind, summary, expected, actual, "".join(phase)


def since_text(step: int, right_until: int | None) -> str:
    """Since when something is wrong, if it was last right at step `right_until`."""
    if right_until is not None and right_until + 1 < step:
        return f"from a step between {right_until + 1} and {step} on"
    return f"from step {step} on"

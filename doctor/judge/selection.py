"""What was chosen by name but applied to no host: nothing is known about it, so it is not called healthy."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from doctor.judge.engine import SEVERAL
from doctor.model import Result, Status


@dataclass(frozen=True, slots=True)
class CheckSelection:
    """The checks that a value of --only stands for; without --only, all that --skip leaves."""

    named: str
    checks: tuple[str, ...]
    """Those of them that are run."""
    why_none: str = ""
    """Why none of them is run, if that is so."""


@dataclass(frozen=True, slots=True)
class InapplicableSelection:
    """A choice that examined nothing, and what it needs."""

    named: str
    why: str
    several: bool = False
    """Whether all it needs is another host."""

    def __str__(self) -> str:
        return f"{self.named} was not examined: {self.why}"


def find_unapplied(
    choices: Iterable[CheckSelection], results: Sequence[Result]
) -> Iterator[InapplicableSelection]:
    """The choices whose checks applied to no host, in a run in which at least one host answered."""
    for choice in choices:
        own = [result for result in results if result.check in choice.checks]
        if any(result.status is not Status.SKIP for result in own):
            continue
        reasons = dict.fromkeys(result.reason or "" for result in own)
        several = {*reasons} == {SEVERAL}
        why = "it needs two hosts or more" if several else "; ".join(filter(None, reasons))
        if not choice.checks:
            why = choice.why_none
        yield InapplicableSelection(choice.named, why or "it does not apply", several)

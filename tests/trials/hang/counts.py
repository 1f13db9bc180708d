"""The table of all trials: how many were made of each kind, and what was said."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from benchmarks.table import columns
from tests.trials.outcome import Outcome
from tests.trials.table import interval

HEAD = ("kind", "made", "right", "unnamed", "accused wrongly", "at most wrong")


def counts(
    outcomes: Sequence[Outcome], order: Sequence[str], healthy: Collection[str], looks: Sequence[str] = ("",)
) -> str:
    """The last column: the share of wrong accusations that 95 % certainty leaves possible. `looks`: how the
    names end of trials that count together; the first is empty.
    """
    kinds = {each.fault: [one for one in outcomes if one.fault == each.fault] for each in outcomes}
    rows = [_row(name, kinds[name]) for name in order if name in kinds]
    for title, of_them in (("every hang", False), ("all healthy work", True)):
        for look in looks:
            alike = [each for each in outcomes if _look(each.fault, looks) == look]
            chosen = [each for each in alike if (each.fault in healthy) is of_them]
            rows += [_row(title + look, chosen)] if chosen else []
    return f"{len(outcomes)} trials were made.\n\n{columns(HEAD, rows)}"


def _row(name: str, trials: Sequence[Outcome]) -> list[str]:
    wrong = sum(not each.alone for each in trials)
    right = sum(each.right for each in trials)
    _, most = interval(wrong, len(trials))
    numbers = (len(trials), right, len(trials) - right - wrong, wrong)
    return [name, *map(str, numbers), f"{100 * most:.0f} %"]


def _look(name: str, looks: Sequence[str]) -> str:
    return next((each for each in looks if each and name.endswith(each)), "")

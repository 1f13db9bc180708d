"""`doctor list` and `doctor explain ID`: what there is, and the manual page of a check."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from doctor.api import Check
from doctor.errors import UsageError, suggest
from doctor.judge.playbook import Recipe, exams, load_exam, load_remedies
from doctor.judge.registry import FoundChecks, bundled, find_checks
from doctor.model import Scope, Severity
from doctor.text.terminal import put


def print_list(folders: Sequence[Path]) -> int:
    """Checks and exams, a line each, with where those come from that are not bundled."""
    found = find_checks(folders)
    _say("CHECKS")
    width = max(len(check.id) for check in found.checks)
    for check in found.checks:
        scope = "cluster" if check.scope is Scope.CLUSTER else "host"
        _say(f"  {check.id:<{width}}  {check.severity.value}  {scope:<7}  {check.title}{_origin(check)}")
    _say("\nEXAMS")
    for name in exams():
        _say(f"  {name:<{width}}  {load_exam(name, found.checks).title}")
    _say("\nREMEDIES")
    playbook = load_remedies()
    width = max(map(len, playbook.recipes))
    for name, recipe in playbook.recipes.items():
        _say(f"  {name:<{width}}  {recipe.title}")
    for broken in found.broken:
        _say(f"\ncould not be used: {broken.origin}: {broken.reason}")
    return 0


def _origin(check: Check) -> str:
    ours = Path(check.origin).parent == bundled("checks")
    return "" if ours else f"  [{check.origin}]"


def print_page(id: str, folders: Sequence[Path], *, verbose: bool = False) -> int:
    """The docstring is the page; the rest is what the check's declaration says. Remedies have a page too.

    `verbose` adds the file that the check is written in.
    """
    recipes = load_remedies().recipes
    if id in recipes:
        _say(f"{id}: a remedy. {_written(recipes[id])}")
        return 0
    check = _named(id, find_checks(folders))
    kind = "a fault" if check.severity is Severity.FAIL else "a warning"
    scope = "compares all hosts" if check.scope is Scope.CLUSTER else "judges each host by itself"
    _say(f"{check.id}: {kind}; {scope}.")
    if check.backends:
        _say(f"Only for jobs with {' or '.join(sorted(backend.value for backend in check.backends))}.")
    _say(f"\n{check.doc}")
    recipe = recipes.get(check.remedy or "")
    if recipe:
        _say(f"\n{_written(recipe)}")
    if check.causes:
        _say(f"\nOften a consequence of: {', '.join(check.causes)}.")
    if verbose:
        _say(f"\nWritten in {check.origin}")
    return 0


def _written(recipe: Recipe) -> str:
    return "\n  ".join((f"{recipe.title}:", *(command.replace("...}", "}") for command in recipe.commands)))


def _named(id: str, found: FoundChecks) -> Check:
    for check in found.checks:
        if check.id == id:
            return check
    known = [check.id for check in found.checks]
    raise UsageError(
        f"There is no check {id!r}. {suggest(id, known)}".strip(), "`doctor list` shows them all."
    )


def _say(text: str) -> None:
    put(text + "\n", sys.stdout)

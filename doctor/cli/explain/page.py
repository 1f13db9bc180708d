"""`doctor explain ID`: the manual page of a check or a remedy, in the width of the terminal."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from doctor.cli.catalogue import BOLD, PAGE, CatalogueRow, in_rows, of_check
from doctor.cli.pages import page, translation
from doctor.devices import VENDORS
from doctor.errors import UsageError
from doctor.judge.playbook import Recipe, by_part, exams, load_remedies, no_such
from doctor.judge.registry import find_checks
from doctor.model import Scope, Severity
from doctor.text.language import Language, in_language
from doctor.text.printable import clean, clean_line
from doctor.text.speech import spoken, spoken_command, t
from doctor.text.terminal import AUTO, coloured, put, styled, width
from doctor.text.wrap import unwrap, wrap

if TYPE_CHECKING:
    from doctor.api import Check

WIDEST = 100
"""The most columns of prose: longer lines are hard to read."""
HEADING = re.compile(r"(?:([A-Z][^.:`]{2,50}):\s|([^。：\s]{2,20})：)")
"""The heading at the beginning of a paragraph: "Why it matters: "."""
COMMAND, COMMENT, PLACEHOLDER = "32", "2", re.compile(r"\{(\w+)(?:\.\.\.)?\}")


class TextPage:
    """Lays out text in a terminal, and makes it harmless. `verbose` adds the file in which it is written."""

    def __init__(self, folders: Sequence[Path] = (), colours: str = AUTO, *, verbose: bool = False) -> None:
        self.folders, self.verbose = folders, verbose
        self.colour = coloured(sys.stdout, colours)
        self.columns = min(width(sys.stdout, PAGE), WIDEST)

    def put(self, *text: str) -> None:
        put("".join(text), sys.stdout, drawn=True)

    def put_rows(self, head: str, rows: Sequence[CatalogueRow]) -> None:
        self.put(f"{t(head)}\n", in_rows(rows, self.colour))

    def strong(self, text: str, style: str = BOLD) -> str:
        return styled(clean_line(text), style, self.colour)

    def head(self, id: str, what: str) -> str:
        """The first line of a page."""
        return self.prose(t(f"{id}: {what}.")).replace(id, self.strong(id), 1)

    def origin(self, file: str) -> Iterator[str]:
        if self.verbose:
            yield f"\n{t(f'Written in {clean_line(file)}')}\n"

    def paragraph(self, text: str) -> str:
        """A paragraph with its heading on a separate line; lists and indented text keep their lines."""
        if re.search(r"^(?:\s|[-*] )", text, re.MULTILINE):
            return f"\n{clean(text)}\n"
        found = HEADING.match(text)
        if not found:
            return f"\n{self.prose(text)}"
        body = text[found.end() :]
        if body.partition(" ")[0].rstrip(",;").isalpha():
            body = body[:1].upper() + body[1:]
        return f"\n{self.strong(found[1] or found[2])}\n{self.prose(body, '  ')}"

    def heading(self, text: str) -> str:
        return f"\n{self.strong(t(text))}\n"

    def title(self, text: str) -> str:
        return "\n" + "".join(f"{self.strong(line)}\n" for line in wrap(unwrap(text), self.columns))

    def command(self, text: str) -> str:
        """A command, never wrapped, so that it can be copied. {size}, filled in by a report, is SIZE here."""
        shown = PLACEHOLDER.sub(lambda hole: hole[1].upper(), text)
        return f"  {self.strong(shown, COMMENT if text.startswith('#') else COMMAND)}\n"

    def prose(self, text: str, indent: str = "", hanging: str = "") -> str:
        """Wrapped text; `hanging` is put before all lines but the first."""
        lines = wrap(unwrap(clean(text)), max(self.columns - len(indent) - len(hanging), 1))
        return "".join(f"{indent}{hanging if number else ''}{line}\n" for number, line in enumerate(lines))


def print_page(id: str, paper: TextPage) -> int:
    """Prints the page of `id`, or of the only name that contains it; if several do, their names."""
    checks = {check.id: check for check in find_checks(paper.folders).checks}
    recipes = load_remedies().recipes
    found = [id] if id in checks or id in recipes else by_part(id, checks) or by_part(id, recipes)
    if not found and id in exams():
        raise UsageError(f"{id!r} is an exam, not a check.", f"`doctor check --exam {id}` runs it.")
    if not found:
        raise UsageError(no_such("check", id, checks), "`doctor list` shows them all.")
    first = found[0]
    if len(found) > 1:
        rows = [of_check(checks[n]) if n in checks else (n, "", _title(recipes[n])) for n in found]
        paper.put_rows(f"{len(found)} have {clean_line(repr(id))} in their name:", rows)
    elif first in checks:
        paper.put(*_of_check(checks[first], recipes.get(checks[first].remedy or ""), paper))
    else:
        paper.put(f"{paper.strong(t(f'{first}: a remedy.'))}\n", *_of_remedy(recipes[first], paper))
    return 0


def _of_check(check: Check, recipe: Recipe | None, paper: TextPage) -> Iterator[str]:
    """The page of a check: its docstring, and what its declaration says."""
    kind = "a fault" if check.severity is Severity.FAIL else "a warning"
    scope = "compares all hosts" if check.scope is Scope.CLUSTER else "judges each host by itself"
    yield paper.head(check.id, f"{kind}; {scope}")
    if check.backends:
        names = " or ".join(sorted(backend.value for backend in check.backends))
        yield paper.prose(t(f"Only for jobs with {names}."))
    if spoken() is not Language.EN and not translation(check):
        yield paper.prose(t("There is no Chinese text yet; the English one follows."))
    subject, *paragraphs = page(check).split("\n\n")
    yield paper.title(subject)
    yield from map(paper.paragraph, paragraphs)
    if recipe:
        yield "\n"
        yield from _of_remedy(recipe, paper)
    if check.causes:
        yield paper.paragraph(t(f"Often a consequence of: {', '.join(check.causes)}."))
    yield from paper.origin(check.origin)


def _of_remedy(recipe: Recipe, paper: TextPage) -> Iterator[str]:
    yield f"{paper.strong(_title(recipe))}\n"
    yield from map(paper.command, map(spoken_command, recipe.on([vendor.name for vendor in VENDORS])))


def _title(recipe: Recipe) -> str:
    return in_language(spoken(), recipe.title, recipe.zh)

"""`doctor list`: checks by area, exams, remedies and symptoms, one line each; and the schema."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from doctor.cli.pages import translation
from doctor.judge.playbook import exams, load_exam, load_remedies
from doctor.judge.registry import BrokenSource, bundled, find_checks
from doctor.logs.symptoms.load import load_symptoms
from doctor.report.page.areas import AREAS, OTHER, area_of
from doctor.text.grouped import grouped
from doctor.text.language import Language
from doctor.text.printable import clean_line
from doctor.text.speech import spoken, t
from doctor.text.terminal import AUTO, coloured, put, styled, width
from doctor.text.wrap import cells, unwrap, wrap

if TYPE_CHECKING:
    from doctor.api import Check

PAGE = 80
"""The columns without a terminal."""
NARROW = 24
"""If there are fewer columns for a title, it goes below its name."""
CHECKS = "CHECKS: "
OTHERS = f"{CHECKS}{OTHER}"
WHOLE = 10_000
"""The columns of a list without a terminal."""
BOLD, COLOURS = "1", {"fail": "31", "warn": "33"}
CatalogueRow = tuple[str, str, str]
"""A name, "fail" or "warn" for a check, and a title."""


def print_list(folders: Sequence[Path], colours: str = AUTO) -> int:
    """Prints checks and exams, and how to list the rest; checks that are not bundled come with their file."""
    found = find_checks(folders)
    areas: dict[str, list[CatalogueRow]] = {area: [] for area in (*AREAS, OTHER)}
    for check in found.checks:
        areas[area_of(check.id) if is_ours(check) else OTHER].append(of_check(check))
    parts = {f"{CHECKS}{area}": rows for area, rows in areas.items() if rows}
    parts["EXAMS (--exam NAME)"] = [(name, "", t(load_exam(name, found.checks).title)) for name in exams()]
    parts["MORE"] = [
        ("doctor list remedies", "", t(f"{len(load_remedies().recipes)} remedies")),
        ("doctor list symptoms", "", t(f"{len(load_symptoms().symptoms)} known log messages")),
        ("doctor explain NAME", "", t("the page of one of them")),
    ]
    _put(parts, colours, found.broken)
    return 0


def print_remedies(colours: str = AUTO) -> int:
    rows = [(name, "", t(recipe.title)) for name, recipe in load_remedies().recipes.items()]
    _put({"REMEDIES": rows}, colours, ())
    return 0


def print_symptoms(folders: Sequence[Path], colours: str = AUTO) -> int:
    """Prints every symptom, grouped by file."""
    found = load_symptoms(folders)
    rows = ((each.family.upper(), (each.id, "", t(each.title))) for each in found.symptoms)
    _put(grouped(rows), colours, found.broken)
    return 0


def print_schema() -> int:
    """Prints the JSON Schema of every report that --json writes."""
    from doctor.diff.envelope import DiffReport
    from doctor.hang.envelope import HangReport
    from doctor.history.envelope import HistoryReport
    from doctor.logs.envelope import LogsReport
    from doctor.report.files.json import CheckReport
    from doctor.report.files.schema import schema_of
    from doctor.run.envelope import RunReport
    from doctor.slow.envelope import SlowReport

    kinds = (CheckReport, LogsReport, HangReport, SlowReport, RunReport, DiffReport, HistoryReport)
    put(f"{json.dumps(schema_of(*kinds), indent=1)}\n", sys.stdout)
    return 0


def _put(parts: Mapping[str, Sequence[CatalogueRow]], colours: str, broken: Iterable[BrokenSource]) -> None:
    colour = coloured(sys.stdout, colours)
    written = {OTHERS: in_rows}  # the path of a file is never cut
    shown = [
        f"{styled(t(heading), BOLD, colour)}\n{written.get(heading, _in_lines)(rows, colour)}"
        for heading, rows in parts.items()
    ]
    shown += [t(f"could not be used: {clean_line(f'{each.origin}: {each.reason}')}\n") for each in broken]
    put("\n".join(shown), sys.stdout, drawn=True)


def _in_lines(rows: Sequence[CatalogueRow], colour: bool) -> str:
    """One line for each row. A terminal cuts a title that is too long; a pipe or a file gets all of it."""
    wide, columns = max(len(name) for name, _, _ in rows), width(sys.stdout, WHOLE)
    return "".join(f"{_line(row, wide, columns, colour)}\n" for row in rows)


def _line(row: CatalogueRow, wide: int, columns: int, colour: bool) -> str:
    name, kind, title = map(clean_line, row)
    room = columns - wide - 4 - (cells(_said(kind)) + 2 if kind else 0)
    if room < NARROW:
        return f"  {name}"
    marked = f"{styled(_said(kind), COLOURS.get(kind, '0'), colour)}  " if kind else ""
    return f"  {name:<{wide}}  {marked}{_cut(title, room)}"


def _said(kind: str) -> str:
    """The word of a report for what a check finds."""
    return kind if spoken() is Language.EN else t(kind.upper())


def _cut(title: str, room: int) -> str:
    if cells(title) <= room:
        return title
    while cells(title) >= room:
        title = title[:-1]
    return f"{title}…"


def in_rows(rows: Sequence[CatalogueRow], colour: bool) -> str:
    wide = max(len(name) for name, _, _ in rows)
    return "".join(f"{line}\n" for row in rows for line in _lines(row, wide, colour))


def _lines(row: CatalogueRow, wide: int, colour: bool) -> Iterator[str]:
    name, kind, title = map(clean_line, row)
    said = _said(kind)
    head = f"  {name:<{wide}}  {said}{'  ' if kind else ''}"
    columns = width(sys.stdout, PAGE)
    beside = columns - cells(head) >= NARROW
    indent = cells(head) if beside else 6
    first, *more = wrap(title, max(columns - indent, 1))
    painted = head.replace(f"  {said}  ", f"  {styled(said, COLOURS.get(kind, '0'), colour)}  ")
    yield f"{painted}{first}" if beside else painted.rstrip()
    yield from (" " * indent + line for line in (more if beside else (first, *more)))


def is_ours(check: Check) -> bool:
    return Path(check.origin).parent == bundled("checks")


def of_check(check: Check) -> CatalogueRow:
    title = check.title
    if spoken() is Language.ZH and (page := translation(check)):
        title = unwrap(page.partition("\n\n")[0]).rstrip("。")
    title = title if is_ours(check) else f"{title}  [{check.origin}]"
    return check.id, check.severity.value, title

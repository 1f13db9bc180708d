"""`doctor list`: checks, exams, remedies and symptoms, in the width of the terminal; and the schema."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

from doctor.judge.playbook import exams, load_exam, load_remedies
from doctor.judge.registry import BrokenSource, bundled, find_checks
from doctor.logs.model import Symptom
from doctor.logs.symptoms.load import load_symptoms
from doctor.text.printable import clean_line
from doctor.text.terminal import AUTO, coloured, put, styled, width

if TYPE_CHECKING:
    from doctor.api import Check

PAGE = 80
"""The columns without a terminal."""
NARROW = 24
"""If there are fewer columns for a title, it goes below its name."""
SUCH_AS = 2
"""The number of symptoms that are shown as examples of their family."""
SHORT = 20
"""The most characters of such an example, so that it fits a narrow terminal."""
BOLD, COLOURS = "1", {"fail": "31", "warn": "33"}
Row = tuple[str, str, str]
"""A name, "fail" or "warn" for a check, and a title."""


def print_list(folders: Sequence[Path], colours: str = AUTO) -> int:
    """Prints everything; checks that are not bundled are shown with their file."""
    found = find_checks(folders)
    parts: dict[str, list[Row]] = {
        "CHECKS": [of_check(check) for check in found.checks],
        "EXAMS": [(name, "", load_exam(name, found.checks).title) for name in exams()],
        "REMEDIES": [(name, "", recipe.title) for name, recipe in load_remedies().recipes.items()],
    }
    symptoms = load_symptoms().symptoms
    parts[f"SYMPTOMS ({len(symptoms)}; doctor list symptoms)"] = _families(symptoms)
    _put(parts, colours, found.broken)
    return 0


def print_symptoms(folders: Sequence[Path], colours: str = AUTO) -> int:
    """Prints every symptom, grouped by file."""
    found = load_symptoms(folders)
    parts: dict[str, list[Row]] = {}
    for each in found.symptoms:
        parts.setdefault(each.family.upper(), []).append((each.id, "", each.title))
    _put(parts, colours, found.broken)
    return 0


def print_schema() -> int:
    """Prints the JSON Schema of every report that --json writes."""
    from doctor.hang.envelope import HangReport
    from doctor.logs.envelope import LogsReport
    from doctor.report.json import CheckReport
    from doctor.report.schema import schema_of
    from doctor.slow.envelope import SlowReport

    put(f"{json.dumps(schema_of(CheckReport, LogsReport, HangReport, SlowReport), indent=1)}\n", sys.stdout)
    return 0


def _families(symptoms: Iterable[Symptom]) -> list[Row]:
    families: dict[str, list[str]] = {}
    for each in symptoms:
        families.setdefault(each.family, []).append(each.id)
    return [(name, "", _such(ids)) for name, ids in families.items()]


def _such(ids: Sequence[str]) -> str:
    few = [id for id in ids if len(id) <= SHORT][:SUCH_AS]
    return f"{len(ids)}, such as {', '.join(few)}" if few else str(len(ids))


def _put(parts: Mapping[str, Sequence[Row]], colours: str, broken: Iterable[BrokenSource]) -> None:
    colour = coloured(sys.stdout, colours)
    shown = [f"{styled(heading, BOLD, colour)}\n{in_rows(rows, colour)}" for heading, rows in parts.items()]
    shown += [f"could not be used: {clean_line(f'{each.origin}: {each.reason}')}\n" for each in broken]
    put("\n".join(shown), sys.stdout, drawn=True)


def in_rows(rows: Sequence[Row], colour: bool) -> str:
    wide = max(len(name) for name, _, _ in rows)
    return "".join(f"{line}\n" for row in rows for line in _lines(row, wide, colour))


def _lines(row: Row, wide: int, colour: bool) -> Iterator[str]:
    name, kind, title = map(clean_line, row)
    head = f"  {name:<{wide}}  {kind}{'  ' if kind else ''}"
    columns = width(sys.stdout, PAGE)
    beside = columns - len(head) >= NARROW
    room = columns - (len(head) if beside else 6)
    first, *more = wrap(title, max(room, 1), break_long_words=False, break_on_hyphens=False) or [""]
    painted = head.replace(f"  {kind}  ", f"  {styled(kind, COLOURS.get(kind, '0'), colour)}  ")
    yield f"{painted}{first}" if beside else painted.rstrip()
    yield from (" " * (len(head) if beside else 6) + line for line in (more if beside else (first, *more)))


def of_check(check: Check) -> Row:
    ours = Path(check.origin).parent == bundled("checks")
    return check.id, check.severity.value, check.title if ours else f"{check.title}  [{check.origin}]"

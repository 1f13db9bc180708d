"""The facts of all hosts as JSON, and as CSV that a spreadsheet cannot take for formulas."""

import csv
import io
from typing import Any

import msgspec

from doctor import __version__
from doctor.judge.fact_table import FactRow, facts_of_host
from doctor.judge.verdict import Report
from doctor.report.page.areas import AREAS
from doctor.report.page.card import CardKind, Page, Table
from doctor.report.page.fact_words import spread
from doctor.report.terminal.facts import conclusion, differs, heard, standing_out
from doctor.text.nodeset import fold
from doctor.text.printable import clean_line, escaped

SCHEMA = 1
_FORMULA = tuple("=+-@\t\r＝＋－＠")
"""A spreadsheet takes a text that begins with one of these for a formula."""


def facts_json(report: Report) -> bytes:
    """The report with the facts; it has no verdict, because facts are not judged."""
    silent = report.silent
    data = {
        "schema": SCHEMA,
        "tool": {"name": "cluster-doctor", "version": __version__},
        "run": {"started": report.run.started, "transport": report.run.transport},
        "facts": [{"key": row.key, "title": row.title, "area": row.area} for row in report.seen.facts],
        "hosts": [
            {
                "name": host.name,
                "address": host.address,
                "reason": silent.get(host.name),
                "facts": facts_of_host(report.seen.facts, host.name),
                "odd": _odd(report, host.name),
            }
            for host in report.hosts
        ],
    }
    return escaped(msgspec.json.format(msgspec.json.encode(data).decode(), indent=1)).encode() + b"\n"


def facts_csv(report: Report) -> bytes:
    """One line per host. The cell of a fact that the host did not report is empty."""
    silent = report.silent
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(["host", "address", *(row.key for row in report.seen.facts), "odd", "reason"])
    for host in report.hosts:
        values = (_value_or_words(row, host.name) for row in report.seen.facts)
        odd = _odd(report, host.name)
        cells = (host.name, host.address, *values, odd, silent.get(host.name, ""))
        table.writerow([_cell(value) for value in cells])
    return out.getvalue().encode()


def _value_or_words(row: FactRow, host: str) -> Any:
    value = row.values.get(host)
    return row.shown.get(host, "") if value in (None, "") else value


def _odd(report: Report, host: str) -> list[str]:
    return [row.key for row in report.seen.facts if host in row.odd]


def _cell(value: Any) -> str | int | float:
    if isinstance(value, int | float):
        return value
    text = "; ".join(map(str, value)) if isinstance(value, list) else str(value)
    text = clean_line(text)
    return f"'{text}" if text.lstrip().startswith(_FORMULA) or text.startswith(_FORMULA) else text


def facts_html(report: Report) -> bytes:
    from doctor.report.html.facts import facts_section
    from doctor.report.html.page import as_html

    return as_html(_page(report), [("facts", "Facts", facts_section(report))])


def facts_markdown(report: Report) -> bytes:
    from doctor.report.markdown.page import as_markdown

    return as_markdown(_page(report))


def _page(report: Report) -> Page:
    told, stands_out = heard(report), standing_out(report)
    said = [line.removeprefix("! ") for line in conclusion(report)] or ["One host reported its facts."]
    return Page(
        "facts",
        report.run.started,
        "Incomplete" if report.silent else "Facts",
        CardKind.WARN if stands_out else CardKind.GOOD,
        said[0],
        " ".join(said),
        ((f"{len(told)} of {len(report.hosts)} hosts reported {len(report.seen.facts)} facts", ""),),
        parts=tuple(_tables(report, told)),
    )


def _tables(report: Report, told: list[str]) -> list[Table]:
    """One table for each area: a fact, and its value, or each value with its hosts."""
    return [
        Table(area.capitalize(), ("fact", "value"), rows)
        for area in AREAS
        if (rows := tuple((row.title, _cells(row, told)) for row in report.seen.facts if row.area == area))
    ]


def _cells(row: FactRow, told: list[str]) -> str:
    if not differs(row, told):
        return clean_line(spread(row, told))
    groups: dict[str, list[str]] = {}
    for host in told:
        groups.setdefault(row.shown.get(host, "not reported"), []).append(host)
    return "; ".join(
        f"{'! ' if row.odd & {*hosts} else ''}{value} ({fold(hosts)})" for value, hosts in groups.items()
    )

"""The facts of all hosts as a page, for HTML and Markdown."""

from __future__ import annotations

from doctor.judge.fact_table import FactRow
from doctor.judge.verdict import Report
from doctor.report.areas import AREAS
from doctor.report.card import CardKind, Page, Table
from doctor.report.fact_words import spread
from doctor.report.facts_text import conclusion, differs, heard, standing_out
from doctor.report.html.facts import facts_section
from doctor.report.html.page import as_html
from doctor.report.markdown_page import as_markdown
from doctor.text.nodeset import fold
from doctor.text.printable import clean_line


def facts_html(report: Report) -> bytes:
    return as_html(_page(report), [("facts", "Facts", facts_section(report))])


def facts_markdown(report: Report) -> bytes:
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
        if (rows := tuple((row.title, _values(row, told)) for row in report.seen.facts if row.area == area))
    ]


def _values(row: FactRow, told: list[str]) -> str:
    if not differs(row, told):
        return clean_line(spread(row, told))
    groups: dict[str, list[str]] = {}
    for host in told:
        groups.setdefault(row.shown.get(host, "not reported"), []).append(host)
    return "; ".join(
        f"{'! ' if row.odd & {*hosts} else ''}{value} ({fold(hosts)})" for value, hosts in groups.items()
    )

"""The table of hosts by area, with equal rows joined; and what was measured."""

from __future__ import annotations

from doctor.judge.verdict import Report
from doctor.report.areas import AREAS, OTHER
from doctor.report.host_rows import NOT_READ, NOTHING, OK, PART_READ, UNDECIDED, HostRow, host_rows
from doctor.report.html.markup import NOTHING as EMPTY
from doctor.report.html.markup import Html, listed, section, table, tag
from doctor.report.measurements import Measurement, measured
from doctor.text.speech import t_list

_SIGNS = {OK: ("✓ ok", "good"), NOTHING: ("–", "soft")}
_OPEN = (NOT_READ, PART_READ, UNDECIDED)


def hosts_section(report: Report) -> Html:
    rows = host_rows(report)
    if not rows:
        return EMPTY
    areas = [area for area in (*AREAS, OTHER) if any(area in row.cells for row in rows)]
    said = "✓ examined and healthy, ✗ faulty, ! warning, ? not fully examined, – does not apply."
    by_area = table(
        "Hosts by area",
        ("hosts", "verdict", *areas),
        [_row(row, areas, report) for row in rows],
        kind="areas",
    )
    return section("hosts", "Hosts", tag("p", said, class_="soft"), by_area)


def _row(row: HostRow, areas: list[str], report: Report) -> Html:
    cells = (_cell(row.cells.get(area, NOTHING)) for area in areas)
    words = {OK: "good", "FAIL": "fail", "HANG": "fail", "BROKEN": "fail", "WARN": "warn"}
    verdict = tag(
        "td", " ".join(row.verdict.split()), class_=words.get(row.verdict.partition(" ")[0], "open")
    )
    return tag(
        "tr", tag("th", listed(row.hosts, report.called), scope="row", class_="names"), verdict, *cells
    )


def _cell(said: str) -> Html:
    if said in _OPEN:
        return tag("td", f"? {said}", class_="open")
    sign, kind = _SIGNS.get(said, (f"! {said}", "warn") if "warning" in said else (f"✗ {said}", "fail"))
    return tag("td", sign, class_=kind)


def measured_section(report: Report) -> Html:
    seen = measured(report)
    lines = [_line("✓", "good", each) for each in seen.ticked]
    lines += [_line("?", "open", each) for each in seen.doubtful]
    lines += [_line("–", "soft", each) for each in seen.untried] if lines else []
    return section("measured", "Measured", tag("ul", *lines, class_="ticks") if lines else EMPTY)


def _line(sign: str, kind: str, each: Measurement) -> Html:
    return tag("li", tag("span", sign, class_=kind), tag("strong", each.area), tag("span", t_list(each.text)))

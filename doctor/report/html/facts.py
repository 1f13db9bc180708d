"""The facts of the hosts: one row per fact, equal values together, outliers marked."""

from collections.abc import Sequence

from doctor.judge.fact_table import FactRow
from doctor.judge.verdict import Report
from doctor.report.html.markup import NOTHING, Html, folded, join, listed, section, table, tag, text

MOST_VALUES = 5
"""If a fact has more different values, they are folded."""


def facts_section(report: Report) -> Html:
    hosts = len(report.hosts)
    areas: dict[str, list[FactRow]] = {}
    for row in report.seen.facts:
        areas.setdefault(row.area, []).append(row)
    if not areas:
        return NOTHING
    odd = sum(bool(row.odd) for row in report.seen.facts)
    said = f"{odd} of {len(report.seen.facts)} facts differ between hosts where they should not: marked ◆."
    alike = "No host differs from the others where it should not."
    tables = (_table(area, rows, hosts) for area, rows in areas.items())
    return section(
        "facts", "Facts", tag("p", said if odd else alike, class_="soft"), tag("div", *tables, class_="side")
    )


def _table(area: str, rows: Sequence[FactRow], hosts: int) -> Html:
    shown = [tag("tr", tag("th", row.title, scope="row"), tag("td", _values(row, hosts))) for row in rows]
    return table(area[:1].upper() + area[1:], ("fact", "value"), shown, kind="facts")


def _values(row: FactRow, hosts: int) -> Html:
    """The values of a fact: outliers first, one per line."""
    groups: dict[str, list[str]] = {}
    for host, value in row.shown.items():
        groups.setdefault(value, []).append(host)
    odd = [(value, names) for value, names in groups.items() if row.odd & set(names)]
    usual = [(value, names) for value, names in groups.items() if not row.odd & set(names)]
    if len(groups) == 1 and len(row.shown) == hosts:
        return text(usual[0][0])
    marked = [tag("div", tag("span", f"◆ {value}", class_="fail"), _where(names)) for value, names in odd]
    plain = [
        tag("span", value, _where(names) if names != [value] else NOTHING, class_="value")
        for value, names in usual
    ]
    if len(marked) > MOST_VALUES:
        marked = [folded(f"◆ {len(marked)} values that differ", *marked)]
    if len(plain) > MOST_VALUES:
        plain = [folded(f"{len(plain)} values", join(plain, " "))]
    return join((*marked, join(plain, " ")))


def _where(names: Sequence[str]) -> Html:
    return tag("span", " ", listed(names), class_="soft")

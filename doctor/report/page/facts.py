"""The facts of the hosts: a short text for the values of each, what stands out, and a table for each area."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from doctor.judge.fact_table import FactRow, far_apart
from doctor.judge.verdict import Report
from doctor.report.page.areas import AREAS
from doctor.report.page.card import CardKind, Medium, Page, Section, Table, Words
from doctor.text.grouped import grouped
from doctor.text.nodeset import fold

MOST = 3
"""If there are more different values than this, only their number is shown."""
ODD = "!"
"""The mark of an outlier, visible without colours too."""
_UNIT = re.compile(r"(\S+)( \D+)")


def spread(row: FactRow, hosts: Collection[str]) -> str:
    """The value that the hosts share, "11.6-11.8 GB" if numbers differ, else the values; empty if no host
    reported one.
    """
    told = {host: row.values[host] for host in hosts if host in row.values}
    shown = Counter(row.shown[host] for host in told)
    if len(shown) < 2:
        return next(iter(shown), "")
    if all(isinstance(value, int | float) for value in told.values()) and " of " not in next(iter(shown)):
        least, most = min(told, key=lambda host: told[host]), max(told, key=lambda host: told[host])
        return _range(row.shown[least], row.shown[most])
    named = [text for text, _ in shown.most_common(MOST)]
    return " and ".join(named) if len(shown) <= MOST else f"{len(shown)} different"


def _range(least: str, most: str) -> str:
    low, high = _UNIT.fullmatch(least), _UNIT.fullmatch(most)
    signed = any(text[:1] in "+-" for text in (least, most))
    if low and high and low[2] == high[2]:
        return f"{low[1]}{' to ' if signed else '-'}{most}"
    return f"{least} to {most}" if signed or low or high else f"{least}-{most}"


def heard(report: Report) -> list[str]:
    """The hosts that reported something."""
    return [host.name for host in report.hosts if host.name not in report.silent]


def standing_out(report: Report) -> bool:
    """Whether a host differs from the others, or did not report everything."""
    odd = any(row.odd for row in report.seen.facts)
    return bool(report.silent or report.findings or _is_partial(report) or odd)


def _is_partial(report: Report) -> bool:
    """Whether a host that answered did not report everything."""
    return bool(report.seen.unread) or any(each.check == "probe-incomplete" for each in report.findings)


def differs(row: FactRow, hosts: Sequence[str]) -> bool:
    """Whether it belongs in the table: some hosts reported an unexpected value, or none."""
    if len(row.values) < len(hosts):
        return True
    unlike = far_apart(row) if row.kind == "near" else len(set(row.shown.values())) > 1
    return row.kind != "own" and (bool(row.odd) or unlike)


def conclusion(report: Report, differing: Collection[FactRow]) -> Iterator[Words]:
    """What the facts come to, and the hosts that need attention."""
    told = heard(report)
    by_fact = grouped(
        (tuple(row.title for row in report.seen.facts if host in row.odd), host) for host in told
    )
    named = [f"{fold(hosts)} ({', '.join(titles)})" for titles, hosts in by_fact.items() if titles]
    if named:
        yield Words(f"{ODD} Unlike the others: {'; '.join(named)}.", CardKind.FAIL)
    elif differing:
        yield Words("The hosts differ, and none is the odd one out.")
    elif len(told) > 1:
        partly = _is_partial(report)
        whole = "The hosts are alike in what they reported." if partly else "All hosts are alike."
        yield Words("All hosts that answered are alike." if report.silent and not partly else whole)
    yield from (Words(said, CardKind.FAIL) for said in report.seen.unread)
    for reason, hosts in grouped((reason, host) for host, reason in report.silent.items()).items():
        yield Words(f"{ODD} {fold(hosts)} reported nothing: {reason}", CardKind.FAIL)
    for finding in report.findings:
        if finding.check == "probe-incomplete" and finding.hosts:
            said = f"{ODD} {finding.nodeset} did not report everything: {finding.summary}"
            yield Words(said, CardKind.FAIL)


def facts_page(report: Report, on: Medium) -> Page:
    told = heard(report)
    differing = [row for row in report.seen.facts if differs(row, told)]
    said = [line.text.removeprefix(f"{ODD} ") for line in conclusion(report, differing)]
    said = said or ["One host reported its facts."]
    return Page(
        "facts",
        report.run.started,
        "Incomplete" if report.silent else "Facts",
        CardKind.WARN if standing_out(report) else CardKind.GOOD,
        said[0],
        " ".join(said),
        about=((f"{len(told)} of {len(report.hosts)} hosts reported {len(report.seen.facts)} facts", ""),),
        parts=(Section("Facts", parts=tuple(fact_tables(report, whole=on is Medium.HTML))),),
    )


def fact_tables(report: Report, *, whole: bool) -> Iterator[Table]:
    """One table for each area: a fact, and its value, or each value with its hosts. `whole`: also the values
    that each host has of its own.
    """
    told = heard(report)
    for area in AREAS:
        rows = [(row.title, _values(row, told, whole)) for row in report.seen.facts if row.area == area]
        if rows:
            yield Table(area.capitalize(), ("fact", "value"), tuple(rows))


def _values(row: FactRow, told: Sequence[str], whole: bool) -> Words:
    """The value, or each with its hosts, the outliers first."""
    groups = grouped((row.shown.get(host, "not reported"), host) for host in told)
    if len(groups) < 2 or not (whole or differs(row, told)):
        return Words(spread(row, told))
    outliers = sorted(groups.items(), key=lambda group: not row.odd & {*group[1]})
    said = (f"{f'{ODD} ' * bool(row.odd & {*hosts})}{value} ({fold(hosts)})" for value, hosts in outliers)
    return Words("; ".join(said), CardKind.FAIL if row.odd else None)

"""The report as Markdown, for GitHub, GitLab and chats: verdict and culprits, hosts, findings, tickets.

It fits into one comment of GitHub, whatever hosts said and however many there are: what does not fit is
counted and left to the other formats.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from doctor import __version__
from doctor.judge.verdict import Report
from doctor.model import Finding, Status
from doctor.report.details import commands, details, evidence
from doctor.report.headline import culprit, last_line, title, word
from doctor.report.host_rows import OK, host_rows
from doctor.report.markdown_text import block, cell, code, folded, inline, row, table
from doctor.report.measured import measured
from doctor.report.ticket import tickets
from doctor.report.when import started
from doctor.text.nodeset import fold

MOST = 60_000
"""Characters; GitHub takes 65536 in a comment."""
_MISSING = re.compile(r"^[\w-]+: ")
"""The fact that an unknown result begins with."""
_SHOWN = (Status.FAIL, Status.CRASH, Status.WARN)


def as_markdown(report: Report) -> bytes:
    shown = [finding for finding in report.findings if finding.status in _SHOWN]
    page = f"## {_headline(report)}\n\n{_about(report)}\n\n"
    if shown:
        page += _fit((f"- {_line(finding)}\n" for finding in shown), _room(page, 0.2), "finding") + "\n"
    page += "### Hosts\n\n" + _hosts(report, _room(page, 0.2))
    if shown:
        blocks = (_finding(finding, report) for finding in shown)
        page += "\n### Findings\n" + _fit(blocks, _room(page, 0.6), "finding")
    if well := _well(report):
        page += f"\n### Measured\n\n{well}"
    if rows := list(_unexamined(report)):
        page += "\n### Not examined\n\n"
        page += _fit(
            (f"- **{inline(what)}**: {inline(why)}\n" for what, why in rows), _room(page, 0.3), "row"
        )
    if made := dict(tickets(report)):
        page += "\n### Tickets\n\n" + _fit(made.values(), _room(page, 1), "ticket")
    return page.encode()


def _room(page: str, share: float) -> int:
    return int((MOST - len(page)) * share)


def _fit(blocks: Iterable[str], room: int, what: str) -> str:
    """As many as there is room for, the first ones before others; how many are left out is said."""
    kept, left = [], 0
    for text in blocks:
        if len(text) <= room:
            kept.append(text)
            room -= len(text)
        else:
            left += 1
    more = f"\n{left} more {what}{'s' if left > 1 else ''} did not fit here: see `--json`.\n" if left else ""
    return "".join(kept) + more


def _headline(report: Report) -> str:
    return f"cluster-doctor: {inline(last_line(report))}"


def _about(report: Report) -> str:
    hosts = f"{code(fold(report.plan.names)[:400])}, " if report.plan.names else ""
    run = report.run
    return (
        f"Hosts {hosts}{report.plan.ranks} ranks, backend {inline(report.plan.backend.value.value)}."
        f" Exit code {report.exit_code}. {inline(run.command)} began {inline(started(report))}"
        f" and took {run.seconds:.1f} s (cluster-doctor {__version__})."
    )


def _line(finding: Finding) -> str:
    return (
        f"**{word(finding)}** **{inline(culprit(finding))}** {inline(title(finding))} ({code(finding.check)})"
    )


def _hosts(report: Report, room: int) -> str:
    """Those that are alike in one row, by the areas of the checks, the sick ones first."""
    alike = sorted(host_rows(report), key=lambda each: each.verdict == OK)
    areas = tuple(alike[0].cells) if alike else ()
    rows = (
        row((cell(fold(each.hosts)), *(cell(each.cells[area]) for area in areas), cell(each.verdict)))
        for each in alike
    )
    return table(("Host", *areas, "Verdict"), ()) + _fit(rows, room, "row")


def _well(report: Report) -> str:
    """What was measured and found well, and what was not tried."""
    ticked, left = measured(report)
    lines = [f"- \u2713 **{line.area}**: {inline(line.text)}\n" for line in ticked]
    return "".join([*lines, *(f"- not tried: **{line.area}**: {inline(line.text)}\n" for line in left)])


def _finding(finding: Finding, report: Report) -> str:
    text = f"\n#### {word(finding)} {inline(culprit(finding))}: {inline(title(finding))}\n\n"
    text += "".join(f"- {label}: {inline(said)}\n" for label, said in details(finding, report))
    text += f"- more: {code(f'doctor explain {finding.check}')}\n"
    if typed := commands(finding):
        text += "\n" + block("\n".join(typed), "sh")
    where, seen = evidence(finding, report)
    if seen:
        inside = block("\n".join(f"{each.source}: {each.text}" for each in seen), "text")
        text += "\n" + folded("Evidence from" if where else "Evidence", where, inside)
    return text


def _unexamined(report: Report) -> Iterator[tuple[str, str]]:
    """What was not looked at is not healthy: equal reasons in one row."""
    if report.outstanding:
        yield fold(report.outstanding), "had not answered when the run ended"
    rows: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for finding in report.findings:
        if finding.status is Status.UNKNOWN:
            rows.setdefault((re.sub(_MISSING, "", finding.summary), finding.hosts), []).append(finding.check)
    for (reason, hosts), checks in rows.items():
        where = "" if len(hosts) in (0, len(report.hosts)) else f" on {fold(hosts)}"
        yield ", ".join(dict.fromkeys(checks)) + where, reason
    untrained: dict[str, list[str]] = {}
    for host in report.hosts:
        if host.reason and host.reason == report.untrained.get(host.name):
            untrained.setdefault(host.reason, []).append(host.name)
    for reason, names in untrained.items():
        yield f"training on {fold(names)}", reason
    for source in report.rules.unloaded:
        yield "checks that could not be loaded", source
    for note in report.notes:
        yield "note", note

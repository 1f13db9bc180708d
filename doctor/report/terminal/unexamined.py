"""What was not looked at, always shown: it is not healthy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.text import Text

from doctor.judge.verdict import Report
from doctor.model import Status
from doctor.report.host_rows import unheard_hosts
from doctor.report.terminal.page import put_line, put_wrapped
from doctor.text.nodeset import fold
from doctor.text.printable import clean, clean_line


def print_unexamined(report: Report, console: Console) -> None:
    """Always shown: what was not looked at is not healthy."""
    rows = list(unexamined(report))
    if not rows:
        return
    console.print()
    put_line(Text("Not examined", style="bold"), console)
    for what, why in rows:
        put_wrapped(Text(f"{clean_line(what)}: {clean(why)}"), console, 2, 4)


def unexamined(report: Report) -> Iterator[tuple[str, str]]:
    """What could not be looked at, and why: equal reasons in one row."""
    if report.outstanding:
        yield fold(report.outstanding), "had not answered when the run ended"
    unheard = unheard_hosts(report)
    if unheard:
        yield f"everything on {fold(unheard)}", "out of reach, see above"
    rows: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for finding in report.findings:
        if finding.status is Status.UNKNOWN:
            reason = re.sub(r"^[\w-]+: ", "", finding.summary)  # the fact that is missing
            rows.setdefault((reason, finding.hosts), []).append(finding.check)
    for (reason, hosts), checks in rows.items():
        where = "" if len(hosts) in (0, len(report.hosts)) else f" on {fold(hosts)}"
        yield _named(checks, report) + where, reason
    untrained: dict[str, list[str]] = {}
    for host in report.hosts:
        if host.reason and host.reason == report.untrained.get(host.name):
            untrained.setdefault(host.reason, []).append(host.name)
    for reason, names in untrained.items():
        yield f"training on {fold(names)}", reason
    for note in report.notes:
        yield "note", note


def _named(checks: Iterable[str], report: Report) -> str:
    """The checks; those of the smoke run in a few words, when most of them could not be decided."""
    names = dict.fromkeys(checks)
    skipped = {result.check for result in report.results if result.status is Status.SKIP}
    smoke = [id for id in report.scopes if id.startswith("smoke-") and id not in skipped]
    decided = [id for id in smoke if id not in names]
    if len(decided) >= len(smoke) / 2:
        return ", ".join(names)
    rest = [name for name in names if name not in smoke]
    return ", ".join([*rest, "smoke-*" + (f" except {' and '.join(decided)}" if decided else "")])

"""The top of the page: the verdict, and everybody whom it names."""

from __future__ import annotations

from collections.abc import Sequence

from doctor.judge.verdict import Report
from doctor.model import Finding, HostStatus, Status, Verdict
from doctor.report.folded import Fault, fold_faults
from doctor.report.headline import culprit, last_line, named_or_counted, title, word
from doctor.report.html.markup import NOTHING, Html, join, pill, tag
from doctor.report.html.times import time_tag

MOST = 12
"""Faults that are named here; all of them stand below."""
LONGEST = 90
"""Of the names in the heading, in characters."""
KINDS = {
    Status.FAIL: "fail",
    Status.CRASH: "fail",
    Status.WARN: "warn",
    Status.UNKNOWN: "open",
}
_VERDICTS = {
    Verdict.FAULTY: ("Faulty", "fail"),
    Verdict.INCONCLUSIVE: ("Inconclusive", "open"),
    Verdict.HEALTHY: ("Healthy", "good"),
}


def page_head(report: Report, parts: Sequence[tuple[str, str]]) -> Html:
    """`parts` are what the page has below, by id and title."""
    worst = trouble(report)
    roots = [fault for fault in fold_faults(worst) if fault.cause is None]
    rows = [_row(fault) for fault in roots[:MOST]]
    more = len(roots) - MOST
    if more > 0:
        rows.append(tag("li", tag("a", f"and {more} more", href="#findings")))
    name, kind = verdict_word(report)
    who, last = whom(report), last_line(report)
    return tag(
        "header",
        tag("p", f"doctor {report.run.command} · {_hosts(report)} · ", time_tag(report), class_="soft"),
        tag("h1", pill(name, kind), " ", tag("span", who)),
        tag("p", last, class_="lead") if last != f"{name}: {who}." else NOTHING,
        tag("ul", *rows, class_="guilty") if rows else NOTHING,
        tag("nav", *(tag("a", text, href=f"#{id}") for id, text in parts), aria_label="Parts of this page"),
    )


def trouble(report: Report) -> list[Finding]:
    """What is wrong, as opposed to what could not be looked at."""
    return [finding for finding in report.findings if finding.status is not Status.UNKNOWN]


def verdict_word(report: Report) -> tuple[str, str]:
    """And its kind. Healthy with a warning is not green."""
    name, kind = _VERDICTS[report.verdict]
    if report.stopped_by is not None:
        return "Interrupted", kind if report.verdict is Verdict.FAULTY else "open"
    if report.verdict is Verdict.HEALTHY and trouble(report):
        return name, "warn"
    return name, kind


def whom(report: Report) -> str:
    """The culprits; where there are none, what stays open, or who is healthy."""
    if report.verdict is Verdict.FAULTY:
        faults = [finding for finding in report.findings if report.rules.faults(finding)]
        known = {finding.id for finding in faults}
        names = dict.fromkeys(culprit(finding) for finding in faults if finding.because not in known)
        lone = len(names) == 1 and not any(finding.hosts for finding in faults)
        return title(faults[0]) if lone else _cut(list(names))
    if report.verdict is Verdict.INCONCLUSIVE:
        doubtful = [host.name for host in report.hosts if host.status is HostStatus.UNEXAMINED]
        return (
            _cut([f"{named_or_counted(doubtful)} not proved healthy"])
            if doubtful
            else "not everything was examined"
        )
    warned = dict.fromkeys(culprit(finding) for finding in trouble(report))
    number = len({finding.check for finding in trouble(report)})
    but = f", with {number} warning{'s' if number > 1 else ''}: {_cut(list(warned))}" if warned else ""
    return named_or_counted(report.healthy_hosts) + but


def _cut(names: Sequence[str]) -> str:
    shown: list[str] = []
    for name in names:
        if shown and len(", ".join((*shown, name))) > LONGEST:
            return f"{', '.join(shown)} and {len(names) - len(shown)} more"
        shown.append(name if len(name) <= LONGEST else f"{name[:LONGEST]}…")
    return ", ".join(shown)


def _row(fault: Fault) -> Html:
    finding = fault.first
    return tag(
        "li",
        pill(word(finding), KINDS[finding.status]),
        tag("a", _cut([culprit(finding)]), href=f"#{finding.id}"),
        tag("span", fault.title),
        tag("code", finding.check),
    )


def _hosts(report: Report) -> str:
    if not report.hosts:
        return "no host was asked"
    counts = ((status, sum(host.status is status for host in report.hosts)) for status in HostStatus)
    each = ", ".join(f"{count} {status.value}" for status, count in counts if count)
    return f"{len(report.hosts)} host{'s' if len(report.hosts) > 1 else ''}: {each}"


def plain_title(report: Report) -> Html:
    """For the tab of a browser."""
    name, _ = verdict_word(report)
    return tag("title", join((f"{name}: ", whom(report), " · cluster-doctor")))

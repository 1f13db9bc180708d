"""What a finding says beyond its headline, for any format: found, expected, what to type, what was seen."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.judge.verdict import Report
from doctor.model import Evidence, Finding, Scope, View
from doctor.report.headline import are_counted, named_or_counted, title

MOST_EVIDENCE = 6
LONGEST = 2000
"""Of one piece of evidence, in characters."""


def details(finding: Finding, report: Report) -> Iterator[tuple[str, str]]:
    """Rows of a label and a text; those without a text are left out."""
    cause = report.by_id.get(finding.because or "")
    where = finding.subject if finding.subject and finding.subject not in finding.summary else ""
    said = finding.summary.rstrip(".")
    rows = (
        ("hosts", finding.nodeset if are_counted(finding.hosts) else ""),
        ("says", said if said != title(finding) else ""),
        ("where", where),
        ("because", f"of {cause.check} on {named_or_counted(cause.hosts) or 'all'}" if cause else ""),
        ("found", finding.actual),
        ("expected", finding.expected),
        ("view", "seen from inside the container" if finding.seen_from is View.CONTAINER else ""),
        ("certainty", finding.confidence.value),
    )
    yield from ((label, text) for label, text in rows if text)


def commands(finding: Finding) -> tuple[str, ...]:
    """What to type. Fixing the cause fixes the symptom."""
    return finding.remedy.commands if finding.remedy and finding.because is None else ()


def evidence(finding: Finding, report: Report, host: str = "") -> tuple[str, tuple[Evidence, ...]]:
    """What was seen, and on which host if not on all of them: a finding folded over hosts has that of one.

    For one `host` it is what was seen there, if that is known.
    """
    found = finding.evidence
    if host:
        there = report.problems.get((finding.check, host), ())
        found = next((p.evidence for p in there if p.summary == finding.summary), found)
    of_one = report.scopes.get(finding.check) is Scope.HOST and len(finding.hosts) > 1
    short = tuple(Evidence(each.source, cut(each.text)) for each in found[:MOST_EVIDENCE])
    return (host or finding.hosts[0] if of_one else ""), short


def cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"

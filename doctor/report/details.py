"""The details of a fault below its headline, row by row, for any format."""

from __future__ import annotations

import re
from collections.abc import Iterator

from doctor.judge.verdict import Report
from doctor.model import Evidence, Finding, Scope, Status, View
from doctor.report.card import Medium, Row, RowForm
from doctor.report.headline import Called, are_counted, bare, culprit, culprits, named_or_counted, word
from doctor.report.similar_faults import Fault, single_fault
from doctor.text.nodeset import fold

MOST_EVIDENCE = 6
LONGEST = 2000
"""The most characters of one piece of evidence."""
FRAMES = 3
"""The most frames of a stack in a terminal without -v."""
SUBJECTS, MOST_SUBJECTS = 3, 20
"""The most faulty parts that are listed: in a terminal, and elsewhere."""
_FRAME = re.compile(r'File "(?P<file>[^"]*)", line (?P<line>\d+) in (?P<name>.+)')


def rows(fault: Fault, finding: Finding, called: Called) -> Iterator[Row]:
    """The rows of a fault; `finding` represents all of its findings."""
    cause = fault.cause
    if are_counted(finding.hosts):
        yield Row("hosts", finding.hosts, RowForm.HOSTS)
    if cause:
        yield row(
            "because", f"{cause.check} on {named_or_counted(cause.hosts, called) or 'all'}", link=cause.id
        )
    many, subjects = _subjects(fault, finding)
    yield row("where", ", ".join(subjects), on=Medium.FULL if many else Medium.ALL)
    yield row("found", fault.found)
    said = fault.expected.partition(" ")[2] in finding.summary
    yield row("expected", fault.expected, on=Medium.FULL if said else Medium.ALL, joins=bool(fault.found))
    sentence = _sentence(finding)
    said = fault.title.lower().endswith(sentence.rstrip(".?!").lower())
    yield row("means", "" if said else sentence, on=Medium.FULL if word(finding) == "HANG" else Medium.ALL)
    yield Row("stack", tuple(_frames(finding)), on=Medium.BRIEF, few=FRAMES, noun="frames")
    yield row("certainty", finding.confidence.value, on=Medium.FULL)


def row(label: str, *texts: str, on: Medium = Medium.ALL, link: str = "", joins: bool = False) -> Row:
    lines = (line for text in texts if text for line in text.split("\n"))
    return Row(label, tuple(lines), on=on, link=link, joins=joins)


def _subjects(fault: Fault, finding: Finding) -> tuple[bool, list[str]]:
    """Whether there are many faulty parts, and those that nothing else names."""
    if any(each.devices or each.ranks for each in culprits(finding)):
        return False, []
    said = finding.summary + finding.actual + culprit(finding)
    subjects = dict.fromkeys(each.subject for each in fault.findings if each.subject)
    return len(subjects) > SUBJECTS, [each for each in subjects if each not in said][:MOST_SUBJECTS]


def _sentence(finding: Finding) -> str:
    text = bare(finding.summary)
    if finding.status is Status.CRASH:
        text = f"please report this: {text}"
    if text.partition(" ")[0].isalpha():  # not the name of a host or an interface
        text = text[:1].upper() + text[1:]
    return text + ("" if text.endswith((".", "?", "!")) else ".")


def _frames(finding: Finding) -> list[str]:
    """The frames of the first culprit's stack, innermost first."""
    stack = next((seen.text for seen in finding.evidence if seen.source.startswith("stack of ")), "")
    return [found.expand(r"\g<file>:\g<line> in \g<name>") for found in _FRAME.finditer(stack)]


def seen_inside(report: Report) -> str:
    """Which hosts were seen from inside a container, for the first lines of a report, if a finding was."""
    names = [name for name in report.plan.names if name in report.seen.inside]
    if not names or not any(View.CONTAINER in (each.view, each.seen_from) for each in report.findings):
        return ""
    whom = "" if len(names) == len(report.plan.names) else f"{fold(names)}: "
    return f"{whom}seen from inside the container"


def seen_from(finding: Finding) -> str:
    """Whose fault it is, where the others are those of the container."""
    of_the_host = finding.view is not View.CONTAINER and finding.seen_from is View.CONTAINER
    return "of the host" if of_the_host else ""


def details(finding: Finding, report: Report) -> Iterator[tuple[str, str]]:
    """The rows of one finding as labels and texts."""
    fault = single_fault(finding, report.by_id.get(finding.because or ""))
    for each in rows(fault, finding, report.called):
        text = fold(each.lines) if each.form is RowForm.HOSTS else "\n".join(each.lines)
        if text and Medium.MARKDOWN in each.on:
            yield each.label, text.removesuffix(".")
    if view := seen_from(finding):
        yield "view", view


def commands(finding: Finding) -> tuple[str, ...]:
    """The commands of the remedy; none for a consequence, since fixing the cause fixes it too."""
    return finding.remedy.commands if finding.remedy and finding.because is None else ()


def evidence(finding: Finding, report: Report, host: str = "") -> tuple[str, tuple[Evidence, ...]]:
    """The evidence, with the host where it was seen: a finding folded over hosts keeps that of one host. The
    host is empty if the evidence is from all of them.

    With `host`, the evidence is what was seen there, if that is known.
    """
    found = finding.evidence
    if host:
        there = report.problems.get((finding.check, host), ())
        found = next((p.evidence for p in there if p.summary == finding.summary), found)
    of_one = report.checks.scopes.get(finding.check) is Scope.HOST and len(finding.hosts) > 1
    short = tuple(Evidence(each.source, cut(each.text)) for each in found[:MOST_EVIDENCE])
    return (host or finding.hosts[0] if of_one else ""), short


def cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"

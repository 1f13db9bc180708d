"""Each fault as a card: who and what, found and expected, what to type, and the evidence folded."""

from __future__ import annotations

from collections.abc import Iterator, Set

from doctor.judge.verdict import Report
from doctor.model import Status, View
from doctor.report.again import verify
from doctor.report.folded import Fault, fold_faults
from doctor.report.headline import are_counted, bare, culprit, culprits, title, word
from doctor.report.host_rows import unheard_hosts
from doctor.report.html.head import KINDS, trouble
from doctor.report.html.markup import NOTHING, Html, folded, join, listed, pill, section, tag
from doctor.report.terminal.fault import to_type
from doctor.report.terminal.unexamined import unexamined

MOST = 300
"""More would make a page that nobody can open; the rest is in the JSON."""
MOST_COMMANDS = 20
MOST_EVIDENCE = 12
LONGEST_EVIDENCE = 6000


def findings_section(report: Report) -> Html:
    faults = fold_faults(trouble(report))
    unheard = unheard_hosts(report)
    cards = [_card(fault, unheard, report) for fault in faults[:MOST]]
    broken = [_unloaded(source) for source in report.rules.unloaded]
    left = len(faults) - MOST
    more = tag("p", f"{left} more are left out here: see the JSON.") if left > 0 else NOTHING
    return section("findings", "Findings", *cards, *broken, more)


def _card(fault: Fault, unheard: Set[str], report: Report) -> Html:
    finding = fault.first
    kind = KINDS[finding.status]
    rows = (join((tag("dt", name), tag("dd", said))) for name, said in _rows(fault) if said)
    return tag(
        "article",
        *(tag("span", id=each.id) for each in fault.findings[1:]),
        tag(
            "h3",
            pill(word(finding), kind),
            tag("span", culprit(finding), class_="who"),
            tag("span", fault.title, class_="said"),
            tag("code", finding.check),
        ),
        tag("dl", *rows),
        NOTHING if fault.cause else _commands(fault, unheard, report),
        _evidence(fault),
        id=finding.id,
        class_=f"{kind} symptom" if fault.cause else kind,
    )


def _rows(fault: Fault) -> Iterator[tuple[str, str]]:
    finding, cause = fault.first, fault.cause
    if are_counted(finding.hosts):
        yield "hosts", listed(finding.hosts)
    if cause:
        yield "because", tag("a", f"{culprit(cause)}: {title(cause)}", href=f"#{cause.id}")
    shown = finding.summary + finding.actual + culprit(finding)
    subjects = dict.fromkeys(each.subject for each in fault.findings if each.subject)
    named = any(each.devices or each.ranks for each in culprits(finding))
    where = [] if named else [each for each in subjects if each not in shown]
    yield "where", ", ".join(where[:MOST_COMMANDS])
    yield "found", fault.found
    yield "expected", fault.expected
    said = bare(finding.summary).rstrip(".")
    if finding.status is Status.CRASH:
        yield "means", f"please report this: {said}"
    elif said.lower() not in fault.title.lower():
        yield "means", said[:1].upper() + said[1:]
    if finding.view is View.CONTAINER:
        yield "seen", "from inside the container"
    elif finding.seen_from is View.CONTAINER:
        yield "seen", "of the host, from inside the container"
    yield "certainty", finding.confidence.value


def _commands(fault: Fault, unheard: Set[str], report: Report) -> Html:
    """A comment is no thing to copy, but it stays with the commands that it is about."""
    blocks = [*to_type(fault, unheard)]
    if fault.first.status is Status.FAIL:
        blocks.append(("then look again:", (verify(report, fault.first),)))
    return join(
        join((tag("p", where, class_="soft"), tag("pre", "\n".join(lines), tabindex=0) if lines else NOTHING))
        for where, lines in blocks[:MOST_COMMANDS]
    )


def _evidence(fault: Fault) -> Html:
    seen = [each for finding in fault.findings for each in finding.evidence]
    if not seen:
        return NOTHING
    shown = (
        join((tag("p", tag("code", each.source)), tag("pre", _cut(each.text), tabindex=0)))
        for each in seen[:MOST_EVIDENCE]
    )
    left = len(seen) - MOST_EVIDENCE
    more = tag("p", f"{left} more are in the JSON.") if left > 0 else NOTHING
    return folded(f"Evidence ({len(seen)})", *shown, more)


def _cut(text: str) -> str:
    if len(text) <= LONGEST_EVIDENCE:
        return text
    return f"{text[:LONGEST_EVIDENCE]}\n… {len(text) - LONGEST_EVIDENCE} more characters"


def _unloaded(source: str) -> Html:
    return tag("article", tag("h3", pill("BROKEN", "fail"), tag("span", source)), class_="fail")


def unexamined_section(report: Report) -> Html:
    """Always there: that nothing was left out is worth a line too."""
    rows = [join((tag("dt", what), tag("dd", why))) for what, why in unexamined(report)]
    if not rows:
        return section("unexamined", "Not examined", tag("p", "Nothing that applies was left out."))
    return section("unexamined", "Not examined", tag("dl", *rows, class_="stack"))

"""The page of an examination: its cards say who is at fault, what is wrong, the evidence and what to type."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence, Set

from doctor.judge.again import RecheckState
from doctor.judge.verdict import Report
from doctor.model import Finding, HostStatus, Status, Verdict
from doctor.report.card import Card, CardKind, Medium, Page, Pairs, Row, RowForm
from doctor.report.details import evidence, rows, seen_from, seen_inside
from doctor.report.headline import (
    WORDS,
    are_counted,
    culprit,
    last_line,
    named,
    named_or_counted,
    word,
)
from doctor.report.host_rows import unheard_hosts
from doctor.report.measurements import RATES, unjudged_rates
from doctor.report.rerun import can_verify, verify
from doctor.report.similar_faults import Fault, fold_faults, single
from doctor.rules.smoke import not_made
from doctor.text.nodeset import fold
from doctor.transport.way import IN_SLURM

KINDS = {
    Status.FAIL: CardKind.FAIL,
    Status.WARN: CardKind.WARN,
    Status.CRASH: CardKind.BROKEN,
    Status.UNKNOWN: CardKind.OPEN,
}
VERDICTS = {
    Verdict.FAULTY: ("Faulty", CardKind.FAIL),
    Verdict.INCONCLUSIVE: ("Inconclusive", CardKind.OPEN),
    Verdict.HEALTHY: ("Healthy", CardKind.GOOD),
}
FROM_HERE = ("ssh ", "doctor ", IN_SLURM)
"""Commands that begin like this are typed where doctor runs."""
LONGEST = 90
"""The most characters of the names in the title."""
MOST_QUOTED = 12
"""The most findings of one fault whose evidence is shown."""


def page_of(report: Report) -> Page:
    name, kind = verdict_word(report)
    left, inside = unexamined(report), seen_inside(report)
    return Page(
        report.run.command,
        report.run.started,
        name,
        kind,
        whom(report),
        last_line(report),
        ((_hosts(report), ""), *(((inside, ""),) if inside else ())),
        fault_cards(report),
        parts=(left,) if left.pairs else (),
    )


def verdict_word(report: Report) -> tuple[str, CardKind]:
    """The verdict and its kind; healthy with a warning is not green."""
    name, kind = VERDICTS[report.verdict]
    if report.run.stopped_by is not None:
        return "Interrupted", kind if report.verdict is Verdict.FAULTY else CardKind.OPEN
    if report.again and report.verdict is Verdict.HEALTHY:
        return "Fixed", kind
    if report.verdict is Verdict.HEALTHY and trouble(report):
        return name, CardKind.WARN
    return name, kind


def trouble(report: Report) -> list[Finding]:
    """The findings except those that could not be decided."""
    return [finding for finding in report.findings if finding.status is not Status.UNKNOWN]


def whom(report: Report) -> str:
    """The culprits; without any, what is undecided or who is healthy."""
    if report.verdict is Verdict.FAULTY:
        return _first_fault(report)
    if report.verdict is Verdict.INCONCLUSIVE:
        doubtful = [host.name for host in report.hosts if host.status is HostStatus.UNEXAMINED]
        return (
            _cut([f"{named_or_counted(doubtful, report.called)} not proved healthy"])
            if doubtful
            else "not everything was examined"
        )
    warned = dict.fromkeys(culprit(finding, report.called) for finding in trouble(report))
    number = len({finding.check for finding in trouble(report)})
    but = f", with {number} warning{'s' if number > 1 else ''}: {_cut(list(warned))}" if warned else ""
    return named_or_counted(report.healthy_hosts, report.called) + but


def _first_fault(report: Report) -> str:
    """The first culprit with its fault, and the number of other faults."""
    faults = [finding for finding in report.findings if report.rules.faults(finding)]
    first, *others = [fault for fault in fold_faults(faults) if fault.cause is None] or fold_faults(faults)
    more = f"; {len(others)} more fault{'s' if len(others) > 1 else ''}" if others else ""
    if not first.first.hosts:
        return f"{first.title}{more}"
    return f"{_cut([culprit(first.first, report.called)])}: {first.title}{more}"


def _cut(names: Sequence[str]) -> str:
    shown: list[str] = []
    for name in names:
        if shown and len(", ".join((*shown, name))) > LONGEST:
            return f"{', '.join(shown)} and {len(names) - len(shown)} more"
        shown.append(name if len(name) <= LONGEST else f"{name[:LONGEST]}…")
    return ", ".join(shown)


def _hosts(report: Report) -> str:
    if not report.hosts:
        return "no host was asked"
    counts = ((status, sum(host.status is status for host in report.hosts)) for status in HostStatus)
    each = ", ".join(f"{count} {status.value}" for status, count in counts if count)
    return f"{len(report.hosts)} host{'s' if len(report.hosts) > 1 else ''}: {each}"


def fault_cards(report: Report, *, apart: bool = False) -> tuple[Card, ...]:
    """The cards, worst first. `apart`: one card per finding, even if several differ only in numbers."""
    found, unheard = trouble(report), unheard_hosts(report)
    cards = (_card(fault, report, unheard) for fault in (single(found) if apart else fold_faults(found)))
    broken = (Card(WORDS[Status.CRASH], CardKind.BROKEN, says=source) for source in report.rules.unloaded)
    return (*cards, *broken)


def _card(fault: Fault, report: Report, unheard: Set[str]) -> Card:
    finding = fault.first
    view = seen_from(finding)
    more = [*rows(fault, finding, report.called), *_evidence(fault, report)]
    if fault.cause is None:  # fixing the cause fixes the symptom
        more += [*_typed(fault, finding, report, unheard), *_verify(fault, finding, report)]
    return Card(
        word(finding),
        KINDS[finding.status],
        culprit(finding, report.called),
        fault.title,
        f" ({view})" if view else "",
        finding.check,
        tuple(more),
        ids=tuple(each.id for each in fault.findings),
        follows=fault.cause is not None,
    )


def _evidence(fault: Fault, report: Report) -> Iterator[Row]:
    for finding in fault.findings[:MOST_QUOTED]:
        where, seen = evidence(finding, report)
        where = where or (fold(finding.hosts) if len(fault.findings) > 1 else "")
        lines = (line for each in seen for line in f"{each.source}: {each.text}".split("\n"))
        yield Row("seen", tuple(lines), RowForm.QUOTED, Medium.FULL, head=where)


def _verify(fault: Fault, finding: Finding, report: Report) -> Iterator[Row]:
    """The command that verifies the fix, unless the remedy has it already, or nothing can be verified."""
    if not can_verify(report, finding):
        return
    command = verify(report, finding)
    if not any(command in line for each in fault.findings if each.remedy for line in each.remedy.commands):
        yield Row("verify", (command,), RowForm.TYPED)


def _typed(fault: Fault, finding: Finding, report: Report, unheard: Set[str]) -> Iterator[Row]:
    """Where to type the commands, and the commands. Nothing can be typed on an unreachable host."""
    typed: dict[tuple[str, ...], list[Finding]] = {}
    for each in fault.findings:
        typed.setdefault(each.remedy.commands if each.remedy else (), []).append(each)
    for commands, of in typed.items():
        hosts = tuple(host for each in of for host in each.hosts) if len(typed) > 1 else finding.hosts
        if len(typed) > 2 and of[0] is not fault.findings[0]:
            break
        there = commands if hosts and not unheard & set(hosts) else ()
        there = tuple(command for command in there if not command.startswith(FROM_HERE))
        if all(command.startswith("#") for command in there) and len(there) < len(commands):
            there = ()  # a comment stays with the commands that it is about
        here = tuple(command for command in commands if command not in there)
        on = "each of them" if hosts == finding.hosts and are_counted(hosts) else named(hosts, report.called)
        told = all(command.startswith("#") for command in here)  # nothing is typed
        for where, lines in ((f"type on {on}:", there), ("" if told else "type here:", here)):
            if lines:
                yield Row("do", lines, RowForm.TYPED, head=where)
    if len(typed) > 2:
        others = len(fault.findings) - len(next(iter(typed.values())))
        said = f"the other {others} likewise, each with values of its own (-v)"
        yield Row("do", (), RowForm.TYPED, head=said)


def looked_again(report: Report) -> Pairs:
    """What has become of each finding of an earlier run."""
    return Pairs("Looked at again", tuple(_looked_again(report)), aligned=True)


def _looked_again(report: Report) -> Iterator[tuple[str, str]]:
    for each in report.again:
        said = f"{each.before.headline} ({each.before.check})"
        if each.now is RecheckState.STILL and len(each.still) < len(each.before.hosts):
            said += f"; on {fold(each.still)} only"
        if each.open:
            said += f"; not decided on {fold(each.open)}"
        yield each.now.value, said + (f": {each.why}" if each.why else "")


def unexamined(report: Report) -> Pairs:
    """What could not be examined, and why: equal reasons share a row."""
    return Pairs("Not examined", tuple(_unexamined(report)))


def _unexamined(report: Report) -> Iterator[tuple[str, str]]:
    if report.run.outstanding:
        yield fold(report.run.outstanding), "had not answered when the run ended"
    if unheard := unheard_hosts(report):
        yield f"everything on {fold(unheard)}", "out of reach, see above"
    for each in report.checks.unapplied:
        yield each.named, each.why
    found: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for finding in report.findings:
        if finding.status is Status.UNKNOWN:
            reason = re.sub(r"^[\w-]+: ", "", finding.summary)  # the fact that is missing
            found.setdefault((reason, finding.hosts), []).append(finding.check)
    for (reason, hosts), checks in found.items():
        where = "" if len(hosts) in (0, len(report.hosts)) else f" on {fold(hosts)}"
        yield _check_names(checks, report) + where, reason
    first = next(iter(report.training.runs), None)
    if first and (lacking := not_made(first)):
        yield (
            f"the collectives {', '.join(lacking)}",
            f"{first.plan.backend} does not have them",
        )
    if rates := unjudged_rates(report):
        yield RATES, f"not judged: {rates}"
    untrained: dict[str, list[str]] = {}
    for host in report.hosts:
        if host.reason and host.reason == report.training.untrained.get(host.name):
            untrained.setdefault(host.reason, []).append(host.name)
    for reason, names in untrained.items():
        yield f"training on {fold(names)}", reason
    for note in report.notes:
        yield "note", note


def _check_names(checks: Iterable[str], report: Report) -> str:
    """The checks; those of the smoke run are summed up as `smoke-*` if most of them could not be decided."""
    names = dict.fromkeys(checks)
    skipped = {result.check for result in report.results if result.status is Status.SKIP}
    smoke = [id for id in report.checks.scopes if id.startswith("smoke-") and id not in skipped]
    decided = [id for id in smoke if id not in names]
    if len(decided) >= len(smoke) / 2:
        return ", ".join(names)
    rest = [name for name in names if name not in smoke]
    return ", ".join([*rest, "smoke-*" + (f" except {' and '.join(decided)}" if decided else "")])

"""Findings that differ only in numbers as one fault, and its card: who, what, the evidence, what to type.

The JSON keeps each finding.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from doctor.judge.verdict import Report
from doctor.model import Evidence, Finding, Scope, Status, View
from doctor.report.page.card import Card, CardKind, Medium, Row, RowForm
from doctor.report.page.names import (
    WORDS,
    Called,
    are_counted,
    bare,
    culprit,
    culprits,
    named,
    named_or_counted,
    title,
    waiver_words,
    word,
)
from doctor.report.page.rerun import verify
from doctor.text.grouped import grouped
from doctor.text.nodeset import fold
from doctor.transport.way import IN_SLURM

KINDS = {
    Status.FAIL: CardKind.FAIL,
    Status.WARN: CardKind.WARN,
    Status.CRASH: CardKind.BROKEN,
    Status.UNKNOWN: CardKind.OPEN,
    Status.WAIVED: CardKind.SOFT,
}
FROM_HERE = ("ssh ", "doctor ", IN_SLURM)
"""Commands that begin like this are typed where doctor runs."""
MOST = 3
"""Up to this many different values are all shown; if there are more, the least and the largest."""
MOST_QUOTED = 12
"""The most findings of one fault whose evidence is shown."""
MOST_EVIDENCE = 6
LONGEST = 2000
"""The most characters of one piece of evidence."""
FRAMES = 3
"""The most frames of a stack in a terminal without -v."""
SUBJECTS, MOST_SUBJECTS = 3, 20
"""The most faulty parts that are listed: in a terminal, and elsewhere."""
_NUMBER = re.compile(r"(?<![\w./:-])\d+(?:\.\d+)?(?![\w:]|\.\d)")
"""A number by itself, not one inside the name of a host, an address or a path."""
_FRAME = re.compile(r'File "(?P<file>[^"]*)", line (?P<line>\d+) in (?P<name>.+)')


@dataclass(frozen=True, slots=True)
class Fault:
    """Findings of one check with one remedy, whose words are the same except for numbers."""

    findings: tuple[Finding, ...]
    title: str
    cause: Finding | None = None

    @property
    def first(self) -> Finding:
        """The first finding, with the hosts and places of all."""
        if len(self.findings) == 1:
            return self.findings[0]
        hosts = tuple(dict.fromkeys(host for finding in self.findings for host in finding.hosts))
        where = tuple(place for finding in self.findings for place in finding.where)
        return replace(self.findings[0], hosts=hosts, nodeset=fold(hosts), where=where)

    @property
    def found(self) -> str:
        return _values((bare(finding.actual), finding) for finding in self.findings)

    @property
    def expected(self) -> str:
        return _values((bare(finding.expected), finding) for finding in self.findings)


def fold_faults(findings: Sequence[Finding], *, apart: bool = False) -> tuple[Fault, ...]:
    """The faults, in the order of the findings; consequences stay behind their cause. `apart`: each finding
    by itself, even if several differ only in numbers.
    """
    known = {finding.id: finding for finding in findings}
    keys: dict[str, object] = {}
    groups: dict[object, list[Finding]] = {}
    for finding in findings:
        keys[finding.id] = finding.id if apart else _key(finding, keys.get(finding.because or ""))
        groups.setdefault(keys[finding.id], []).append(finding)
    return tuple(
        Fault(tuple(group), _title(group), known.get(group[0].because or "")) for group in groups.values()
    )


def _key(finding: Finding, cause: object) -> object:
    """What must be equal for findings to be joined; a finding without a culprit, or with places on more hosts
    than are guilty, stays alone.
    """
    if not finding.hosts or len({place.host for place in finding.where}) > len(finding.hosts):
        return finding.id
    words = (_NUMBER.sub("#", text) for text in (title(finding), finding.summary))
    remedy = finding.remedy.id if finding.remedy else ""
    seen = (finding.view, finding.seen_from, finding.confidence)
    return (finding.check, finding.status, remedy, finding.waiver, *words, *seen, cause)


def _title(group: Sequence[Finding]) -> str:
    """The title, with the least and the largest of its numbers if they differ."""
    titles = list(dict.fromkeys(map(title, group)))
    if len(titles) == 1:
        return titles[0]
    columns = zip(*(_NUMBER.findall(each) for each in titles), strict=True)
    spans = iter([_span(column) for column in columns])
    return _NUMBER.sub(lambda _: next(spans), titles[0])


def _span(numbers: Iterable[str]) -> str:
    ordered = sorted(set(numbers), key=float)
    return ordered[0] if len(ordered) == 1 else f"{ordered[0]}…{ordered[-1]}"


def _values(said: Iterable[tuple[str, Finding]]) -> str:
    """ "50 MB (node1) … 57 MB (node8)"; the value alone if it is the same everywhere."""
    hosts: dict[str, dict[str, None]] = {}
    for text, finding in said:
        hosts.setdefault(text, {}).update(dict.fromkeys(finding.hosts))
    if len(hosts) < 2:
        return next(iter(hosts), "")
    shown = [f"{text or 'nothing'} ({named_or_counted(tuple(names))})" for text, names in hosts.items()]
    if len(shown) <= MOST:
        return ", ".join(shown)
    ordered = sorted(shown, key=_first_number)
    return f"{ordered[0]} … {ordered[-1]}"


def _first_number(text: str) -> tuple[float, str]:
    found = re.search(r"(-?\d+(?:\.\d+)?)(?: ([kMGTP])B\b)?", text)
    return (float(found[1]) * 1024 ** " kMGTP".index(found[2] or " ") if found else 0.0, text)


def fault_cards(report: Report, *, apart: bool = False) -> tuple[Card, ...]:
    """The cards, worst first."""
    shown = (*report.trouble, *report.waived)
    cards = (_card(fault, report) for fault in fold_faults(shown, apart=apart))
    broken = (Card(WORDS[Status.CRASH], CardKind.BROKEN, says=source) for source in report.rules.unloaded)
    return (*cards, *broken)


def _card(fault: Fault, report: Report) -> Card:
    finding = fault.first
    kind, who, view = word(finding), culprit(finding, report.called), seen_from(finding)
    more = [*rows(fault, finding, report.called), *_evidence(fault, report)]
    leads = fault.cause is None or fault.cause.status is Status.WAIVED  # fixing the cause fixes the symptom
    if leads and finding.status is not Status.WAIVED:
        more += [*_typed(fault, finding, report), *_verify(fault, finding, report)]
    return Card(
        kind,
        KINDS[finding.status],
        who,
        fault.title,
        f" ({view})" if view else "",
        finding.check,
        tuple(more),
        ids=tuple(each.id for each in fault.findings),
        follows=not leads,
    )


def rows(fault: Fault, finding: Finding, called: Called) -> Iterator[Row]:
    """The rows of a fault; `finding` represents all of its findings."""
    cause = fault.cause
    if are_counted(finding.hosts):
        yield Row("hosts", finding.hosts, RowForm.HOSTS)
    yield row("waiver", waiver_words(finding.waiver, finding.status))
    if cause:
        yield row(
            "because", f"{cause.check} on {named_or_counted(cause.hosts, called) or 'all'}", link=cause.id
        )
    many, subjects = _subjects(fault, finding)
    yield row("where", ", ".join(subjects), on=Medium.FULL if many else Medium.ALL)
    yield row("found", fault.found)
    said = fault.expected.partition(" ")[2] in finding.summary
    yield row("expected", fault.expected, on=Medium.FULL if said else Medium.ALL, joins=bool(fault.found))
    sentence = _sentence(finding, fault.title)
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


def _sentence(finding: Finding, title: str) -> str:
    """What the title left out, or all of it."""
    text = bare(finding.summary).removeprefix(f"{title}: ")
    if finding.status is Status.CRASH:
        text = f"please report this: {text}"
    if text.partition(" ")[0].isalpha():  # not the name of a host or an interface
        text = text[:1].upper() + text[1:]
    return text + ("" if text.endswith((".", "?", "!")) else ".")


def _frames(finding: Finding) -> list[str]:
    """The frames of the first culprit's stack, innermost first."""
    stack = next((seen.text for seen in finding.evidence if seen.source.startswith("stack of ")), "")
    return [found.expand(r"\g<file>:\g<line> in \g<name>") for found in _FRAME.finditer(stack)]


def _evidence(fault: Fault, report: Report) -> Iterator[Row]:
    for finding in fault.findings[:MOST_QUOTED]:
        where, seen = evidence(finding, report)
        where = where or (fold(finding.hosts) if len(fault.findings) > 1 else "")
        lines = (line for each in seen for line in f"{each.source}: {each.text}".split("\n"))
        yield Row("seen", tuple(lines), RowForm.QUOTED, Medium.FULL, head=where)


def _typed(fault: Fault, finding: Finding, report: Report) -> Iterator[Row]:
    """Where to type the commands, and the commands. Nothing can be typed on an unreachable host."""
    typed = grouped((each.remedy.commands if each.remedy else (), each) for each in fault.findings)
    for commands, of in typed.items():
        hosts = tuple(host for each in of for host in each.hosts) if len(typed) > 1 else finding.hosts
        if len(typed) > 2 and of[0] is not fault.findings[0]:
            break
        there = commands if hosts and not report.unheard & set(hosts) else ()
        there = tuple(command for command in there if not command.startswith(FROM_HERE))
        if all(command.startswith("#") for command in there) and len(there) < len(commands):
            there = ()  # a comment stays with the commands that it is about
        here = tuple(command for command in commands if command not in there)
        on = "each of them" if hosts == finding.hosts and are_counted(hosts) else named(hosts, report.called)
        for lines, where, done in ((there, f"type on {on}:", f"on {on}:"), (here, "type here:", "")):
            if lines:
                in_words = all(line.startswith("#") for line in lines)
                yield Row("do", lines, RowForm.TYPED, head=done if in_words else where)
    if len(typed) > 2:
        others = len(fault.findings) - len(next(iter(typed.values())))
        said = f"the other {others} likewise, each with values of its own (-v)"
        yield Row("do", (), RowForm.TYPED, head=said)


def _verify(fault: Fault, finding: Finding, report: Report) -> Iterator[Row]:
    """The command that verifies the fix, unless the remedy has it already, or nothing can be verified."""
    command = verify(report, finding)
    typed = [line for each in fault.findings if each.remedy for line in each.remedy.commands]
    if command and not any(command in line for line in typed):
        yield Row("verify", (command,), RowForm.TYPED)


def seen_from(finding: Finding) -> str:
    """Whose fault it is, where the others are those of the container."""
    of_the_host = finding.view is not View.CONTAINER and finding.seen_from is View.CONTAINER
    return "of the host" if of_the_host else ""


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

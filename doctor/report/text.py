"""The report for a person in a terminal or reading a log: worst first, then what was not examined."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook
from rich.segment import Segment
from rich.text import Text

from doctor.job.plan import JobPlan
from doctor.judge.verdict import Report
from doctor.model import Backend, Finding, HostStatus, Sourced, Status, Verdict, View
from doctor.report.go import table_note
from doctor.report.smoketext import print_smoke
from doctor.text.nodeset import fold
from doctor.text.printable import clean, clean_line

T = TypeVar("T")
_STYLE = {
    Status.FAIL: "bold red",
    Status.WARN: "yellow",
    Status.CRASH: "bold magenta",
    Status.UNKNOWN: "cyan",
}
_LABEL = {Status.FAIL: "FAIL", Status.WARN: "WARN", Status.CRASH: "BROKEN", Status.UNKNOWN: "UNKNOWN"}
_TROUBLE = (Status.FAIL, Status.CRASH, Status.WARN)
_EVIDENCE = 6
FROM_HERE = ("ssh ", "doctor ")
"""So begin commands that are typed where the doctor runs."""


def print_report(report: Report, console: Console, *, verbose: bool = False, quiet: bool = False) -> None:
    """`verbose` adds evidence and what does not apply; `quiet` leaves what is wrong and the last line."""
    console.push_render_hook(_Cleaned())
    if not quiet:
        _print_wrapped(Text(clean_line(plan_line(report.plan)), style="dim"), console)
    known = {finding.id: finding for finding in report.findings}
    unheard = _unheard(report)
    for finding in report.findings:
        if finding.status in _TROUBLE:
            console.print()
            _print_finding(finding, known, unheard, console, verbose)
    for source in report.rules.unloaded:
        console.print()
        head = Text.assemble((_LABEL[Status.CRASH], _STYLE[Status.CRASH]), "  ", clean_line(source))
        _print_wrapped(head, console, 0, 4)
    if not quiet:
        print_smoke(report, console, verbose=verbose)
    if not quiet or report.verdict is Verdict.INCONCLUSIVE:
        _print_unexamined(report, console, verbose)
    if report.findings or not quiet:
        console.print()
    _print_end(report, console)


class _Cleaned(RenderHook):
    """Cleans all that a console prints: colours are ours, and no character of others draws anything."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_CleanedText(renderable) for renderable in renderables]


@dataclass(frozen=True, slots=True)
class _CleanedText:
    inner: ConsoleRenderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for segment in console.render(self.inner, options):
            yield segment._replace(text=clean(segment.text))


def plan_line(plan: JobPlan) -> str:
    """Who, how many, which ports, and who said so."""
    per_host = {host.ranks for host in plan.hosts if host.ranks}
    ranks = _count(plan.ranks, "rank")
    if len(per_host) == 1:
        one = next(iter(per_host))
        ranks += f" ({one.value} a host, {one.source})"
    return " · ".join(
        (
            _count(len(plan.hosts), "host"),
            ranks,
            f"backend {_sourced(plan.backend)}",
            f"head {_sourced(plan.head)}",
            f"master port {_sourced(plan.master_port)}",
        )
    )


def _sourced(value: Sourced[T]) -> str:
    shown = value.value.value if isinstance(value.value, Backend) else value.value
    return f"{shown} ({value.source})"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _print_finding(
    finding: Finding, known: dict[str, Finding], unheard: set[str], console: Console, verbose: bool
) -> None:
    cause = known.get(finding.because or "")
    head = Text("  └ " if cause else "", style="dim")
    head.append(_LABEL[finding.status], style=_STYLE[finding.status])
    head.append("  ")
    head.append(clean_line(_whose(finding)), style="bold")
    head.append(f"  {finding.check}", style="dim")
    if finding.view is View.CONTAINER:
        head.append("  (seen from inside the container)", style="dim")
    elif finding.seen_from is View.CONTAINER:
        head.append("  (of the host, seen from inside the container)", style="dim")
    _print_wrapped(head, console, 0, 4)
    indent = 8 if cause else 6
    _print_wrapped(Text(_sentence(finding)), console, indent, indent)
    rows = [("because", f"of {cause.check} on {cause.nodeset or 'all'}")] if cause else []
    rows += [("expected", finding.expected), ("found", finding.actual)]
    if finding.subject and finding.subject not in finding.summary + finding.actual + _whose(finding):
        rows.insert(0, ("where", finding.subject))
    if verbose:
        rows += [("seen", f"{e.source}: {e.text}") for e in finding.evidence[:_EVIDENCE]]
        rows += [("certainty", finding.confidence.value)]
    _print_rows(rows, console, indent)
    if cause is None:  # what mends the cause mends the symptom
        _print_commands(finding, unheard, console, indent)


def _whose(finding: Finding) -> str:
    """The culprits, else the place in a file that no host is guilty of."""
    in_a_file = not any(place.host for place in finding.where)
    return finding.nodeset or (in_a_file and finding.subject) or "no single host"


def _sentence(finding: Finding) -> str:
    text = clean(finding.summary)
    if finding.status is Status.CRASH:
        text = f"the check itself broke, please report this: {text}"
    if text.partition(" ")[0].isalpha():  # not the name of a host or an interface
        text = text[:1].upper() + text[1:]
    return text + ("" if text.endswith((".", "?", "!")) else ".")


def _print_wrapped(text: Text, console: Console, first: int = 0, rest: int = 0) -> None:
    """Indented, and wrapped without blanks at line ends, so that logs stay clean."""
    for number, line in enumerate(text.wrap(console, max(console.width - rest, 20))):
        line.rstrip()
        console.print(Text(" " * (first if number == 0 else rest)) + line, soft_wrap=True)


def _print_rows(rows: Iterable[tuple[str, str]], console: Console, indent: int, first: int = 9) -> None:
    """Two columns, the second wrapped."""
    for name, text in rows:
        if not text:
            continue
        lines = Text(clean(text)).wrap(console, max(console.width - indent - first - 2, 20))
        for number, line in enumerate(lines):
            line.rstrip()
            head = clean(name) if number == 0 else ""
            console.print(
                Text.assemble(" " * indent, (f"{head:<{first}}", "dim"), "  ", line), soft_wrap=True
            )


def _print_commands(finding: Finding, unheard: set[str], console: Console, indent: int) -> None:
    """Never wrapped: commands are there to be copied. Nothing can be typed on a host out of reach."""
    commands = finding.remedy.commands if finding.remedy else ()
    reachable = finding.hosts and not unheard & set(finding.hosts)
    there = [command for command in commands if reachable and not command.startswith(FROM_HERE)]
    if all(command.startswith("#") for command in there) and len(there) < len(commands):
        there = []  # a comment stays with the commands that it is about
    here = [command for command in commands if command not in there]
    for label, typed in ((f"type on {clean_line(finding.nodeset)}", there), ("type", here)):
        if typed:
            console.print(Text(" " * indent + label, style="dim"), soft_wrap=True)
        for command in typed:
            style = "dim" if command.startswith("#") else "green"
            console.print(Text(" " * (indent + 2) + clean_line(command), style=style), soft_wrap=True)


def _print_unexamined(report: Report, console: Console, verbose: bool) -> None:
    """Always shown: what was not looked at is not healthy."""
    rows = list(_unexamined(report))
    if verbose:
        rows += _skipped(report)
    if not rows:
        return
    console.print()
    console.print(Text("Not examined", style="bold"))
    for what, why in rows:
        _print_wrapped(Text(f"{clean_line(what)}: {clean(why)}"), console, 2, 4)


def _unexamined(report: Report) -> Iterator[tuple[str, str]]:
    """What could not be looked at, and why: equal reasons in one row."""
    if report.outstanding:
        yield fold(report.outstanding), "had not answered when the run ended"
    unheard = _unheard(report)
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


def _unheard(report: Report) -> set[str]:
    """Hosts that could not be asked at all."""
    places = (place for f in report.findings if f.check == "host-unreachable" for place in f.where)
    return {place.host for place in places if place.host}


def _skipped(report: Report) -> list[tuple[str, str]]:
    rows: dict[str, list[str]] = {}
    for result in report.results:
        if result.status is Status.SKIP:
            rows.setdefault(result.reason or "", []).append(result.check)
    return [
        (", ".join(dict.fromkeys(checks)), f"does not apply: {reason}") for reason, checks in rows.items()
    ]


def _print_end(report: Report, console: Console) -> None:
    counts = report.counts()
    made = _count(sum(counts.values()), "result")
    looked = f"{_count(len(report.scopes), 'check')}, {made}: {counts['pass']} passed"
    for status, word in (
        ("fail", "failed"),
        ("warn", "warned"),
        ("unknown", "not decided"),
        ("crash", "broke"),
    ):
        if counts[status]:
            looked += f", {counts[status]} {word}"
    if counts["skip"]:
        looked += f", {counts['skip']} do not apply"
    line = Text()
    line.append(_verdict(report), style=_VERDICT[report.verdict])
    line.append(f" {_hosts(report)} {looked}; {report.run.seconds:.1f} s.")
    _print_wrapped(line, console)
    if report.rules.need_hosts is not None:
        enough = f"{len(report.healthy_hosts)} healthy hosts remain, {report.rules.need_hosts} are needed"
        console.print(Text(f"{enough}: {'go' if report.exit_code == 0 else 'no go'}.", style="bold"))
    for note in table_note(report):
        _print_wrapped(Text(f"{clean_line(note[:1].upper() + note[1:])}."), console)
    step = _next_step(report)
    if step:
        console.print(Text.assemble(("Next: ", "dim"), clean_line(step)), soft_wrap=True)


_VERDICT = {Verdict.HEALTHY: "bold green", Verdict.FAULTY: "bold red", Verdict.INCONCLUSIVE: "bold cyan"}


def _verdict(report: Report) -> str:
    if report.stopped_by is not None:
        return "Interrupted."
    return {
        Verdict.HEALTHY: "Healthy.",
        Verdict.FAULTY: "Faulty.",
        Verdict.INCONCLUSIVE: "Inconclusive: "
        + ("a check broke." if report.broken else "something essential could not be examined."),
    }[report.verdict]


def _hosts(report: Report) -> str:
    if not report.hosts:
        return "No host was asked;"
    parts = []
    for status, word in (
        (HostStatus.FAULTY, "faulty"),
        (HostStatus.UNEXAMINED, "unexamined"),
        (HostStatus.HEALTHY, "healthy"),
    ):
        names = [host.name for host in report.hosts if host.status is status]
        if names:
            shown = f" ({clean_line(fold(names))})" if status is not HostStatus.HEALTHY else ""
            parts.append(f"{len(names)} {word}{shown}")
    return f"{_count(len(report.hosts), 'host')}: {', '.join(parts)};"


def _next_step(report: Report) -> str:
    first = next((f for f in report.findings if f.status in (Status.FAIL, Status.WARN)), None)
    if report.stopped_by is not None and report.outstanding:
        return f"doctor {report.run.command} {fold(report.outstanding)}    (those that had not answered)"
    if first is not None:
        return f"doctor explain {first.check}"
    if report.verdict is Verdict.INCONCLUSIVE:
        return "see what was not examined, above; -v shows more"
    return ""

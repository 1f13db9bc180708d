"""One fault: who, what, how that is known, and what to type."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from dataclasses import replace

from rich.console import Console
from rich.text import Text

from doctor.judge.verdict import Report
from doctor.model import Finding, Status, View
from doctor.report.again import verify
from doctor.report.folded import Fault
from doctor.report.headline import are_counted, bare, culprit, culprits, named_or_counted, word
from doctor.report.terminal.page import LABEL, put_edged, put_line, put_rows
from doctor.text.nodeset import fold
from doctor.text.printable import clean, clean_line

STYLE = {
    Status.FAIL: "bold red",
    Status.WARN: "bold yellow",
    Status.CRASH: "bold magenta",
    Status.UNKNOWN: "bold cyan",
}
FROM_HERE = ("ssh ", "doctor ")
"""So begin commands that are typed where the doctor runs."""
EVIDENCE = 6
FRAMES = 3
"""Of a stack, without -v."""
_FRAME = re.compile(r'File "(?P<file>[^"]*)", line (?P<line>\d+) in (?P<name>.+)')


def print_fault(fault: Fault, report: Report, unheard: Set[str], console: Console, verbose: bool) -> None:
    finding, cause = fault.first, fault.cause
    head = Text.assemble(
        ("  └ " if cause else "", "dim"),
        (word(finding), STYLE[finding.status]),
        "  ",
        (clean_line(culprit(finding)), "bold"),
        (f"  {clean_line(fault.title)}", "bold"),
        (_seen_from(finding), "dim"),
    )
    indent = 8 if cause else 6
    put_edged(head, Text(clean_line(finding.check), "dim"), console, indent)
    if are_counted(finding.hosts):  # one line, which can be copied whole
        label = (f"{'hosts':<{LABEL}}  ", "dim")
        put_line(Text.assemble(" " * indent, label, clean_line(finding.nodeset)), console)
    put_rows(_rows(fault, finding, verbose), console, indent)
    if cause is None:  # what mends the cause mends the symptom
        _print_commands(fault, unheard, console, indent)
        _print_verify(fault, finding, report, console, indent)


def _seen_from(finding: Finding) -> str:
    if finding.view is View.CONTAINER:
        return " (seen from inside the container)"
    if finding.seen_from is View.CONTAINER:
        return " (of the host, seen from inside the container)"
    return ""


def _rows(fault: Fault, finding: Finding, verbose: bool) -> Iterator[tuple[str, str]]:
    if cause := fault.cause:
        yield "because", f"{cause.check} on {named_or_counted(cause.hosts) or 'all'}"
    yield "where", _where(fault, finding)
    found, expected = fault.found, fault.expected
    if expected.partition(" ")[2] in finding.summary:
        expected = ""  # the sentence says so already
    yield "found", found + (f"; expected: {expected}" if expected and found else "")
    yield "expected", "" if found else expected
    sentence = _sentence(finding)
    said = fault.title.lower().endswith(sentence.rstrip(".?!").lower()) or word(finding) == "HANG"
    yield "means", sentence if verbose or not said else ""
    if verbose:
        for seen in finding.evidence[:EVIDENCE]:
            yield "seen", f"{seen.source}: {seen.text}"
        yield "certainty", finding.confidence.value
    else:
        yield "stack", _stack(finding)


def _where(fault: Fault, finding: Finding) -> str:
    """The part that is at fault, where nothing else names it."""
    if any(each.devices or each.ranks for each in culprits(finding)):
        return ""
    said = finding.summary + finding.actual + culprit(finding)
    subjects = dict.fromkeys(each.subject for each in fault.findings if each.subject)
    return ", ".join(each for each in subjects if each not in said) if len(subjects) < 4 else ""


def _sentence(finding: Finding) -> str:
    text = bare(clean(finding.summary))
    if finding.status is Status.CRASH:
        text = f"please report this: {text}"
    if text.partition(" ")[0].isalpha():  # not the name of a host or an interface
        text = text[:1].upper() + text[1:]
    return text + ("" if text.endswith((".", "?", "!")) else ".")


def _stack(finding: Finding) -> str:
    """The innermost frames of the first culprit, one a line."""
    stack = next((seen.text for seen in finding.evidence if seen.source.startswith("stack of ")), "")
    frames = [found.expand(r"\g<file>:\g<line> in \g<name>") for found in _FRAME.finditer(stack)]
    more = f"{len(frames) - FRAMES} more (-v)" if len(frames) > FRAMES else ""
    return "\n".join(filter(None, (*frames[:FRAMES], more)))


def _print_verify(fault: Fault, finding: Finding, report: Report, console: Console, indent: int) -> None:
    """Only where the run says how its hosts are reached, and once, if the remedy says it already."""
    if report.run.way is None or report.run.command.startswith("ranktable"):
        return
    ordered = tuple(name for name in report.plan.names if name in finding.hosts)
    command = clean_line(verify(report, replace(finding, hosts=ordered)))
    if not any(command in line for each in fault.findings if each.remedy for line in each.remedy.commands):
        label = (f"{'verify':<{LABEL}}  ", "dim")
        put_line(Text.assemble(" " * indent, label, (command, "cyan")), console)


def _print_commands(fault: Fault, unheard: Set[str], console: Console, indent: int) -> None:
    """Never wrapped: commands are there to be copied."""
    label = "do"
    for where, lines in to_type(fault, unheard):
        put_rows([(label, Text(clean_line(where)))], console, indent)
        label = ""
        for line in lines:
            style = "dim" if line.startswith("#") else "cyan"
            put_line(Text(" " * (indent + 2) + clean_line(line), style=style), console)


def to_type(fault: Fault, unheard: Set[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Where, and the commands. Nothing can be typed on a host out of reach."""
    typed: dict[tuple[str, ...], list[Finding]] = {}
    for each in fault.findings:
        typed.setdefault(each.remedy.commands if each.remedy else (), []).append(each)
    for commands, of in typed.items():
        hosts = tuple(host for each in of for host in each.hosts) if len(typed) > 1 else fault.first.hosts
        if len(typed) > 2 and of[0] is not fault.findings[0]:
            break
        there = commands if hosts and not unheard & set(hosts) else ()
        there = tuple(command for command in there if not command.startswith(FROM_HERE))
        if all(command.startswith("#") for command in there) and len(there) < len(commands):
            there = ()  # a comment stays with the commands that it is about
        here = tuple(command for command in commands if command not in there)
        on = "each of them" if hosts == fault.first.hosts and are_counted(hosts) else fold(hosts)
        for where, lines in ((f"type on {on}:", there), ("type here:", here)):
            if lines:
                yield where, lines
    if len(typed) > 2:
        others = len(fault.findings) - len(next(iter(typed.values())))
        yield f"the other {others} likewise, each with values of its own (-v)", ()

"""The report for a person in a terminal or reading a log: worst first, and at its end who is guilty."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from doctor.judge.verdict import Report
from doctor.model import Status, Verdict
from doctor.report.folded import fold_faults, single
from doctor.report.headline import WORDS
from doctor.report.host_rows import unheard_hosts
from doctor.report.terminal.ending import print_ending
from doctor.report.terminal.fault import STYLE, print_fault
from doctor.report.terminal.hosts import print_hosts
from doctor.report.terminal.opening import print_opening
from doctor.report.terminal.page import Cleaned, put_wrapped
from doctor.report.terminal.smoke import print_smoke
from doctor.report.terminal.unexamined import print_unexamined
from doctor.report.terminal.well import print_well
from doctor.text.printable import clean_line

_TROUBLE = (Status.FAIL, Status.CRASH, Status.WARN)


def print_report(report: Report, console: Console, *, verbose: bool = False, quiet: bool = False) -> None:
    """`verbose` shows each finding by itself, with evidence; `quiet` leaves faults and the last line."""
    console.push_render_hook(Cleaned())
    if not quiet:
        print_opening(report, console)
    unheard = unheard_hosts(report)
    found = [finding for finding in report.findings if finding.status in _TROUBLE]
    for fault in single(found) if verbose else fold_faults(found):
        console.print()
        print_fault(fault, report, unheard, console, verbose)
    for source in report.rules.unloaded:
        console.print()
        broken = Text.assemble((WORDS[Status.CRASH], STYLE[Status.CRASH]), "  ", clean_line(source))
        put_wrapped(broken, console, 0, 4)
    if not quiet:
        print_smoke(report, console, verbose=verbose)
        print_well(report, console, verbose=verbose)
    if not quiet or report.verdict is Verdict.INCONCLUSIVE:
        print_unexamined(report, console)
    if not quiet:
        print_hosts(report, console, verbose=verbose)
    if report.findings or not quiet:
        console.print()
    print_ending(report, console)

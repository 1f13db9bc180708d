"""The report for a person, in a terminal or a log: worst first, with the culprits at the end."""

from __future__ import annotations

from rich.console import Console

from doctor.judge.verdict import Report
from doctor.model import Verdict
from doctor.report.card import Medium
from doctor.report.faults import fault_cards, looked_again, unexamined
from doctor.report.terminal.cards import print_card, print_part, shown_cards
from doctor.report.terminal.ending import print_ending
from doctor.report.terminal.hosts import print_hosts
from doctor.report.terminal.opening import print_opening
from doctor.report.terminal.page import CleanHook
from doctor.report.terminal.passed_values import print_well
from doctor.report.terminal.smoke import print_smoke


def print_report(report: Report, console: Console, *, verbose: bool = False, quiet: bool = False) -> None:
    """`verbose` shows each finding by itself, with evidence; `quiet` shows only faults and the last line."""
    console.push_render_hook(CleanHook())
    if not quiet:
        print_opening(report, console)
    on = Medium.VERBOSE if verbose else Medium.BRIEF
    for card in shown_cards(fault_cards(report, apart=verbose), on):
        console.print()
        print_card(card, console, on)
    if not quiet:
        print_smoke(report, console, verbose=verbose)
        print_well(report, console, verbose=verbose)
    if report.again:
        console.print()
        print_part(looked_again(report), console, on)
    left = unexamined(report)
    if left.pairs and (not quiet or report.verdict is Verdict.INCONCLUSIVE):
        console.print()
        print_part(left, console, on)
    if not quiet:
        print_hosts(report, console, verbose=verbose)
    if report.findings or not quiet:
        console.print()
    print_ending(report, console)

"""What was measured and found healthy, with the values, so that a healthy report can be believed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console
from rich.text import Text

from doctor.judge.verdict import Report
from doctor.model import Verdict
from doctor.report.measurements import Measurement, measured
from doctor.report.passed_checks import passed_lines
from doctor.report.terminal.page import columns, put_line, wrapped
from doctor.text.printable import clean_line
from doctor.text.speech import t, t_list
from doctor.text.wrap import cells, padded

TICK, DOUBT, DASH = "✓", "?", "–"


def print_well(report: Report, console: Console, *, verbose: bool = False) -> None:
    """Prints ticks only if the verdict is healthy; with `verbose` also what passed, whatever the verdict."""
    if report.verdict is Verdict.HEALTHY:
        seen = measured(report)
        untried = [
            Measurement(
                label, ", ".join(f"{each.area} ({each.text})" for each in seen.left if each.left == label)
            )
            for label in dict.fromkeys(each.left for each in seen.left)
        ]
        if seen.ticked or seen.doubtful:
            console.print()
            label = max(cells(t(each.area)) for each in (*seen.ticked, *seen.doubtful, *untried))
            _print_lines(_spoken(seen.ticked), (TICK, "bold green"), label, console)
            _print_lines(_spoken(seen.doubtful), (DOUBT, "bold cyan"), label, console)
            _print_lines(_spoken(untried), (DASH, "bold yellow"), label, console)
    if verbose and (lines := passed_lines(report)):
        console.print()
        put_line(Text(t("Passed"), style="bold"), console)
        spoken = _spoken(lines)
        _print_lines(spoken, (" ", ""), max(cells(each.area) for each in spoken), console)


def _spoken(lines: Sequence[Measurement]) -> list[Measurement]:
    return [replace(each, area=t(each.area), text=t_list(each.text)) for each in lines]


def _print_lines(lines: Sequence[Measurement], mark: tuple[str, str], label: int, console: Console) -> None:
    if columns(console) < 2 * label:
        label = 0  # no room for a second column
    for each in lines:
        indent = label + 6
        area = padded(each.area, label) if label else f"{each.area}:"
        text = Text(clean_line(each.text))
        if not label:
            text = Text(area + " ") + text
        for number, line in enumerate(wrapped(text, console, indent if label else 6)):
            if number:
                put_line(Text(" " * (indent if label else 6)) + line, console)
            else:
                head = Text.assemble("  ", mark, " ", (area + "  ", "dim") if label else "")
                put_line(head + line, console)

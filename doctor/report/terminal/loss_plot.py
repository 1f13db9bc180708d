"""The loss as a picture: how it fell, beside how it falls in a healthy run."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from doctor.facts.smoke import JudgedRun
from doctor.report import smoke
from doctor.report.terminal.page import put_wrapped
from doctor.report.terminal.plot import LEAST, MARGIN, empty_grid, print_grid

ROWS = 8
HIGHEST = 2.0
"""Times where a healthy loss begins: what is above stands at the upper edge."""
MARK, HEALTHY = "*", "─"
Values = Sequence[float | None]


def print_loss(run: JudgedRun, console: Console, indent: int) -> None:
    """Of the cell that learned the least; nothing of a run without a step."""
    learned = smoke.loss(run)
    room = console.width - indent - MARGIN - 1
    if learned is None or room < LEAST:
        return
    should = smoke.healthy_curve(run, smoke.worst_cell(run))
    top = max((value for value in learned.curve if value is not None), default=should[0])
    top = min(max(top, should[0]), HIGHEST * should[0])
    bottom = min([0.0, *(value for value in learned.curve if value is not None)])
    bottom = max(bottom, -top)
    style = {True: "bold green", False: "bold red", None: "bold"}[smoke.is_loss_good(run)]
    grid = empty_grid(ROWS, room)
    for values, sign, how in ((should, HEALTHY, "dim"), (learned.curve, MARK, style)):
        for column, value in enumerate(_stretched(values, run.plan.steps, room)):
            if value is not None:
                share = (min(max(value, bottom), top) - bottom) / (top - bottom)
                grid[round((1 - share) * (ROWS - 1))][column] = (sign, how)
    console.print()
    labels = {row: f"{top - (top - bottom) * row / (ROWS - 1):.1f}" for row in (0, ROWS // 2, ROWS - 1)}
    print_grid(grid, labels, [_ticks(run.plan.steps, room)], console, indent)
    legend = Text.assemble((MARK, style), " loss  ", (HEALTHY, "dim"), " a healthy run  ", *_judged(run))
    put_wrapped(legend, console, indent + MARGIN + 1, indent + MARGIN + 1)


def _stretched(values: Values, steps: int, room: int) -> list[float | None]:
    """One value a column, on the straight line between two steps; None behind the last and at gaps."""
    found: list[float | None] = []
    for column in range(room):
        at = column * (steps - 1) / max(room - 1, 1)
        first = int(at)
        ends = [values[step] if step < len(values) else None for step in (first, min(first + 1, steps - 1))]
        here, there = ends[0], ends[1] if at > first else ends[0]
        found.append(None if here is None or there is None else here + (at - first) * (there - here))
    return found


def _ticks(steps: int, room: int) -> str:
    """The numbers of some steps, below their columns."""
    line = [" "] * (room + 8)
    every = max(1, -(-steps // 6))
    free = 0
    for step in (*range(0, steps - every // 2, every), steps - 1):
        label = f"step {step}" if step == 0 else str(step)
        at = round(step * (room - 1) / max(steps - 1, 1))
        at = min(at, room - len(label))
        if at >= free:
            line[at : at + len(label)] = label
            free = at + len(label) + 1
    return "".join(line).rstrip()


def _judged(run: JudgedRun) -> list[tuple[str, str]]:
    """Whether that is good."""
    learned = smoke.loss(run)
    if learned is None or learned.drop is None or learned.limit is None:
        return [("too few steps to say whether it is good", "dim")]
    good = smoke.is_loss_good(run)
    words = f"{100 * learned.drop:.0f} % of the way, at least {100 * learned.limit:.0f} % is needed"
    return [("good: " if good else "not good: ", "bold green" if good else "bold red"), (words, "")]

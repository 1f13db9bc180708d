"""The curves in the terminal: the guilty ones over the others, and a line at the guilty step."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from doctor.logs.loss.drawn import Drawing, columns, drawing
from doctor.logs.loss.shape import number
from doctor.logs.model import Charge, Curve
from doctor.report.terminal.page import put_wrapped
from doctor.report.terminal.plot import LEAST, MARGIN, empty_grid, print_grid

ROWS = 9
GUILTY, OTHER, SINCE, LOST = "*o+#", "·", "┊", "x"
"""Told apart also where there is no colour; of many guilty ones all are the first sign."""
WIDEST = 120


def print_losses(
    curves: Sequence[Curve], charges: Sequence[Charge], console: Console, indent: int = 0
) -> None:
    """Nothing where the terminal is too narrow, or there are no two losses to draw."""
    room = min(console.width, WIDEST) - indent - MARGIN - 1
    drawn = drawing(curves, charges)
    if drawn is None or room < LEAST:
        return
    grid = empty_grid(ROWS, room)
    mark = None if drawn.mark is None else round(drawn.across(drawn.mark) * (room - 1))
    if mark is not None:
        for row in grid:
            row[mark] = (SINCE, "red")
    for each, (sign, style) in zip(drawn.curves, _signs(drawn), strict=True):
        values, lost = columns(drawn, each, room)
        for column, value in enumerate(values):
            if value is not None:
                grid[round((1 - drawn.height(value)) * (ROWS - 1))][column] = (sign, style)
            if lost[column]:
                grid[0][column] = (LOST, "bold red")
    labels = {row: number(drawn.at(1 - row / (ROWS - 1))) for row in (0, ROWS // 2, ROWS - 1)}
    below = [_ticks(drawn, room)]
    if mark is not None:
        below = [_marked(drawn, mark, room), *below]
    console.print()
    print_grid(grid, labels, below, console, indent)
    put_wrapped(_legend(drawn), console, indent + MARGIN + 1, indent + MARGIN + 1)


def _word(drawn: Drawing, step: int) -> str:
    return f"loss no. {step:,}" if drawn.curves[0].curve.counted else f"step {step:,}"


def _ticks(drawn: Drawing, room: int) -> str:
    begin, end = _word(drawn, drawn.first), f"{drawn.last:,}"
    return begin + end.rjust(room - len(begin)) if len(begin) + len(end) < room else begin


def _marked(drawn: Drawing, column: int, room: int) -> str:
    text = _word(drawn, drawn.mark or 0)
    if column + len(text) + 2 <= room:
        return " " * column + f"▲ {text}"
    return f"{text} ▲".rjust(column + 1)


def _signs(drawn: Drawing) -> list[tuple[str, str]]:
    """The sign and the style of each curve."""
    guilty = [place for place, each in enumerate(drawn.curves) if each.guilty]
    signs = [(OTHER, "dim") if guilty else (GUILTY[0], "bold") for _ in drawn.curves]
    own = GUILTY if len(guilty) <= len(GUILTY) else GUILTY[0] * len(guilty)
    for place, sign in zip(reversed(guilty), own, strict=False):
        signs[place] = (sign, "bold red")
    return signs


def _legend(drawn: Drawing) -> Text:
    named: dict[tuple[str, str], list[str]] = {}
    for each, signed in reversed(list(zip(drawn.curves, _signs(drawn), strict=True))):
        named.setdefault(signed, []).append(each.name)
    text = Text()
    for (sign, style), names in named.items():
        text.append(sign, style)
        text.append(f" {', '.join(names)}  ")
    if drawn.left_out:
        text.append(f"and {drawn.left_out} more  ", "dim")
    if any(loss - loss != 0 for each in drawn.curves for loss in each.curve.losses):
        text.append(LOST, "bold red")
        text.append(" no number  ")
    if drawn.steep:
        text.append("logarithmic", "dim")
    text.rstrip()
    return text

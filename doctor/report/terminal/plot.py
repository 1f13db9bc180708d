"""A drawing of characters with its axes: rows of cells, the labels beside some, the line below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.text import Text

from doctor.report.terminal.page import put_line

MARGIN = 8
"""Columns for the labels of the axis."""
LEAST = 16
"""Columns, below which nothing could be seen."""
Cell = tuple[str, str]
"""A character and its style."""


def print_grid(
    grid: Sequence[Sequence[Cell]],
    labels: Mapping[int, str],
    below: Sequence[str],
    console: Console,
    indent: int,
) -> None:
    """`labels` are by row; `below` stands under the axis, from its first column on."""
    for number, row in enumerate(grid):
        label = labels.get(number, "")
        edge = (f"{label:>{MARGIN - 1}} {'┤' if label else '│'}", "dim")
        line = Text.assemble(" " * indent, edge, *row)
        line.rstrip()
        put_line(line, console)
    put_line(Text(" " * (indent + MARGIN) + "└" + "─" * (len(grid[0]) if grid else 0), "dim"), console)
    for text in below:
        put_line(Text(" " * (indent + MARGIN + 1) + text, "dim"), console)


def empty_grid(rows: int, columns: int) -> list[list[Cell]]:
    return [[(" ", "")] * columns for _ in range(rows)]

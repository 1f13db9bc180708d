"""A drawing of losses in a terminal: the guilty lines on top, and a line at the guilty step."""

from rich.console import Console
from rich.text import Text

from doctor.report.page.losses import LossDrawing, LossRole, is_number
from doctor.report.terminal.page import put_line, put_wrapped
from doctor.text.grouped import grouped
from doctor.text.printable import clean_line
from doctor.text.speech import t
from doctor.text.wrap import cells, padded

ROWS = 9
MARGIN = 8
"""The columns for the labels of the axis."""
LEAST = 16
"""With fewer columns the drawing would be unreadable."""
TICKS = 8
GUILTY, OTHER, SINCE, LOST = "*o+#", "·", "┊", "x"
"""Signs that differ without colours too; if there are many guilty lines, all of them use the first sign."""
_REFERENCES = {LossRole.HEALTHY: ("─", "dim"), LossRole.LEAST: ("┄", "dim")}
Sign = tuple[str, str]
"""A character and its style."""


def print_losses(drawing: LossDrawing, console: Console, indent: int) -> None:
    """Prints the drawing; nothing if the terminal is too narrow."""
    room = console.width - indent - MARGIN - 1
    if room < LEAST:
        return
    console.print()
    axes, signs = drawing.axes, _signs(drawing)
    grid: list[list[Sign]] = [[(" ", "")] * room for _ in range(ROWS)]
    mark = None if drawing.mark is None else round(axes.across(drawing.mark) * (room - 1))
    if mark is not None:
        for row in grid:
            row[mark] = (SINCE, "red")
    for line, sign in zip(drawing.lines, signs, strict=True):
        values, lost = drawing.columns(line, room)
        for column, value in enumerate(values):
            if value is not None:
                grid[round((1 - axes.height(value)) * (ROWS - 1))][column] = sign
            if lost[column]:
                grid[0][column] = (LOST, "bold red")
    for number, row in enumerate(grid):
        shown = axes.label(1 - number / (ROWS - 1)) if number in (0, ROWS // 2, ROWS - 1) else ""
        text = Text.assemble(" " * indent, (f"{shown:>{MARGIN - 1}} {'┤' if shown else '│'}", "dim"), *row)
        text.rstrip()
        put_line(text, console)
    put_line(Text(" " * (indent + MARGIN) + "└" + "─" * room, "dim"), console)
    below = [_ticks(drawing, room)] if mark is None else [_marked(drawing, mark, room), _ticks(drawing, room)]
    for words in below:
        put_line(Text(" " * (indent + MARGIN + 1) + words, "dim"), console)
    put_wrapped(_legend(drawing, signs), console, indent + MARGIN + 1, indent + MARGIN + 1)


def _word(drawing: LossDrawing, step: int) -> str:
    return t(f"step {step:,}" if drawing.across == "step" else f"loss no. {step:,}")


def _ticks(drawing: LossDrawing, room: int) -> str:
    """The numbers of some steps below their columns."""
    first, *inner = drawing.axes.ticks(TICKS)
    line, end = _word(drawing, first), f"{drawing.axes.last:,}"
    for step in inner[:-1]:
        at, shown = round(drawing.axes.across(step) * (room - 1)), f"{step:,}"
        if cells(line) < at and at + len(shown) + len(end) < room:
            line = padded(line, at) + shown
    return line + end.rjust(room - cells(line)) if inner and cells(line) + len(end) < room else line


def _marked(drawing: LossDrawing, column: int, room: int) -> str:
    text = _word(drawing, drawing.mark or 0)
    if column + cells(text) + 2 <= room:
        return " " * column + f"▲ {text}"
    return " " * (column - cells(text) - 1) + f"{text} ▲"


def _signs(drawing: LossDrawing) -> list[Sign]:
    guilty = [place for place, line in enumerate(drawing.lines) if line.role is LossRole.GUILTY]
    plain = (OTHER, "dim") if guilty else (GUILTY[0], "bold")
    signs = [_REFERENCES.get(line.role, plain) for line in drawing.lines]
    own = GUILTY if len(guilty) <= len(GUILTY) else GUILTY[0] * len(guilty)
    for place, sign in zip(reversed(guilty), own, strict=False):
        signs[place] = (sign, "bold red")
    return signs


def _legend(drawing: LossDrawing, signs: list[Sign]) -> Text:
    lines = reversed(list(zip(signs, drawing.lines, strict=True)))
    named = grouped((signed, clean_line(t(line.name))) for signed, line in lines)
    text = Text()
    for (sign, style), names in named.items():
        text.append(sign, style)
        text.append(f" {', '.join(names)}  ")
    if drawing.left_out:
        text.append(t(f"and {drawing.left_out} more") + "  ", "dim")
    if any(not is_number(loss) for line in drawing.lines for loss in line.losses):
        text.append(LOST, "bold red")
        text.append(f" {t('not a number')}  ")
    if drawing.axes.steep:
        text.append(f"{t('logarithmic')}  ", "dim")
    if drawing.judged:
        good = {True: (t("good: "), "bold green"), False: (t("not good: "), "bold red"), None: ("", "")}
        text.append_text(Text.assemble(good[drawing.is_good], t(drawing.judged)))
    text.rstrip()
    return text

"""Draws the table of hosts within the width of the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from doctor.judge.verdict import Report
from doctor.model import HostStatus
from doctor.report.host_rows import NOT_READ, NOTHING, OK, PART_READ, UNDECIDED, HostRow, host_rows
from doctor.report.terminal.page import columns, put_line, put_wrapped
from doctor.text.nodeset import fold
from doctor.text.printable import clean_line

MOST = 12
"""Rows: with the last lines below it, the table fits into a terminal of 24."""
NAMES = 10
"""Columns at least for names of hosts."""
VERDICT = 20
"""Columns at least for the verdict."""
GAP = "  "
_STYLE = {
    OK: "green",
    NOTHING: "dim",
    NOT_READ: "cyan",
    PART_READ: "cyan",
    UNDECIDED: "bold yellow",
    "not proved healthy": "bold cyan",
}


def print_hosts(report: Report, console: Console, *, verbose: bool = False) -> None:
    """Nothing for one host, and where all are well."""
    rows = host_rows(report)
    if len(report.hosts) < 2 or all(row.verdict == OK for row in rows):
        return
    shown = rows if verbose or len(rows) <= MOST else _worst(rows, report)
    room = columns(console)
    names = [clean_line(fold(row.hosts)) for row in shown]
    first = min(max(cell_len(name) for name in ("HOST", *names)), max(NAMES, room // 3))
    verdict = min(max(cell_len(row.verdict) for row in shown), max(VERDICT, room // 2))
    areas, well = _fitting(shown, room - first - len(GAP) - verdict)
    widths = [_width(shown, area) for area in areas]
    console.print()
    _print_row(["HOST", *areas, "verdict"], ["dim"] * (len(areas) + 2), [first, *widths, room], console)
    for name, row in zip(names, shown, strict=True):
        cells = [row.cells[area] for area in areas]
        left = room - first - sum(widths) - len(GAP) * (len(areas) + 1)
        styles = ["bold", *map(_style, cells), _style(row.verdict)]
        _print_row([name, *cells, row.verdict], styles, [first, *widths, max(left, 1)], console)
    if well:
        put_wrapped(Text(f"ok on all: {', '.join(well)}", "dim"), console)
    if len(shown) < len(rows):
        hosts = sum(len(row.hosts) for row in rows) - sum(len(row.hosts) for row in shown)
        put_line(Text(f"and {hosts} more hosts in {len(rows) - len(shown)} rows (-v)", "dim"), console)


def _worst(rows: Sequence[HostRow], report: Report) -> list[HostRow]:
    """The first rows of faulty hosts, and of others while there is room, in the order of the hosts."""
    order = (HostStatus.FAULTY, HostStatus.UNEXAMINED, HostStatus.HEALTHY)
    status = {host.name: order.index(host.status) for host in report.hosts}
    kept = sorted(rows, key=lambda row: (status[row.hosts[0]], row.verdict == OK))[: MOST - 1]
    return [row for row in rows if row in kept]


def _fitting(rows: Sequence[HostRow], room: int) -> tuple[list[str], list[str]]:
    """The areas that are shown, and those left out in which all is well."""
    areas = [area for area in rows[0].cells if any(row.cells[area] != NOTHING for row in rows)]
    odd = [area for area in areas if any(row.cells[area] not in (OK, NOTHING) for row in rows)]
    kept: list[str] = []
    for area in (*odd, *(area for area in areas if area not in odd)):
        width = len(GAP) + _width(rows, area)
        if width <= room:
            kept.append(area)
            room -= width
    return [area for area in areas if area in kept], [a for a in areas if a not in (*kept, *odd)]


def _width(rows: Sequence[HostRow], area: str) -> int:
    return max(len(area), *(len(row.cells[area]) for row in rows))


def _style(cell: str) -> str:
    if cell in _STYLE:
        return _STYLE[cell]
    warned = cell.startswith("WARN") or "warning" in cell
    return "bold yellow" if warned else "bold magenta" if "BROKEN" in cell or "broken" in cell else "bold red"


def _print_row(cells: Sequence[str], styles: Sequence[str], widths: Sequence[int], console: Console) -> None:
    line = Text()
    for number, (cell, style, width) in enumerate(zip(cells, styles, widths, strict=True), 1):
        fits = cell_len(cell) <= width
        shown = cell if fits else set_cell_size(cell, width - 1) + "…"
        line = line + Text(GAP if line else "") + Text(shown, style)
        line.append(" " * (width - cell_len(shown)) if number < len(cells) else "")
    line.rstrip()
    put_line(line, console)

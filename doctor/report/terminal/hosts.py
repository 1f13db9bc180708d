"""The table of hosts, within the width of the terminal."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from doctor.report.page.card import HostTable
from doctor.report.page.host_rows import NOT_READ, NOTHING, OK, PART_READ, UNDECIDED, HostRow, by_trouble
from doctor.report.page.names import MANY, Called, named
from doctor.report.terminal.page import GAP, columns, put_cells, put_line, put_wrapped
from doctor.text.nodeset import cut
from doctor.text.printable import clean_line
from doctor.text.speech import t

MOST = 12
"""The most rows: with the last lines below it, the table fits a terminal with 24 lines."""
NAMES = 12
"""The least number of columns for the names of hosts."""
VERDICT = 20
"""The least number of columns for the verdict."""
LEAST = 8
"""The columns for the verdict if there is no room for more."""
_SHORT = {"device network": "links", PART_READ: "part", NOT_READ: "unread", UNDECIDED: "open"}
_STYLE = {
    OK: "green",
    NOTHING: "dim",
    NOT_READ: "cyan",
    PART_READ: "cyan",
    UNDECIDED: "bold yellow",
    "not proved healthy": "bold cyan",
}


def print_hosts(table: HostTable, console: Console, *, verbose: bool) -> None:
    rows, number = table.rows, sum(len(row.hosts) for row in table.rows)
    shown: Sequence[HostRow] = rows if verbose or len(rows) <= MOST else rows[: MOST - 1]
    whole = len(shown) == len(rows)
    if whole and number >= MANY:
        shown = sorted(shown, key=lambda row: 2 * len(row.hosts) > number)
    names = [_who(row, table.called, number, whole) for row in shown]
    layout = _layout(names, shown, columns(console))
    heads = (t("HOST"), *map(layout.say, layout.areas), t("verdict"))
    put_cells((Text(head, "dim") for head in heads), layout.widths, console)
    for name, row in zip(names, shown, strict=True):
        cells = [
            Text(cut(name, layout.widths[0]), "bold"),
            *(Text(layout.say(cell), _style(cell)) for cell in (row.cells[area] for area in layout.areas)),
            Text(_verdict(row.verdict), _style(row.verdict)),
        ]
        put_cells(cells, layout.widths, console)
    if layout.lost:
        put_wrapped(Text(t(f"faults also in: {', '.join(layout.lost)}"), "dim"), console)
    if layout.well:
        put_wrapped(Text(t(f"ok on all: {', '.join(layout.well)}"), "dim"), console)
    if not whole:
        hosts = number - sum(len(row.hosts) for row in shown)
        put_line(Text(t(f"and {hosts} more hosts in {len(rows) - len(shown)} rows (-v)"), "dim"), console)


@dataclass(frozen=True, slots=True)
class _Layout:
    """`well` are areas that are left out because nothing is wrong there. `say` shortens a cell or its head so
    that it fits.
    """

    areas: Sequence[str]
    well: Sequence[str]
    lost: Sequence[str]
    """Areas with a fault that do not fit this width."""
    widths: Sequence[int]
    say: Callable[[str], str]


def _who(row: HostRow, called: Called, number: int, whole: bool) -> str:
    """The names in a row. With many hosts, their number comes first, and a row with most of the hosts is
    called "others" if no row is left out.
    """
    folded = clean_line(named(row.hosts, called))
    if number < MANY or len(row.hosts) == number:
        return folded
    others = whole and 2 * len(row.hosts) > number
    return f"{len(row.hosts):>{len(str(number))}}  {t('others') if others else folded}"


def _layout(who: Sequence[str], rows: Sequence[HostRow], room: int) -> _Layout:
    """Areas with faults come first: names and verdict are shortened for them, then the words of the cells."""
    wrong, unread, well = by_trouble(rows)
    areas = [area for area in rows[0].cells if area in (*wrong, *unread, *well)]
    cells = {area: {row.cells[area] for row in rows} for area in areas}
    names = min(max(cell_len(name) for name in ("HOST", *who)), max(NAMES, room // 3))
    verdict = min(max(cell_len(_verdict(row.verdict)) for row in rows), max(VERDICT, room // 2))
    small = (min(names, NAMES), min(verdict, VERDICT))
    tries: Sequence[tuple[int, int, Callable[[str], str]]] = (
        (names, verdict, t),
        (*small, t),
        (*small, _short),
        (small[0], min(verdict, LEAST), _short),
    )
    for first, last, say in tries:
        widths = {area: max(cell_len(say(text)) for text in (area, *cells[area])) for area in areas}
        left = room - first - last - GAP
        if sum(GAP + widths[area] for area in wrong) <= left:
            break
    kept: list[str] = []
    for area in wrong:
        if GAP + widths[area] <= left:
            kept.append(area)
            left -= GAP + widths[area]
    wider = min(names - first, left)
    first, left = first + wider, left - wider
    left -= min(verdict - last, left)
    for area in (*unread, *well):
        if GAP + widths[area] <= left:
            kept.append(area)
            left -= GAP + widths[area]
    shown = [area for area in areas if area in kept]
    rest = room - first - sum(GAP + widths[area] for area in shown) - GAP
    well = [area for area in well if area not in kept]
    lost = [area for area in wrong if area not in kept]
    return _Layout(shown, well, lost, [first, *(widths[area] for area in shown), max(rest, 1)], say)


def _short(cell: str) -> str:
    for ending, word in (("fault", "FAIL"), ("warning", "WARN"), ("broken check", "BROKEN")):
        if cell.rstrip("s").endswith(ending):
            return t(word)
    return t(_SHORT.get(cell, cell))


def _verdict(said: str) -> str:
    """The verdict of a host: its word is translated, the ids are not."""
    word, gap, rest = said.partition("  ")
    return f"{t(word)}{gap}{t(rest)}"


def _style(cell: str) -> str:
    if cell in _STYLE:
        return _STYLE[cell]
    warned = cell.startswith("WARN") or "warning" in cell
    return "bold yellow" if warned else "bold magenta" if "BROKEN" in cell or "broken" in cell else "bold red"

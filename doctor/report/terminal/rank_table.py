"""The tables of the ranks with their step times and losses, and of the slowest pairs of hosts."""

from collections.abc import Iterator, Sequence
from statistics import median

from rich.console import Console
from rich.text import Text

from doctor.facts.smoke import JudgedRun
from doctor.report.page import smoke
from doctor.report.page.smoke import SLOW, RankPace, RunNumbers, rank_paces, worst_paces
from doctor.report.terminal.page import GAP, put_cells, put_line
from doctor.text.printable import clean_line
from doctor.text.ranks import ranks_text
from doctor.text.speech import t

MOST_RANKS, MOST_PAIRS = 16, 5
Row = tuple[tuple[str, str], ...]
"""Cells with their styles."""


def print_ranks(run: JudgedRun, console: Console, indent: int) -> None:
    paces = rank_paces(run)
    if not paces:
        return
    shown = worst_paces(paces, MOST_RANKS)
    heads = ("rank", "host", "step ms", "late by", "waits", "loss", "share", "")
    _print_table(heads, list(_ranks(shown)), console, indent)
    if rest := [pace for pace in paces if pace not in shown]:
        least, most = (1e3 * each([pace.step for pace in rest]) for each in (min, max))
        words = f"{ranks_text([pace.rank for pace in rest], most=3)}: {least:.1f} to {most:.1f} ms a step"
        put_line(Text(" " * indent + t(words), "dim"), console)


def _ranks(paces: Sequence[RankPace]) -> Iterator[Row]:
    for pace in paces:
        style = "bold red" if pace.check else ""
        yield (
            (str(pace.rank), style or "bold"),
            (pace.host, style or "bold"),
            (f"{1e3 * pace.step:.1f}", ""),
            (f"{1e3 * pace.late:+.1f} ms", style if pace.check in SLOW else ""),
            (f"{1e3 * pace.wait:.1f} ms", ""),
            (f"{pace.loss:.2f}" if pace.loss is not None else "-", ""),
            (
                f"{100 * pace.loss_share:.0f} %" if pace.loss is not None else "-",
                "" if pace.check in SLOW else style,
            ),
            (pace.check, "dim"),
        )


def print_pairs(seen: RunNumbers, console: Console, indent: int) -> None:
    """Prints the slowest pairs, each with its share of the median."""
    links = seen.links
    if len(links) < 2:
        return
    usual = median(link.rate for link in links)
    rows = []
    for link in links[:MOST_PAIRS]:
        style = "bold red" if seen.slow_hosts & set(link.hosts) else ""
        rows.append(
            (
                (" - ".join(link.hosts), style or "bold"),
                (smoke.rate_text(link.rate), style),
                (f"{100 * link.rate / usual:.0f} %", style),
                (f"{1e3 * link.round_trip:.2f} ms", ""),
            )
        )
    _print_table(("slowest pairs", "each way", "of usual", "round trip"), rows, console, indent)


def _print_table(heads: Sequence[str], rows: Sequence[Row], console: Console, indent: int) -> None:
    """Prints a table; columns at the right that do not fit are left out."""
    first = [Text(t(head), "dim") for head in heads]
    table = [first, *([Text(clean_line(text), style) for text, style in row] for row in rows)]
    widths = [max(row[column].cell_len for row in table) for column in range(len(heads))]
    while len(widths) > 1 and indent + sum(widths) + GAP * (len(widths) - 1) > console.width:
        widths.pop()
    console.print()
    for row in table:
        put_cells(row, widths, console, indent)

"""The facts of all hosts on one screen: equal facts once, different ones as a table with outliers marked.

In the table, hosts that reported the same are one group. Groups are rows and facts are columns; if that is
too wide, the table is transposed, and if it is still too wide, it is split into several parts.
"""

from collections.abc import Collection, Iterator, Sequence

from rich.console import Console
from rich.text import Text

from doctor.judge.fact_table import FactRow
from doctor.judge.verdict import Report
from doctor.report.page.areas import AREAS
from doctor.report.page.facts import ODD, conclusion, differs, heard, spread, standing_out
from doctor.report.terminal.page import GAP, put_cells, put_line, put_wrapped
from doctor.text.nodeset import fold
from doctor.text.printable import clean_line
from doctor.text.speech import sign, t
from doctor.text.wrap import padded

NOT_REPORTED = "not reported"
_INDENT = 17
_CELL = 36
"""The most characters of a cell; files hold the whole text."""
_NAMED = 4
"""The most hosts shown that call themselves by a different name than the user does."""
_LONG = 60
_MOST_NAMES = 400
Column = tuple[Text, ...]


def print_facts(report: Report, console: Console, *, verbose: bool = False, quiet: bool = False) -> None:
    """Prints the facts. `verbose`: a table of all of them; `quiet`: only what stands out."""
    rows, told = report.seen.facts, heard(report)
    differing = [row for row in rows if differs(row, told)]
    if quiet:
        if standing_out(report):
            _print_end(report, [], console, apart=False)
        return
    if verbose:
        differing = [row for row in rows if row.values]
    _print_head(len(rows), told, console)
    for area in AREAS:
        alike = [row for row in rows if row.area == area and row not in differing]
        facts = [text for row in alike if (text := _alike(row, told))]
        if facts:
            _print_hanging(Text(padded(t(area), _INDENT - 2), style="bold"), facts, console)
    if differing:
        console.print()
        longest = max(min(_CELL, (console.width - GAP) // 2), 12)  # two cells always fit
        _print_table(differing, _groups(differing, told, longest), console)
    _print_end(report, [row for row in differing if differs(row, told)], console, apart=True)


def _print_end(report: Report, differing: Collection[FactRow], console: Console, *, apart: bool) -> None:
    for line in conclusion(report, differing):
        if apart:
            console.print()
        apart = False
        put_wrapped(Text(t(clean_line(line.text)), "bold red" if line.kind else "bold"), console, wide=True)


def _print_head(count: int, told: Sequence[str], console: Console) -> None:
    names = (clean_line(_shortened(fold(told), _MOST_NAMES)) or t("No host reported anything."), "bold")
    number = f"{len(told)} host{'' if len(told) == 1 else 's'}"
    reported = t(f"  {number} reported {count} facts") if told else ""
    put_wrapped(Text.assemble(names, (reported, "dim")), console, wide=True)


def _alike(row: FactRow, hosts: Sequence[str]) -> Text | None:
    text = _own_names(row) if row.key == "host_name" else _value(row, hosts)
    return Text.assemble((f"{t(row.title)} ", "dim"), clean_line(t(text))) if text else None


def _value(row: FactRow, hosts: Sequence[str]) -> str:
    if row.key in ("data_address", "rank_address") and len(hosts) > 1:
        addresses = fold(str(address) for address in row.values.values())
        return addresses if len(addresses) <= _LONG else spread(row, hosts)
    return spread(row, hosts)


def _own_names(row: FactRow) -> str:
    """The hosts that call themselves by a different name than the user does; empty if there are none."""
    other = [
        f"{own} (of {host})" for host, own in row.shown.items() if own.split(".")[0] != host.split(".")[0]
    ]
    return ", ".join(other[:_NAMED]) + (f" and {len(other) - _NAMED} more" if len(other) > _NAMED else "")


def _groups(rows: Sequence[FactRow], hosts: Sequence[str], longest: int) -> list[list[Text]]:
    """The name and the values of each group of hosts, the largest first; similar values count as equal unless
    one of them is an outlier.
    """
    found: dict[object, list[str]] = {}
    for host in hosts:
        key = tuple(
            (host in row.values, host in row.odd, row.shown.get(host) if row.kind == "same" else "")
            for row in rows
        )
        found.setdefault(key, []).append(host)
    return [
        [_cut(fold(group), longest, "bold"), *(_cell(row, group, longest) for row in rows)]
        for group in sorted(found.values(), key=lambda group: -len(group))
    ]


def _cell(row: FactRow, hosts: Sequence[str], longest: int) -> Text:
    if hosts[0] not in row.values:
        return Text(t(NOT_REPORTED), style="dim")
    text = t(spread(row, hosts))
    odd = hosts[0] in row.odd
    return _cut(f"{ODD} {text}" if odd else text, longest, "bold red" if odd else "")


def _print_table(rows: Sequence[FactRow], groups: Sequence[Sequence[Text]], console: Console) -> None:
    heads = [Text(t(title), style="dim") for title in ("HOST", *(row.title for row in rows))]
    table: list[Sequence[Text]] = [heads, *groups]
    columns = list(zip(*table, strict=True))
    if _width(columns) > console.width:
        table, columns = list(columns), [tuple(row) for row in table]
    for number, part in enumerate(_parts(columns, console.width)):
        if number:
            console.print()
        for row in zip(*part, strict=True):
            put_cells(row, map(_widest, part), console)


def _parts(columns: Sequence[Column], width: int) -> Iterator[list[Column]]:
    """The columns in parts that fit the width, each with the first one."""
    first, *others = columns
    part = [first]
    for column in others:
        if len(part) > 1 and _width([*part, column]) > width:
            yield part
            part = [first]
        part.append(column)
    yield part


def _widest(column: Column) -> int:
    return max(cell.cell_len for cell in column)


def _width(columns: Sequence[Column]) -> int:
    return sum(map(_widest, columns)) + GAP * (len(columns) - 1)


def _print_hanging(head: Text, facts: Sequence[Text], console: Console) -> None:
    """Prints facts one after the other; a fact that fits on a line is not broken."""
    room = max(console.width - _INDENT, 20)
    lines = [Text()]
    for fact in facts:
        more = Text(sign(", ")) if lines[-1] else Text()
        if lines[-1] and lines[-1].cell_len + 3 + fact.cell_len > room:
            lines[-1].append(sign(",").strip())
            lines.append(Text())
            more = Text()
        lines[-1] = lines[-1] + more + fact
    for number, line in enumerate(part for whole in lines for part in whole.wrap(console, room)):
        line.rstrip()
        put_line(Text("  ") + (head if number == 0 else Text(" " * (_INDENT - 2))) + line, console)


def _cut(text: str, longest: int, style: str = "") -> Text:
    return Text(_shortened(clean_line(text), longest), style=style)


def _shortened(text: str, most: int) -> str:
    """The beginning and the end of the text: similar texts often differ in one of them."""
    tail = (most - 3) // 2
    return text if len(text) <= most else f"{text[: most - 3 - tail]}...{text[-tail:]}"

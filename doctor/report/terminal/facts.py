"""The facts of all hosts on one screen: equal facts once, different ones as a table with outliers marked.

In the table, hosts that reported the same are one group. Groups are rows and facts are columns; if that is
too wide, the table is transposed, and if it is still too wide, it is split into several parts.
"""

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from doctor.judge.fact_table import FactRow, far_apart
from doctor.judge.verdict import Report
from doctor.report.page.areas import AREAS
from doctor.report.page.fact_words import spread
from doctor.report.terminal.page import GAP, put_cells, put_line, put_wrapped
from doctor.text.nodeset import fold
from doctor.text.printable import clean_line
from doctor.text.speech import sign, t
from doctor.text.wrap import padded

ODD = "!"
"""The mark of an outlier, visible without colours too."""
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
        for line in _end(report, told, []) if standing_out(report) else ():
            put_wrapped(_spoken(line), console, wide=True)
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
        _print_table(differing, _groups(differing, told, _longest(console)), console)
    end = list(_end(report, told, [row for row in differing if differs(row, told)]))
    if end:
        console.print()
    for line in end:
        put_wrapped(_spoken(line), console, wide=True)


def _spoken(line: Text) -> Text:
    return Text(t(line.plain), style=line.style)


def heard(report: Report) -> list[str]:
    """The hosts that reported something."""
    return [host.name for host in report.hosts if host.name not in report.silent]


def standing_out(report: Report) -> bool:
    """Whether a host differs from the others, or did not report everything."""
    odd = any(row.odd for row in report.seen.facts)
    return bool(report.silent or report.findings or not_whole(report) or odd)


def not_whole(report: Report) -> bool:
    """Whether a host that answered did not report everything."""
    return bool(report.seen.unread) or any(each.check == "probe-incomplete" for each in report.findings)


def differs(row: FactRow, hosts: Sequence[str]) -> bool:
    """Whether it belongs in the table: some hosts reported an unexpected value, or none."""
    if len(row.values) < len(hosts):
        return True
    unlike = far_apart(row) if row.kind == "near" else len(set(row.shown.values())) > 1
    return row.kind != "own" and (bool(row.odd) or unlike)


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
    more = f" and {len(other) - _NAMED} more" if len(other) > _NAMED else ""
    return ", ".join(other[:_NAMED]) + more


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
    members = sorted(found.values(), key=lambda group: -len(group))
    return [
        [_cut(fold(group), longest, "bold"), *(_cell(row, group, longest) for row in rows)]
        for group in members
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


def conclusion(report: Report) -> list[str]:
    """What the facts of the hosts come to, in sentences."""
    told = heard(report)
    differing = [row for row in report.seen.facts if differs(row, told)]
    return [line.plain for line in _end(report, told, differing)]


def _end(report: Report, told: Sequence[str], differing: Sequence[FactRow]) -> Iterator[Text]:
    """The hosts that need attention, and why."""
    by_fact: dict[tuple[str, ...], list[str]] = {}
    for host in told:
        if titles := tuple(row.title for row in report.seen.facts if host in row.odd):
            by_fact.setdefault(titles, []).append(host)
    named = [f"{fold(hosts)} ({', '.join(titles)})" for titles, hosts in by_fact.items()]
    if named:
        yield Text(clean_line(f"{ODD} Unlike the others: {'; '.join(named)}."), "bold red")
    elif differing:
        yield Text("The hosts differ, and none is the odd one out.", "bold")
    elif len(told) > 1:
        partly = not_whole(report)
        whole = "The hosts are alike in what they reported." if partly else "All hosts are alike."
        yield Text("All hosts that answered are alike." if report.silent and not partly else whole, "bold")
    for said in report.seen.unread:
        yield Text(clean_line(said), "bold red")
    reasons: dict[str, list[str]] = {}
    for host, reason in report.silent.items():
        reasons.setdefault(reason, []).append(host)
    for reason, hosts in reasons.items():
        yield Text(clean_line(f"{ODD} {fold(hosts)} reported nothing: {reason}"), "bold red")
    for finding in report.findings:
        if finding.check == "probe-incomplete" and finding.hosts:
            said = f"{ODD} {finding.nodeset} did not report everything: {finding.summary}"
            yield Text(clean_line(said), "bold red")


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
    broken = [part for line in lines for part in line.wrap(console, room)]
    for number, line in enumerate(broken):
        line.rstrip()
        put_line(Text("  ") + (head if number == 0 else Text(" " * (_INDENT - 2))) + line, console)


def _longest(console: Console) -> int:
    """The width of a cell; two cells always fit."""
    return max(min(_CELL, (console.width - GAP) // 2), 12)


def _cut(text: str, longest: int, style: str = "") -> Text:
    return Text(_shortened(clean_line(text), longest), style=style)


def _shortened(text: str, most: int) -> str:
    """The beginning and the end of the text: similar texts often differ in one of them."""
    tail = (most - 3) // 2
    return text if len(text) <= most else f"{text[: most - 3 - tail]}...{text[-tail:]}"

"""Cards and parts as HTML: quotes are set apart, long lists are cut."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from doctor.report.html.losses import losses_figure
from doctor.report.html.markup import (
    NOTHING,
    Html,
    folded,
    join,
    listed,
    pill,
    scrolling,
    table,
    tag,
    verbatim,
)
from doctor.report.page.card import (
    SIGNS,
    Card,
    CardKind,
    Cell,
    Chart,
    Grid,
    HostTable,
    Medium,
    Pairs,
    Part,
    Row,
    RowForm,
    Section,
    Table,
    Ticks,
    Words,
)
from doctor.report.page.host_rows import NOT_READ, OK, PART_READ, UNDECIDED, HostRow, by_trouble
from doctor.report.page.host_rows import NOTHING as NO_CHECK
from doctor.report.page.names import Called
from doctor.text.speech import spoken_command, spoken_end, t, t_list

SHORT = 32
"""A cell of a table with at most this many characters stays on one line."""
MOST = 300
"""The most cards, and lines of a list: a browser could not open a larger page. The JSON has the rest."""
MOST_TYPED = 20
"""The most blocks of commands on a card."""
MANY_NAMES = 20
LONG = 400
"""A longer cell is folded."""
LONGEST = 6000
"""The most characters of a quote on a card."""


def kind_class(kind: CardKind) -> str:
    return "fail" if kind is CardKind.BROKEN else kind.value


def cards_part(cards: Iterable[Card]) -> Html:
    shown = [card for card in cards if Medium.HTML in card.on]
    return join((*map(card_article, shown[:MOST]), _left(shown)))


def _left(shown: Sequence[object]) -> Html:
    more = len(shown) - MOST
    return tag("p", f"{more} more are left out here: see the JSON.") if more > 0 else NOTHING


def card_article(card: Card) -> Html:
    rows = [row for row in card.rows if Medium.HTML in row.on and (row.lines or row.head)]
    said = [row for row in rows if row.form not in (RowForm.QUOTED, RowForm.TYPED)]
    quoted = [row for row in rows if row.form is RowForm.QUOTED]
    kind = kind_class(card.kind)
    head = tag(
        "h3",
        pill(card.word, kind) if card.word else NOTHING,
        tag("span", card.who or card.says, class_="who"),
        tag("span", card.says, card.aside, class_="said") if card.who else NOTHING,
        tag("code", t(card.tag)),
    )
    return tag(
        "article",
        *(tag("span", id=id) for id in card.ids[1:]),
        head if card.says else NOTHING,
        tag("dl", *map(_pair, said)) if said else NOTHING,
        *(_titled(row) for row in quoted if _is_open(row)),
        *map(_typed, [row for row in rows if row.form is RowForm.TYPED][:MOST_TYPED]),
        *(folded(_summary(row), _quoted(row)) for row in quoted if not _is_open(row)),
        id=next(iter(card.ids), None),
        class_=f"{kind} symptom" if card.follows else kind,
    )


def _is_open(row: Row) -> bool:
    """Whether a quote is not folded: others show it too, or it is there for this page."""
    return Medium.BRIEF in row.on or row.on is Medium.HTML


def _titled(row: Row) -> Html:
    """A quote under its name if only this page has it."""
    title = tag("p", _summary(row), class_="soft") if row.on is Medium.HTML else NOTHING
    return join((title, _quoted(row)))


def _pair(row: Row) -> Html:
    said = join(_numbered(row), "\n")
    if row.form is RowForm.HOSTS:
        said = listed(row.lines)
    elif row.link:
        said = tag("a", said, href=f"#{row.link}")
    elif row.head:
        said = join((tag("strong", row.head), ": " if said else "", said))
    return join((tag("dt", row.label), tag("dd", said)))


def _numbered(row: Row) -> Sequence[str]:
    if row.form is not RowForm.NUMBERED:
        return row.lines
    return [f"{number}. {t(line)}" for number, line in enumerate(row.lines, 1)]


def _typed(row: Row) -> Html:
    """Commands; a comment is not for copying, but it stays with its commands."""
    where = row.head or ("" if row.label == "do" else f"{row.label}:")
    return join(
        (
            tag("p", where, class_="soft") if where else NOTHING,
            tag("pre", "\n".join(map(spoken_command, row.lines)), tabindex=0) if row.lines else NOTHING,
        )
    )


def _summary(row: Row) -> str:
    """The summary of rows that are folded; a terminal shows these only with -v."""
    return f"{row.label.capitalize()} on {row.head}" if row.head else row.label.capitalize()


def _quoted(row: Row) -> Html:
    whole = "\n".join(row.lines)
    left = len(whole) - LONGEST
    shown = whole[:LONGEST] + (f"\n… {left} more characters" if left > 0 else "")
    return tag("pre", shown, class_="quoted", tabindex=0)


def part_inside(part: Part) -> Html:
    writers: Mapping[type[Part], Callable[..., Html]] = {
        Row: _row,
        Pairs: _pairs,
        Table: _table,
        HostTable: _host_table,
        Ticks: lambda part: tag("ul", *(tag("li", *_tick(*line)) for line in part.lines), class_="ticks"),
        Grid: _grid,
        Section: _inner,
    }
    return losses_figure(part.drawing) if isinstance(part, Chart) else writers[type(part)](part)


def _inner(part: Section) -> Html:
    lines = (
        tag("p", join(map(_words, words), " ")) for words in part.lines if any(each.text for each in words)
    )
    inner = [_under_title(each) for each in part.parts if Medium.HTML in each.on]
    beside = not part.lines and all(isinstance(each, Table) for each in part.parts)
    return join((*lines, tag("div", *inner, class_="side") if beside else join(inner)))


def _under_title(part: Part) -> Html:
    """A part of a section; tables and drawings have their own titles."""
    title = tag("h3", part.label) if isinstance(part, Row) and part.label else NOTHING
    return join((title, part_inside(part)))


def _words(words: Words) -> Html:
    said = f"{t(words.text)}{spoken_end(words.after)}"
    return tag("span", verbatim(said), class_=kind_class(words.kind)) if words.kind else verbatim(said)


def _row(part: Row) -> Html:
    lines = part.lines[:MOST]
    if part.form is RowForm.TYPED:
        whole = tag("pre", "\n".join(map(spoken_command, lines)), tabindex=0)
    elif part.form is RowForm.QUOTED:
        whole = tag("pre", "\n".join(lines), class_="quoted", tabindex=0)
    else:
        whole = tag("ul", *(tag("li", line) for line in lines))
    return join((whole, _left(part.lines)))


def _pairs(part: Pairs) -> Html:
    shown = (join((tag("dt", first), tag("dd", second))) for first, second in part.pairs[:MOST])
    return join((tag("dl", *shown, class_=None if part.aligned else "stack"), _left(part.pairs)))


def _tick(kind: CardKind | None, area: str, said: str) -> Iterator[Html]:
    yield tag("span", SIGNS[kind] if kind else "", class_=kind_class(kind) if kind else None)
    yield tag("strong", area)
    yield tag("span", t_list(said))


def _table(part: Table) -> Html:
    rows = (_table_row(row) for row in part.rows[:MOST])
    note = tag("p", part.note, class_="soft") if part.note else NOTHING
    return join((table(f"{part.label}: {len(part.rows)}", part.heads, rows), note, _left(part.rows)))


def _table_row(cells: Sequence[Cell]) -> Html:
    first, *rest = cells
    name = tag("th", _cell(first), scope="row", class_=_cell_class(first))
    return tag("tr", name, *(tag("td", _cell(cell), class_=_cell_class(cell)) for cell in rest))


def _cell(cell: Cell) -> Html:
    if isinstance(cell, tuple):
        return listed(cell)
    said = t(cell if isinstance(cell, str) else cell.text)
    return verbatim(said) if len(said) <= LONG else folded(f"{said[:LONG]}…", verbatim(said))


def _cell_class(cell: Cell) -> str | None:
    if isinstance(cell, tuple):
        return "names"
    text, kind = (cell, None) if isinstance(cell, str) else (cell.text, cell.kind)
    classes = (kind_class(kind) if kind else "", "short" if len(text) <= SHORT else "")
    return " ".join(filter(None, classes)) or None


def _host_table(part: HostTable) -> Html:
    """The hosts, faulty areas first; areas that are well everywhere are one line."""
    wrong, unread, well = by_trouble(part.rows)
    areas = (*wrong, *unread)
    said = "✓ examined and healthy, ✗ faulty, ! warning, ? not fully examined, – does not apply."
    rows = (_host_row(row, areas, part.called) for row in part.rows)
    return join(
        (
            tag("p", said, class_="soft"),
            table("Hosts by area", ("hosts", "verdict", *areas), rows, kind="areas"),
            tag("p", f"ok on all: {', '.join(well)}", class_="soft") if well else NOTHING,
        )
    )


def _host_row(row: HostRow, areas: Iterable[str], called: Called) -> Html:
    words = {OK: "good", "FAIL": "fail", "HANG": "fail", "BROKEN": "fail", "WARN": "warn"}
    return tag(
        "tr",
        tag("th", listed(row.hosts, called), scope="row", class_="names"),
        tag("td", " ".join(row.verdict.split()), class_=words.get(row.verdict.partition(" ")[0], "open")),
        *(_area(row.cells[area]) for area in areas),
    )


def _area(said: str) -> Html:
    if said in (NOT_READ, PART_READ, UNDECIDED):
        return tag("td", f"? {said}", class_="open")
    known = {OK: ("✓ ok", "good"), NO_CHECK: ("–", "soft")}
    sign, kind = known.get(said, (f"! {said}", "warn") if "warning" in said else (f"✗ {said}", "fail"))
    return tag("td", sign, class_=kind)


def _grid(part: Grid) -> Html:
    """Hosts × hosts; the cells are smaller on paper if there are many."""
    columns = part.columns or part.names
    heads = (tag("th", tag("span", name), scope="col") for name in columns)
    rows = (
        tag("tr", tag("th", one, scope="row"), *(_square(part, one, two) for two in columns))
        for one in part.names
    )
    whole = tag(
        "table",
        tag("caption", part.label),
        tag("thead", tag("tr", tag("td"), *heads)),
        tag("tbody", *rows),
        class_="matrix many" if len(columns) > MANY_NAMES else "matrix",
    )
    return join((tag("p", part.says, class_="soft"), scrolling(part.label, whole)))


def _square(part: Grid, one: str, two: str) -> Html:
    square = part.pairs.get((one, two))
    if square is None or one == two:
        return tag("td", "" if one == two else "·", class_="none")
    if square.share is None:
        return tag("td", square.sign, class_=square.kind and kind_class(square.kind), aria_label=square.says)
    kind = "heat low" if square.kind else "heat"
    return tag("td", square.sign, class_=kind, style=f"--share:{square.share:.2f}")

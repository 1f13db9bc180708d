"""Cards and parts as HTML: quotes are set apart, long lists are cut."""

from collections.abc import Iterable, Sequence

from doctor.report.html.losses import losses_figure
from doctor.report.html.markup import NOTHING, Html, folded, join, listed, pill, table, tag
from doctor.report.page.card import Card, CardKind, Chart, Medium, Pairs, Part, Row, RowForm, Table
from doctor.text.speech import spoken_command, t

SHORT = 32
"""A cell of a table with at most this many characters stays on one line."""
MOST = 300
"""The most cards, and lines of a list: a browser could not open a larger page. The JSON has the rest."""
MOST_TYPED = 20
"""The most blocks of commands on a card."""
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
    if isinstance(part, Chart):
        return losses_figure(part.drawing)
    if isinstance(part, Table):
        rows = map(_table_row, part.rows[:MOST])
        return join((table(f"{part.label}: {len(part.rows)}", part.heads, rows), _left(part.rows)))
    if isinstance(part, Pairs):
        shown = (join((tag("dt", first), tag("dd", second))) for first, second in part.pairs[:MOST])
        return join((tag("dl", *shown, class_=None if part.aligned else "stack"), _left(part.pairs)))
    if part.form in (RowForm.TYPED, RowForm.QUOTED):
        kind = "quoted" if part.form is RowForm.QUOTED else None
        whole = tag("pre", "\n".join(part.lines[:MOST]), class_=kind, tabindex=0)
    else:
        whole = tag("ul", *(tag("li", line) for line in part.lines[:MOST]))
    return join((whole, _left(part.lines)))


def _table_row(cells: Sequence[str]) -> Html:
    first, *rest = cells
    kinds = ((cell, "short" if len(cell) <= SHORT else None) for cell in rest)
    return tag("tr", tag("th", first, scope="row"), *(tag("td", cell, class_=kind) for cell, kind in kinds))

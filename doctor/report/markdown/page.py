"""A page as Markdown, for GitHub, GitLab, chats and tickets.

It fits into one comment on GitHub, whatever the hosts reported and however many there are: blocks that do not
fit are counted and left to the other formats.
"""

from collections.abc import Iterable, Iterator

from doctor import __version__
from doctor.report.markdown.text import block, cell, code, folded, inline, table, verbatim
from doctor.report.page.card import Card, Chart, Medium, Page, Pairs, Part, Row, RowForm, Table
from doctor.text.nodeset import fold
from doctor.text.printable import clean_line
from doctor.text.speech import sign, spoken_command, t

MOST = 60_000
"""Characters; GitHub takes 65536 in a comment."""
MOST_LINES = 40
LONGEST = 4000
"""The most characters of a quote on a card."""


def as_markdown(page: Page) -> bytes:
    text = f"## cluster-doctor: {inline(page.says)}\n\n"
    text += "".join(f"- {inline(strong + rest)}\n" for strong, rest in page.about)
    text += fit(_blocks(page), MOST - len(text), "part")
    return text.encode()


def _blocks(page: Page) -> Iterator[str]:
    yield from map(card_text, shown(page.cards))
    for one in page.each:
        cards = "".join(card_text(card, "####") for card in shown(one.cards))
        yield f"\n### Job {inline(one.title)}\n\n- {inline(one.says)}\n{cards}"
        yield from (_part(part, "####") for part in one.parts if Medium.MARKDOWN in part.on)
    yield from (_part(part, "###") for part in page.parts if Medium.MARKDOWN in part.on)
    yield "".join(("\n", *(f"- {inline(note)}\n" for note in page.notes))) if page.notes else ""
    yield "".join(f"\n- {inline(label + line)}\n" for label, line in page.after)
    yield f"\n{t(f'Made by cluster-doctor {__version__}.')}\n"


def fit(blocks: Iterable[str], room: int, what: str) -> str:
    """As many blocks as there is room for, and the number of those that are left out."""
    kept, left = [], 0
    for text in blocks:
        if len(text) <= room:
            kept.append(text)
            room -= len(text)
        else:
            left += 1
    said = t(f"{left} more {what}{'s' if left > 1 else ''} did not fit here: see `--json`.")
    more = f"\n{said}\n" if left else ""
    return "".join(kept) + more


def shown(cards: Iterable[Card]) -> list[Card]:
    return [card for card in cards if Medium.MARKDOWN in card.on]


def card_line(card: Card) -> str:
    """The card as text that must not be at the beginning of a line."""
    who = f"**{inline(card.who)}** " if card.who else ""
    tag = f" ({code(t(card.tag))})" if card.tag else ""
    return f"**{t(card.word)}** {who}{inline(card.says)}{tag}"


def card_text(card: Card, level: str = "###") -> str:
    colon = sign(": ")  # with it, the end of a name may look like an emoji
    who = verbatim(t(card.who) + colon) + " " * colon.endswith(" ") if card.who else ""
    tag = f"({code(t(card.tag))})" if card.tag else ""
    head = (level, t(card.word), who + verbatim(t(card.says) + t(card.aside)), tag)
    text = f"\n{' '.join(filter(None, head))}\n\n" if card.says else "\n"
    rows = [row for row in card.rows if Medium.MARKDOWN in row.on and (row.lines or row.head)]
    text += "".join(_list_items(row) for row in rows if row.form not in (RowForm.TYPED, RowForm.QUOTED))
    typed = [line for row in rows if row.form is RowForm.TYPED for line in _typed(row)]
    quoted = [row for row in rows if row.form is RowForm.QUOTED]
    text += "".join("\n" + _block(row) for row in quoted if Medium.BRIEF in row.on)
    text += "\n" + block("\n".join(typed), "sh") if typed else ""
    return text + "".join("\n" + _folded(row) for row in quoted if Medium.BRIEF not in row.on)


def _list_items(row: Row) -> str:
    lines = (fold(row.lines),) if row.form is RowForm.HOSTS else row.lines[:MOST_LINES]
    if row.form is RowForm.NUMBERED:
        lines = tuple(f"{number}. {line}" for number, line in enumerate(lines, 1))
    before = f"{t(row.label)}{sign(': ')}" + (f"**{inline(row.head)}**{sign(': ')}" if row.head else "")
    return "".join(f"- {before}{inline(line)}\n" for line in lines)


def _typed(row: Row) -> Iterator[str]:
    """The commands; where to type them is a comment, so that everything can be copied."""
    head = row.head or ("" if row.label == "do" else f"{row.label}:")
    yield from (f"# {clean_line(t(head))}",) if head else ()
    yield from map(clean_line, map(spoken_command, row.lines))


def _folded(row: Row) -> str:
    return folded(t(f"{row.label.capitalize()}{' on' if row.head else ''}"), row.head, _block(row))


def _block(row: Row) -> str:
    whole = "\n".join(row.lines[:MOST_LINES])
    left = len(whole) > LONGEST or len(row.lines) > MOST_LINES
    return block(f"{whole[:LONGEST]}…" if left else whole, "text")


def _part(part: Part, level: str) -> str:
    title = f"\n{level} {inline(part.label)}\n\n"
    if isinstance(part, Chart):
        return f"{title}- {inline(part.drawing.says)}\n"
    items = part.lines if isinstance(part, Row) else part.pairs if isinstance(part, Pairs) else part.rows
    left = len(items) - MOST_LINES
    more = f"\n{t(f'{left} more did not fit here: see `--json`.')}\n" if left > 0 else ""
    return title + _inside(part) + more


def _inside(part: Row | Pairs | Table) -> str:
    if isinstance(part, Table):
        return table(tuple(map(t, part.heads)), ([*map(cell, row)] for row in part.rows[:MOST_LINES]))
    if isinstance(part, Pairs) and part.aligned:
        wide = max(len(first) for first, _ in part.pairs)
        lines = (f"{first:>{wide}}  {t(second)}" for first, second in part.pairs[:MOST_LINES])
        return block("\n".join(lines), "text")
    if isinstance(part, Pairs):
        return "".join(map(pair_line, part.pairs[:MOST_LINES]))
    if part.form in (RowForm.TYPED, RowForm.QUOTED):
        return block("\n".join(part.lines[:MOST_LINES]), "sh" if part.form is RowForm.TYPED else "text")
    return "".join(f"- {inline(line)}\n" for line in part.lines[:MOST_LINES])


def pair_line(pair: tuple[str, str]) -> str:
    first, second = pair
    return f"- **{inline(first)}**{sign(': ')}{inline(second)}\n"

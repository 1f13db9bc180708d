"""A page as Markdown, for GitHub, GitLab, chats and tickets.

It fits into one comment on GitHub, whatever the hosts reported and however many there are: blocks that do not
fit are counted and left to the other formats.
"""

from collections.abc import Iterable, Iterator

from doctor import __version__
from doctor.report.markdown.text import block, cell, code, folded, inline, item, row, table, verbatim
from doctor.report.page.card import (
    SIGNS,
    Card,
    Cell,
    Chart,
    Grid,
    HostTable,
    Medium,
    Page,
    Pairs,
    Part,
    Row,
    RowForm,
    Section,
    Table,
    Ticket,
    Ticks,
)
from doctor.report.page.names import named
from doctor.text.nodeset import fold
from doctor.text.printable import clean_line
from doctor.text.speech import sign, spoken_command, spoken_end, t, t_list, t_parts

MOST = 60_000
"""Characters; GitHub takes 65536 in a comment."""
MOST_LINES = 40
FEW = 2
"""More cards than this are listed before all else."""
LONGEST = 4000
"""The most characters of a quote on a card."""


def as_markdown(page: Page) -> bytes:
    text = f"## cluster-doctor: {inline(page.says)}\n\n"
    text += "".join(item(verbatim(t(strong) + t_parts(rest))) for strong, rest in page.about)
    for what, blocks, share in _blocks(page):
        text += fit(blocks, int((MOST - len(text)) * share), what)
    return text.encode()


def _blocks(page: Page) -> Iterator[tuple[str, Iterable[str], float]]:
    """What the blocks are called, the blocks, and how much of the room that is left is theirs."""
    cards = [card for card in page.cards if Medium.MARKDOWN in card.on]
    if len(heads := [card for card in cards if card.says]) > FEW:
        yield "finding", ("\n", *(f"- {card_line(card)}\n" for card in heads)), 0.2
    parts = [part for part in page.parts if Medium.MARKDOWN in part.on]
    first = [part for part in parts if isinstance(part, HostTable)]
    yield from (("row", _part(part, "###"), 0.3) for part in first)
    yield "finding", map(card_text, cards), 0.6
    for one in page.each:
        own = (card_text(card, "####") for card in one.cards if Medium.MARKDOWN in card.on)
        yield "finding", (f"\n### Job {inline(one.title)}\n\n- {inline(one.says)}\n", *own), 1
        yield from (("part", _part(part, "####"), 1) for part in one.parts if Medium.MARKDOWN in part.on)
    for part in parts:
        if part not in first:
            many = isinstance(part, Section) and any(isinstance(each, Ticket) for each in part.parts)
            yield "ticket" if many else "part", _part(part, "###"), 1
    if page.notes:
        yield "part", ("\n", *(item(inline(note)) for note in page.notes)), 1
    steps = (
        sign(" ").join(filter(None, map(inline, (step.before, step.label + step.text))))
        for step in page.after
    )
    yield "part", (f"\n- {step}\n" for step in steps), 1
    yield "part", (f"\n{t(f'Made by cluster-doctor {__version__}.')}\n",), 1


def fit(blocks: Iterable[str], room: int, what: str) -> str:
    """As many blocks as there is room for, and the number of those that are left out."""
    kept, left, room = [], 0, room - 300  # for the sentences about what is left out
    for text in blocks:
        if len(text) <= room:
            kept.append(text)
            room -= len(text)
        else:
            left += 1
    said = t(f"{left} more {what}{'s' if left > 1 else ''} did not fit here: see `--json`.")
    return "".join(kept) + (f"\n{said}\n" if left else "")


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
    hidden = (
        (f"{row.label.capitalize()}{' on' * bool(row.head)}", row)
        for row in quoted
        if Medium.BRIEF not in row.on
    )
    return text + "".join("\n" + folded(t(label), row.head, _block(row)) for label, row in hidden)


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


def _block(row: Row) -> str:
    whole = "\n".join(row.lines[:MOST_LINES])
    left = len(whole) > LONGEST or len(row.lines) > MOST_LINES
    return block(f"{whole[:LONGEST]}…" if left else whole, "text")


def _part(part: Part, level: str) -> Iterator[str]:
    """Its blocks, the first of them with the title."""
    title = f"\n{level} {inline(part.label)}\n\n" if part.label else ""
    if isinstance(part, Chart):
        yield f"{title}- {inline(part.drawing.says)}\n"
    elif isinstance(part, HostTable):
        yield title + table(tuple(map(t, ("Host", *part.rows[0].cells, "Verdict"))), ())
        for hosts in part.rows:
            names = cell(named(hosts.hosts, part.called))
            yield row((names, *map(cell, hosts.cells.values()), cell(hosts.verdict)))
    elif isinstance(part, Ticket):
        cards = "".join(card_text(card, "####") for card in part.cards)
        rows = [(cell(label), cell(said)) for label, said in part.rows]
        yield folded(t(part.label), part.host, table((t("Host"), cell(part.host)), rows) + cards)
    elif isinstance(part, Section):
        said = ((inline(each.text) + spoken_end(each.after).rstrip() for each in line) for line in part.lines)
        lines = (" ".join(filter(None, words)) for words in said)
        yield title + "".join(map(item, filter(None, lines)))
        for each in part.parts:
            yield from _part(each, f"{level}#") if Medium.MARKDOWN in each.on else ()
    elif not isinstance(part, Grid):
        items = (
            part.pairs if isinstance(part, Pairs) else part.rows if isinstance(part, Table) else part.lines
        )
        left = len(items) - MOST_LINES
        more = f"\n{t(f'{left} more did not fit here: see `--json`.')}\n" if left > 0 else ""
        yield title + _inside(part) + more


def _inside(part: Row | Pairs | Table | Ticks) -> str:
    if isinstance(part, Table):
        return table(tuple(map(t, part.heads)), ([*map(_cell, row)] for row in part.rows[:MOST_LINES]))
    if isinstance(part, Ticks):
        return "".join(
            f"- {SIGNS[kind] if kind else ''} **{t(area)}**{sign(': ')}{inline(t_list(said))}\n"
            for kind, area, said in part.lines
        )
    if isinstance(part, Pairs) and part.aligned:
        wide = max(len(first) for first, _ in part.pairs)
        lines = (f"{first:>{wide}}  {t(second)}" for first, second in part.pairs[:MOST_LINES])
        return block("\n".join(lines), "text")
    if isinstance(part, Pairs):
        pairs = part.pairs[:MOST_LINES]
        return "".join(f"- **{inline(first)}**{sign(': ')}{inline(second)}\n" for first, second in pairs)
    if part.form in (RowForm.TYPED, RowForm.QUOTED):
        return block("\n".join(part.lines[:MOST_LINES]), "sh" if part.form is RowForm.TYPED else "text")
    return "".join(item(inline(line)) for line in part.lines[:MOST_LINES])


def _cell(each: Cell) -> str:
    if isinstance(each, tuple):
        return cell(fold(each))
    return cell(each) if isinstance(each, str) else cell(each.text)

"""Cards, parts and whole pages in a terminal or a log."""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text

from doctor.report.page.card import Card, CardKind, Chart, Medium, Page, Pairs, Part, Row, RowForm, Table
from doctor.report.terminal.losses import print_losses
from doctor.report.terminal.page import (
    LABEL,
    NARROWEST,
    CleanHook,
    put_edged,
    put_line,
    put_rows,
    put_wrapped,
    wrapped,
)
from doctor.text.nodeset import fold
from doctor.text.printable import clean_line
from doctor.text.speech import sign, spoken_command, t
from doctor.text.wrap import cells, padded

STYLE = {
    CardKind.FAIL: "bold red",
    CardKind.WARN: "bold yellow",
    CardKind.OPEN: "bold cyan",
    CardKind.GOOD: "bold green",
    CardKind.BROKEN: "bold magenta",
}
_SAY = {RowForm.WORDS: t, RowForm.NUMBERED: t, RowForm.TYPED: spoken_command}
"""What is translated of a line, by its form; names and quotes stay as they are."""
INDENT = 6
LONGEST = 240
"""The most characters of a quoted line without -v."""
JOBS = 20
NUMBERED = len("1. ")


def print_page(page: Page, console: Console, *, verbose: bool = False, quiet: bool = False) -> None:
    console.push_render_hook(CleanHook())
    on = Medium.QUIET if quiet else Medium.VERBOSE if verbose else Medium.BRIEF
    blocks = _Blocks(console)
    for strong, rest in () if quiet else page.about:
        blocks.begun = True
        put_wrapped(Text.assemble((clean_line(t(strong)), "bold"), clean_line(t(rest))), console, wide=True)
    for card in shown_cards(page.cards, on):
        blocks.begin()
        print_card(card, console, on)
    if page.each:
        blocks.begin()
        _print_each(page.each, console, on)
    _print_parts(page.parts, blocks, on)
    blocks.begin()
    for note in () if quiet else page.notes:
        put_wrapped(Text(clean_line(t(note))), console)
    put_wrapped(Text(clean_line(t(page.says)), style=STYLE[page.kind]), console, wide=True)
    for label, text in () if quiet else page.after:
        put_line(Text.assemble((clean_line(t(label)), "dim"), clean_line(t(text))), console)


class _Blocks:
    """Prints an empty line between blocks."""

    def __init__(self, console: Console) -> None:
        self.console, self.begun = console, False

    def begin(self) -> None:
        if self.begun:
            self.console.print()
        self.begun = True


def shown_cards(cards: Iterable[Card], on: Medium) -> list[Card]:
    return [card for card in cards if on in card.on and (card.says or any(on in row.on for row in card.rows))]


def _print_each(pages: Sequence[Page], console: Console, on: Medium) -> None:
    """Prints several jobs: hanging ones in full, the others in one line."""
    for number, page in enumerate(pages):
        if not page.cards and (on is Medium.QUIET or number >= JOBS):
            continue
        put_wrapped(Text(clean_line(t(page.title)), style="bold"), console, 0, 2, wide=True)
        for card in shown_cards(page.cards, on):
            print_card(card, console, on)
        blocks = _Blocks(console)
        blocks.begun = True
        _print_parts(page.parts, blocks, on)
        put_wrapped(Text(clean_line(t(page.says)), style=STYLE[page.kind]), console, INDENT, INDENT)
    if len(pages) > JOBS and on is not Medium.QUIET:
        put_line(Text(t(f"{len(pages)} in all"), style="dim"), console)


def print_card(card: Card, console: Console, on: Medium) -> None:
    indent = INDENT + 2 if card.follows else INDENT
    if card.says:
        head = Text.assemble(
            ("  └ " if card.follows else "", "dim"),
            (t(card.word), STYLE[card.kind]),
            "  " if card.word else "",
            (clean_line(t(card.who)), "bold"),
            ("  " * bool(card.who) + clean_line(t(card.says)), "bold"),
            clean_line(t(card.aside)),
        )
        if tag := t(card.tag):  # an id may be alone on its line, other words may not
            edge = Text(clean_line(tag), "dim")
            put_edged(head, edge, console, indent, together="-" not in tag)
        else:
            put_wrapped(head, console, 0, indent)
    before = ""
    for row, texts in _rows(card.rows, on):
        label = t(row.label)
        _print_row(row, texts, label if label != before else "", console, indent)
        before = label


def _rows(rows: Iterable[Row], on: Medium) -> list[tuple[Row, list[str]]]:
    """The shown rows with their texts; a row that continues the one before is joined to it."""
    found: list[tuple[Row, list[str]]] = []
    for row in rows:
        if on not in row.on or not (row.lines or row.head):
            continue
        texts = _some(row, on)
        if row.joins and found:
            found[-1][1][-1] += f"{sign('; ')}{t(row.label)}{sign(': ')}{' '.join(texts)}"
        else:
            found.append((row, texts))
    return found


def _some(row: Row, on: Medium) -> list[str]:
    """The first lines. If only one line would be left, it is shown instead of being counted."""
    if row.form is RowForm.HOSTS:
        return [clean_line(fold(row.lines))]
    say = _SAY.get(row.form, str)
    lines = [clean_line(say(line)) for line in row.lines]
    if row.form is RowForm.NUMBERED:
        lines = [f"{number}. {line}" for number, line in enumerate(lines, 1)]
    if row.form is RowForm.QUOTED and on is Medium.BRIEF:
        lines = [line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…" for line in lines]
    return [*lines[: (most := _most(row, on))], *_more(row, most, on)]


def _most(part: Row | Pairs, on: Medium) -> int:
    number = len(part.lines if isinstance(part, Row) else part.pairs)
    return number if part.few is None or on is not Medium.BRIEF or number == part.few + 1 else part.few


def _more(part: Row | Pairs, most: int, on: Medium) -> list[str]:
    left = len(part.lines if isinstance(part, Row) else part.pairs) - most
    return [t(f"and {left} more {t(part.noun)} (-v)")] if left > 0 and on is Medium.BRIEF else []


def _print_row(row: Row, texts: Sequence[str], label: str, console: Console, indent: int) -> None:
    if row.form is RowForm.HOSTS:  # one line, which can be copied whole
        put_line(_labelled(label, texts[0], indent), console)
    elif row.form is RowForm.TYPED:
        _print_typed(row, texts, label, console, indent)
    else:
        text = Text("\n".join(texts))
        if row.head:
            style = STYLE[row.kind] if row.kind else ""
            text = Text.assemble((clean_line(t(row.head)), style), sign(": ") * bool(text), text)
        put_rows([(label, text)], console, indent, hang=NUMBERED if row.form is RowForm.NUMBERED else 0)


def _print_typed(row: Row, lines: Sequence[str], label: str, console: Console, indent: int) -> None:
    """Prints commands, never wrapped, so that they can be copied; below a head they begin further left."""
    if row.head:
        put_rows([(label, Text(clean_line(t(row.head))))], console, indent)
        for line in lines:
            style = "dim" if line.startswith("#") else "cyan"
            put_line(Text(" " * (indent + 2) + line, style=style), console)
        return
    for line in lines:
        if line.startswith("#"):
            put_rows([(label, Text(line.lstrip("# ")))], console, indent)
        else:
            put_line(_labelled(label, line, indent, "cyan"), console)
        label = ""


def _labelled(label: str, line: str, indent: int, style: str = "") -> Text:
    return Text.assemble(" " * indent, (f"{padded(label, LABEL)}  ", "dim"), (clean_line(line), style))


def _print_parts(parts: Iterable[Part], blocks: _Blocks, on: Medium) -> None:
    for part in parts:
        if on not in part.on:
            continue
        if isinstance(part, Chart):
            print_losses(part.drawing, blocks.console, 2)
        else:
            blocks.begin()
            print_part(part, blocks.console, on)


def print_part(part: Row | Pairs | Table, console: Console, on: Medium) -> None:
    typed = isinstance(part, Row) and part.form is RowForm.TYPED
    put_line(Text(t(part.label) + sign(": ").rstrip() * typed, style="bold"), console)
    if isinstance(part, Table):
        _print_table(part, console)
    elif isinstance(part, Pairs):
        _print_pairs(part, console, on)
    else:
        for line in _some(part, on):
            if typed:
                put_line(Text(f"  {line}", style="cyan"), console)
            else:
                put_wrapped(Text(line), console, 2, 4, wide=part.form is RowForm.QUOTED)


def _print_pairs(part: Pairs, console: Console, on: Medium) -> None:
    pairs = part.pairs[: (most := _most(part, on))]
    wide = max(cells(t(first)) for first, _ in pairs)
    for first, second in ((t(first), t(second)) for first, second in pairs):
        if not part.aligned:
            put_wrapped(Text(f"{clean_line(first)}{sign(': ')}{clean_line(second)}"), console, 2, 4)
            continue
        for number, line in enumerate(wrapped(Text(clean_line(second)), console, wide + 4)):
            put_line(Text(f"  {_right('' if number else clean_line(first), wide)}  ") + line, console)
    for text in _more(part, most, on):
        put_line(Text(f"  {text}"), console)


def _right(text: str, width: int) -> str:
    return " " * (width - cells(text)) + text


def _print_table(part: Table, console: Console) -> None:
    rows = [tuple(clean_line(t(cell)) for cell in row) for row in (part.heads, *part.rows)]
    wide = [max(cells(row[column]) for row in rows) for column in range(len(part.heads) - 1)]
    for number, row in enumerate(rows):
        front = "".join(f"{padded(cell, size)}  " for cell, size in zip(row, wide, strict=False))
        style, used = "" if number else "dim", sum(wide) + 2 * len(wide)
        if console.width - used < NARROWEST:
            put_wrapped(Text(front + row[-1], style=style), console, 0, NARROWEST, wide=True)
            continue
        for again, line in enumerate(wrapped(Text(row[-1], style=style), console, used, wide=True)):
            whole = Text(" " * used if again else front, style=style) + line
            whole.rstrip()
            put_line(whole, console)

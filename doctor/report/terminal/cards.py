"""Cards, parts and whole pages in a terminal or a log."""

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.text import Text

from doctor.report.page.card import (
    SIGNS,
    Card,
    CardKind,
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
    Step,
    Table,
    Ticket,
    Ticks,
    Words,
)
from doctor.report.terminal.hosts import print_hosts
from doctor.report.terminal.losses import print_losses
from doctor.report.terminal.page import (
    GAP,
    LABEL,
    NARROWEST,
    CleanHook,
    columns,
    put_cells,
    put_edged,
    put_line,
    put_row,
    put_wrapped,
    wrapped,
)
from doctor.text.nodeset import fold
from doctor.text.printable import clean_line
from doctor.text.speech import sign, spoken_command, spoken_end, t, t_list, t_parts
from doctor.text.wrap import cells, padded

STYLE = {
    CardKind.FAIL: "bold red",
    CardKind.WARN: "bold yellow",
    CardKind.OPEN: "bold cyan",
    CardKind.GOOD: "bold green",
    CardKind.BROKEN: "bold magenta",
    CardKind.SOFT: "dim",
}
_SAY = {RowForm.WORDS: t, RowForm.NUMBERED: t, RowForm.TYPED: spoken_command}
"""What is translated of a line, by its form; names and quotes stay as they are."""
INDENT = 6
LONGEST = 240
"""The most characters of a quoted line without -v."""
JOBS = 20
_CLOSING = ("，", "；", "：", "（")
"""A blank after these is too much."""
NUMBERED = len("1. ")


def print_page(page: Page, console: Console, *, verbose: bool = False, quiet: bool = False) -> None:
    console.push_render_hook(CleanHook())
    on = Medium.QUIET if quiet else Medium.VERBOSE if verbose else Medium.BRIEF
    blocks = _Blocks(console)
    for strong, rest in () if quiet else page.about:
        blocks.begun = True
        text = ((clean_line(t(strong)), "bold"), (clean_line(t_parts(rest)), "dim" if strong else ""))
        put_wrapped(Text.assemble(*text), console, wide=True)
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
    says = (clean_line(t(page.says)), STYLE[page.kind])
    aside = (sign(" ") + t(page.aside) if page.aside else "", "dim")
    put_wrapped(Text.assemble(says, aside), console, wide=True, whole=True)
    for step in () if quiet else page.after:
        _print_step(step, console)


def _print_step(step: Step, console: Console) -> None:
    before = Text(clean_line(t(step.before)), "bold")
    line = Text.assemble((clean_line(t(step.label)), "dim"), clean_line(t(step.text)))
    if before and before.cell_len + 3 + line.cell_len > columns(console):
        put_wrapped(before, console)
        before = Text()
    put_line(before + Text("   " if before else "") + line, console)


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
            put_edged(head, Text(clean_line(tag), "dim"), console, indent, together="-" not in tag)
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
        put_row(label, text, console, indent, hang=NUMBERED if row.form is RowForm.NUMBERED else 0)


def _print_typed(row: Row, lines: Sequence[str], label: str, console: Console, indent: int) -> None:
    """Prints commands, never wrapped, so that they can be copied; below a head they begin further left."""
    if row.head:
        put_row(label, Text(clean_line(t(row.head))), console, indent)
        for line in lines:
            style = "dim" if line.startswith("#") else "cyan"
            put_line(Text(" " * (indent + 2) + line, style=style), console)
        return
    for line in lines:
        if line.startswith("#"):
            put_row(label, Text(line.lstrip("# ")), console, indent)
        else:
            put_line(_labelled(label, line, indent, "cyan"), console)
        label = ""


def _labelled(label: str, line: str, indent: int, style: str = "") -> Text:
    return Text.assemble(" " * indent, (f"{padded(label, LABEL)}  ", "dim"), (clean_line(line), style))


def _print_parts(parts: Iterable[Part], blocks: _Blocks, on: Medium, indent: int = 0) -> None:
    for part in parts:
        if on not in part.on or isinstance(part, Grid | Ticket):
            continue
        if isinstance(part, Chart):
            print_losses(part.drawing, blocks.console, indent or 2)
            continue
        blocks.begin()
        if isinstance(part, Section):
            _print_lines(part, blocks.console)
            _print_parts(part.parts, blocks, on, len(part.label) + GAP)
        elif isinstance(part, HostTable):
            print_hosts(part, blocks.console, verbose=on is Medium.VERBOSE)
        elif isinstance(part, Ticks):
            _print_ticks(part, blocks.console)
        else:
            _print_part(part, blocks.console, on, indent)


def _print_part(part: Row | Pairs | Table, console: Console, on: Medium, indent: int) -> None:
    typed = isinstance(part, Row) and part.form is RowForm.TYPED
    if not indent:
        put_line(Text(t(part.label) + sign(": ").rstrip() * typed, style="bold"), console)
    if isinstance(part, Table):
        _print_table(part, console, indent)
    elif isinstance(part, Pairs):
        _print_pairs(part, console, on)
    else:
        for line in _some(part, on):
            if typed:
                put_line(Text(f"  {line}", style="cyan"), console)
            else:
                put_wrapped(Text(line), console, 2, 4, wide=part.form is RowForm.QUOTED)


def _print_lines(part: Section, console: Console) -> None:
    """Prints the lines beside the title, wrapped between their words."""
    indent = len(part.label) + GAP
    head = Text(padded(t(part.label), len(part.label)) + " " * GAP, "bold")
    for words in part.lines:
        line = Text()
        for piece in _pieces(words):
            if line and indent + line.cell_len + 1 + piece.cell_len > console.width:
                line.rstrip()
                put_line(head + line, console)
                head, line = Text(" " * indent), Text()
            line = line + Text("" if line.plain.endswith(_CLOSING) else " ") + piece if line else piece
        line.rstrip()
        if line:
            put_line(head + line, console)
            head = Text(" " * indent)


def _pieces(words: Iterable[Words]) -> Iterator[Text]:
    """What is not broken at the end of a line."""
    for each in words:
        said, style = clean_line(t(each.text)), STYLE[each.kind] if each.kind else ""
        pieces = list(filter(None, said.split(" ")))
        for number, piece in enumerate(pieces, 1):
            yield Text.assemble((piece, style), spoken_end(each.after) if number == len(pieces) else "")


def _print_ticks(part: Ticks, console: Console) -> None:
    if not any(kind for kind, _, _ in part.lines):  # a sign speaks for itself
        put_line(Text(t(part.label), style="bold"), console)
    wide = max(cells(t(area)) for _, area, _ in part.lines)
    beside = columns(console) >= 2 * wide  # there is room for a second column
    for kind, area, said in part.lines:
        label = padded(t(area), wide) + "  " if beside else f"{t(area)}: "
        text = Text(clean_line(t_list(said))) if beside else Text(clean_line(f"{label}{t_list(said)}"))
        rest = wide + 6 if beside else 6
        for number, line in enumerate(wrapped(text, console, rest)):
            mark = (SIGNS[kind], STYLE[kind]) if kind else " "
            head = Text.assemble("  ", mark, " ", (label, "dim") if beside else "")
            put_line((Text(" " * rest) if number else head) + line, console)


def _print_pairs(part: Pairs, console: Console, on: Medium) -> None:
    pairs = part.pairs[: (most := _most(part, on))]
    wide = max(cells(t(first)) for first, _ in pairs)
    for first, second in ((t(first), t(second)) for first, second in pairs):
        if not part.aligned:
            put_wrapped(Text(f"{clean_line(first)}{sign(': ')}{clean_line(second)}"), console, 2, 4)
            continue
        for number, line in enumerate(wrapped(Text(clean_line(second)), console, wide + 4)):
            name = "" if number else clean_line(first)
            put_line(Text(f"{' ' * (2 + wide - cells(name))}{name}  ") + line, console)
    for text in _more(part, most, on):
        put_line(Text(f"  {text}"), console)


def _print_table(part: Table, console: Console, indent: int) -> None:
    rows = [[Text(t(head), "dim") for head in part.heads], *(list(map(_cell, row)) for row in part.rows)]
    wide = [max(cell.cell_len for cell in column) for column in zip(*rows, strict=True)]
    if part.short:
        while len(wide) > 1 and indent + sum(wide) + GAP * (len(wide) - 1) > console.width:
            wide.pop()
        for row in rows:
            put_cells(row, wide, console, indent)
    else:
        _print_wrapped(rows, wide[:-1], console)
    if part.note:
        put_line(Text(" " * indent + t(part.note), "dim"), console)


def _cell(cell: Cell) -> Text:
    if isinstance(cell, tuple):
        return Text(clean_line(fold(cell)))
    if isinstance(cell, str):
        return Text(clean_line(t(cell)))
    return Text(clean_line(t(cell.text)), STYLE[cell.kind] if cell.kind else "")


def _print_wrapped(rows: Iterable[Sequence[Text]], wide: Sequence[int], console: Console) -> None:
    """Prints rows whose last cell has as many lines as it needs."""
    used = sum(wide) + GAP * len(wide)
    for *others, last in rows:
        beside = (f"{padded(cell.plain, size)}  " for cell, size in zip(others, wide, strict=True))
        front = Text("".join(beside), last.style)
        if console.width - used < NARROWEST:
            put_wrapped(front + last, console, 0, NARROWEST, wide=True)
            continue
        for number, line in enumerate(wrapped(last, console, used, wide=True)):
            whole = (Text(" " * used) if number else front) + line
            whole.rstrip()
            put_line(whole, console)

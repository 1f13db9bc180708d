"""Lines of the report: cleaned, wrapped at words, without trailing blanks, with labels at the left."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook
from rich.segment import Segment
from rich.text import Text

from doctor.text.printable import clean, clean_line
from doctor.text.wrap import breaks, padded

WIDEST = 120
"""The most columns of sentences: longer lines are hard to read."""
NARROWEST = 20
LABEL = 9
GAP = 2
"""The columns between two cells of a table."""


class CleanHook(RenderHook):
    """Cleans everything that a console prints: only our own colours remain, no untrusted control codes."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_CleanedText(renderable) for renderable in renderables]


@dataclass(frozen=True, slots=True)
class _CleanedText:
    inner: ConsoleRenderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for segment in console.render(self.inner, options):
            yield segment._replace(text=clean(segment.text))


def columns(console: Console) -> int:
    return min(console.width, WIDEST)


def put_line(line: Text, console: Console) -> None:
    """Prints a line unwrapped: a terminal breaks it if needed, and a command can still be copied whole."""
    console.print(line, soft_wrap=True)


def put_cells(cells: Iterable[Text], widths: Iterable[int], console: Console, indent: int = 0) -> None:
    """Prints a row of a table, as wide as the shorter of both; a cell that is too long is cut."""
    line = Text(" " * indent)
    for cell, width in zip(cells, widths, strict=False):
        if cell.cell_len > width:
            cell = Text(set_cell_size(cell.plain, width - 1) + "…", cell.style)
        line = line + cell + Text(" " * (width - cell.cell_len + GAP))
    line.rstrip()
    put_line(line, console)


def wrapped(
    text: Text, console: Console, rest: int = 0, *, wide: bool = False, whole: bool = False
) -> list[Text]:
    """The lines of a text, without trailing blanks. `wide` lines may fill a terminal of any width; `whole`
    words are never broken, so that names of hosts can be copied.
    """
    room = max((console.width if wide else columns(console)) - rest, NARROWEST)
    lines = list(_lines(text, console, room, whole))
    for line in lines:
        line.rstrip()
    return lines


def _lines(text: Text, console: Console, room: int, whole: bool) -> Iterator[Text]:
    if text.cell_len > len(text.plain):  # rich breaks Chinese at blanks, and in the middle of a name
        for paragraph in text.split("\n", allow_blank=True):
            yield from paragraph.divide(breaks(paragraph.plain, room))
    else:
        yield from _whole_words(text, room) if whole else text.wrap(console, room)


def _whole_words(text: Text, room: int) -> list[Text]:
    breaks, used = [], 0
    for word in re.finditer(r"\S+\s*", text.plain):
        if used and used + cell_len(word[0].rstrip()) > room:
            breaks.append(word.start())
            used = 0
        used += cell_len(word[0])
    return list(text.divide(breaks))


def put_wrapped(
    text: Text, console: Console, first: int = 0, rest: int = 0, *, wide: bool = False, whole: bool = False
) -> None:
    for number, line in enumerate(wrapped(text, console, rest, wide=wide, whole=whole)):
        put_line(Text(" " * (first if number == 0 else rest)) + line, console)


def put_edged(text: Text, edge: Text, console: Console, rest: int, *, together: bool = False) -> None:
    """Prints the text with `edge` at the right end of the last line. If there is no room, `edge` gets a line
    of its own; with `together`, the last words of the text move down to it.
    """
    *lines, last = wrapped(text, console, rest)
    if together and columns(console) - last.cell_len - (rest if lines else 0) - edge.cell_len < 2:
        *lines, last = wrapped(text, console, rest + edge.cell_len + 2)
    lines = [Text(" " * (rest if number else 0)) + line for number, line in enumerate([*lines, last])]
    room = columns(console) - lines[-1].cell_len - edge.cell_len
    if room < 2:
        lines.append(Text())
        room = max(columns(console) - edge.cell_len, 0)
    lines[-1] = lines[-1] + Text(" " * room) + edge
    for line in lines:
        put_line(line, console)


def put_row(name: str, text: Text, console: Console, indent: int, *, hang: int = 0) -> None:
    """Prints a name and the text beside it, wrapped; nothing without text. `hang` is the extra indent of the
    second and later lines of a paragraph.
    """
    for number, line in enumerate(_hanging(text, console, indent + LABEL + 2, hang) if text else ()):
        label = (padded(clean_line(name) if number == 0 else "", LABEL), "dim")
        put_line(Text.assemble(" " * indent, label, "  ", line), console)


def _hanging(text: Text, console: Console, rest: int, hang: int) -> Iterator[Text]:
    if not hang:
        yield from wrapped(text, console, rest)
        return
    for paragraph in text.split("\n"):
        for number, line in enumerate(wrapped(paragraph, console, rest + hang)):
            yield Text(" " * (hang if number else 0)) + line

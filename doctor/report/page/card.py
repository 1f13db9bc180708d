"""The content of a report, whatever its format: a page of cards and parts.

Each command makes one page of what it found. Its texts may come from hosts and are not cleaned: the code that
writes them to a terminal, to HTML or to Markdown makes them harmless there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum, Flag, auto
from typing import TYPE_CHECKING, NamedTuple

from doctor.report.page.losses import LossDrawing

if TYPE_CHECKING:
    from doctor.report.page.host_rows import HostRow
    from doctor.report.page.names import Called


class Medium(Flag):
    """The outputs that show a part."""

    QUIET = auto()
    """In a terminal, with -q."""
    BRIEF = auto()
    VERBOSE = auto()
    """With -v."""
    HTML = auto()
    MARKDOWN = auto()
    FULL = VERBOSE | HTML | MARKDOWN
    LOUD = BRIEF | VERBOSE
    TEXT = LOUD | MARKDOWN
    ALL = LOUD | HTML | MARKDOWN
    ALWAYS = QUIET | ALL


class CardKind(Enum):
    """How bad something is; it decides the colour."""

    FAIL = "fail"
    WARN = "warn"
    OPEN = "open"
    GOOD = "good"
    BROKEN = "broken"
    """A fault of doctor itself."""
    SOFT = "soft"
    """Beside the point."""


SIGNS = {CardKind.GOOD: "✓", CardKind.OPEN: "?", CardKind.WARN: "–"}
"""The signs of what was measured: healthy, not decided, not tried."""


class RowForm(Enum):
    """What the lines of a row are."""

    WORDS = "sentences"
    NUMBERED = "sentences in an order"
    QUOTED = "text that others wrote"
    TYPED = "commands; a sentence between them begins with #"
    HOSTS = "names of hosts, which are folded"


@dataclass(frozen=True, slots=True)
class Row:
    """A label with lines beside it; as a part of a page, a title with lines below it."""

    label: str
    lines: tuple[str, ...]
    form: RowForm = RowForm.WORDS
    on: Medium = Medium.ALL
    few: int | None = None
    """The number of lines that a terminal shows without -v."""
    noun: str = "lines"
    """What the lines that are not shown are called."""
    head: str = ""
    """Text before the lines: a verdict, where to type them, or who wrote them."""
    kind: CardKind | None = None
    """The kind of the head."""
    link: str = ""
    """The id of the card that the row refers to."""
    joins: bool = False
    """Whether a terminal continues the row before with it."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of texts, such as a time and an event, or a subject and a reason."""

    label: str
    pairs: tuple[tuple[str, str], ...]
    on: Medium = Medium.ALL
    few: int | None = None
    noun: str = "lines"
    aligned: bool = False
    """Whether the pairs form two columns, the first of them short."""


@dataclass(frozen=True, slots=True)
class Words:
    """A text with a colour, and what no line may part from its end, such as a comma."""

    text: str
    kind: CardKind | None = None
    after: str = ""


Cell = str | Words | tuple[str, ...]
"""A tuple holds names of hosts, which are folded."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table; the first cell of a row names it, and the last one may be long."""

    label: str
    heads: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    on: Medium = Medium.ALL
    note: str = ""
    """What the table does not show, as a sentence below it."""
    short: bool = False
    """Whether no cell is long: a terminal leaves out the last columns if it is too narrow."""

    def marked(self, first: int, kind: CardKind) -> Table:
        """With so many rows in a colour, from the first on."""
        rows = (tuple(Words(str(cell), kind) for cell in row) for row in self.rows[:first])
        return replace(self, rows=(*rows, *self.rows[first:]))


@dataclass(frozen=True, slots=True)
class HostTable:
    """The result of each area on each host."""

    label: str
    rows: tuple[HostRow, ...]
    called: Called
    on: Medium = Medium.ALL


@dataclass(frozen=True, slots=True)
class Ticks:
    """What was measured, by its area; the kind is that of the sign before it, if it has one."""

    label: str
    lines: tuple[tuple[CardKind | None, str, str], ...]
    on: Medium = Medium.ALL


@dataclass(frozen=True, slots=True)
class Square:
    """What is known of a pair of hosts."""

    sign: str
    kind: CardKind | None = None
    says: str = ""
    """The sign in words."""
    share: float | None = None
    """How dark it is, between 0 and 1."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Hosts × hosts, or × `columns`; `pairs` lacks those of which nothing is known."""

    label: str
    says: str
    names: tuple[str, ...]
    pairs: Mapping[tuple[str, str], Square]
    on: Medium = Medium.HTML
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chart:
    label: str
    drawing: LossDrawing
    on: Medium = Medium.ALL


@dataclass(frozen=True, slots=True)
class Ticket:
    """What a repair shop is told of a host."""

    label: str
    host: str
    rows: tuple[tuple[str, str], ...]
    cards: tuple[Card, ...]
    on: Medium = Medium.MARKDOWN


@dataclass(frozen=True, slots=True)
class Section:
    """Lines and parts under one title; in a terminal, the lines are beside it."""

    label: str
    lines: tuple[tuple[Words, ...], ...] = ()
    parts: tuple[Part, ...] = ()
    on: Medium = Medium.ALL


Part = Row | Pairs | Table | HostTable | Ticks | Grid | Chart | Ticket | Section


@dataclass(frozen=True, slots=True)
class Card:
    """One thing that is wrong. A card without a head adds rows to the cards before it."""

    word: str = ""
    """ "FAIL", "HANG" """
    kind: CardKind = CardKind.OPEN
    who: str = ""
    says: str = ""
    aside: str = ""
    """Text after the sentence, less prominent."""
    tag: str = ""
    """The id of the check or symptom, else how certain the finding is."""
    rows: tuple[Row, ...] = ()
    on: Medium = Medium.ALWAYS
    ids: tuple[str, ...] = ()
    """The ids under which links find it."""
    follows: bool = False
    """Whether it is a consequence of the card before it."""

    @property
    def sentence(self) -> str:
        return " ".join(filter(None, (self.who, self.says)))


class Step(NamedTuple):
    """What to do next."""

    label: str
    text: str = ""
    before: str = ""
    """A sentence before the label; in a terminal on the same line, if there is room."""


@dataclass(frozen=True, slots=True)
class Page:
    command: str = ""
    started: str = ""
    """When the run began, as in a recording: 2026-01-31T10:00:00Z."""
    word: str = ""
    """The verdict: "Faulty", "Hangs"."""
    kind: CardKind = CardKind.OPEN
    title: str = ""
    """Who is guilty, or the state that was found."""
    says: str = ""
    """The conclusion, which a terminal shows last."""
    about: tuple[tuple[str, str], ...] = ()
    """The first lines: what was looked at (in bold), and what was seen of it."""
    cards: tuple[Card, ...] = ()
    cards_title: str = "Findings"
    each: tuple[Page, ...] = ()
    """One page for each job, if there are several."""
    parts: tuple[Part, ...] = ()
    notes: tuple[str, ...] = ()
    aside: str = ""
    """Text after the conclusion, less prominent."""
    after: tuple[Step, ...] = ()
    """Lines below the conclusion."""

"""What a report says, before anybody writes it: a page of cards and parts, the same for every format.

Each command makes one page of what it found. Its texts may be others' and are not clean: whoever writes
them to a terminal, to HTML or to Markdown makes them harmless there.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, Flag, auto

from doctor.report.losses import LossDrawing


class On(Flag):
    """Where something is shown."""

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


class Kind(Enum):
    """How bad it is, which gives it a colour."""

    FAIL = "fail"
    WARN = "warn"
    OPEN = "open"
    GOOD = "good"
    BROKEN = "broken"
    """The doctor itself."""


class Form(Enum):
    """What lines are."""

    WORDS = "sentences"
    NUMBERED = "sentences in an order"
    QUOTED = "the words of others"
    TYPED = "commands; a sentence between them begins with #"
    HOSTS = "names of hosts, which are folded"


@dataclass(frozen=True, slots=True)
class Row:
    """A label, and lines beside it; of a page a title, and lines below it."""

    label: str
    lines: tuple[str, ...]
    form: Form = Form.WORDS
    on: On = On.ALL
    few: int | None = None
    """Lines that a terminal shows without -v."""
    noun: str = "lines"
    """What the others are."""
    head: str = ""
    """Before the lines: a word that judges, where to type them, whose words they are."""
    kind: Kind | None = None
    """Of the head."""
    link: str = ""
    """The id of the card that it is about."""
    joins: bool = False
    """In a terminal it goes on where the row before ends."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """What was when, or why."""

    label: str
    pairs: tuple[tuple[str, str], ...]
    on: On = On.ALL
    few: int | None = None
    noun: str = "lines"
    aligned: bool = False
    """In two columns, the first short."""


@dataclass(frozen=True, slots=True)
class Table:
    """The first cell of a row names it, the last may be long."""

    label: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    on: On = On.ALL


@dataclass(frozen=True, slots=True)
class Chart:
    label: str
    drawing: LossDrawing
    on: On = On.ALL


Part = Row | Pairs | Table | Chart


@dataclass(frozen=True, slots=True)
class Card:
    """One thing that is wrong. Without a head it says more of those before it."""

    word: str = ""
    """ "FAIL", "HANG" """
    kind: Kind = Kind.OPEN
    who: str = ""
    says: str = ""
    aside: str = ""
    """After the sentence, and less loud."""
    tag: str = ""
    """What it is called: the id of a check or a symptom, else how certain it is."""
    rows: tuple[Row, ...] = ()
    on: On = On.ALWAYS
    ids: tuple[str, ...] = ()
    """All by which links find it."""
    follows: bool = False
    """From the card before it."""

    @property
    def sentence(self) -> str:
        return " ".join(filter(None, (self.who, self.says)))


@dataclass(frozen=True, slots=True)
class Page:
    command: str = ""
    started: str = ""
    """As in a recording: 2026-01-31T10:00:00Z."""
    word: str = ""
    """The verdict: "Faulty", "Hangs"."""
    kind: Kind = Kind.OPEN
    title: str = ""
    """Who is guilty, or what is so."""
    says: str = ""
    """The last words, which a terminal shows last."""
    about: tuple[tuple[str, str], ...] = ()
    """First of all, a line each: what was looked at, and what is so of it."""
    cards: tuple[Card, ...] = ()
    cards_title: str = "Findings"
    each: tuple[Page, ...] = ()
    """Of several jobs, each by itself."""
    parts: tuple[Part, ...] = ()
    notes: tuple[str, ...] = ()
    after: tuple[tuple[str, str], ...] = ()
    """Below the last words: a label that may be empty, and a line."""

"""Cards and parts of a page in the language that is spoken. Names, commands and quotes stay as they are; the
comments between commands are sentences too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from doctor.report.card import Card, Page, Pairs, Part, Row, RowForm, Table
from doctor.text.language import Language
from doctor.text.speech import spoken, t

_COMMENT = re.compile(r"(.*?\s{2,}# |\s*# )(\S.*)")


def spoken_page(page: Page) -> Page:
    """The page; what its writer adds to it is translated there."""
    if spoken() is Language.EN:
        return page
    return replace(
        page,
        title=t(page.title),
        says=t(page.says),
        about=tuple((t(strong), t(rest)) for strong, rest in page.about),
        cards=tuple(map(spoken_card, page.cards)),
        each=tuple(map(spoken_page, page.each)),
        parts=tuple(map(spoken_part, page.parts)),
        notes=tuple(map(t, page.notes)),
        after=tuple((t(label), t(text)) for label, text in page.after),
    )


def spoken_card(card: Card) -> Card:
    if spoken() is Language.EN:
        return card
    return replace(
        card,
        word=t(card.word),
        who=t(card.who),
        says=t(card.says),
        aside=t(card.aside),
        tag=t(card.tag),
        rows=tuple(map(spoken_row, card.rows)),
    )


def spoken_part(part: Part) -> Part:
    if isinstance(part, Row):
        return spoken_row(part)
    if isinstance(part, Pairs):
        return spoken_pairs(part)
    if isinstance(part, Table):
        heads, rows = tuple(map(t, part.heads)), tuple(tuple(map(t, row)) for row in part.rows)
        return replace(part, label=t(part.label), heads=heads, rows=rows)
    return part


def spoken_pairs(part: Pairs) -> Pairs:
    pairs = tuple((t(first), t(second)) for first, second in part.pairs)
    return replace(part, label=t(part.label), pairs=pairs, noun=t(part.noun))


def spoken_row(row: Row) -> Row:
    if spoken() is Language.EN:
        return row
    lines: Iterable[str] = row.lines
    if row.form is RowForm.TYPED:
        lines = map(spoken_command, row.lines)
    elif row.form in (RowForm.WORDS, RowForm.NUMBERED):
        lines = map(t, row.lines)
    return replace(row, label=t(row.label), lines=tuple(lines), head=t(row.head), noun=t(row.noun))


def spoken_command(line: str) -> str:
    """The line with its comment translated."""
    found = _COMMENT.fullmatch(line)
    return f"{found[1]}{t(found[2])}" if found else line

"""What the tools of devices print: `key : value` lines and tables. Generic, so that new lines do no harm."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

from doctor.errors import NotUnderstood

_PREFIX = re.compile(r"\s{0,80}\[\w{1,16} \d{1,4}\]")
_NEXT = re.compile(r"(?<=\s\s)(?=[A-Za-z][^:]{0,40}:)")


def pairs(text: str) -> Iterator[tuple[str, str]]:
    """Each `key : value`, in the order printed; several on a line where two blanks are between them.

    A `[devid 3]` in front is left out. A line that begins with the colon goes on with the key before.
    """
    before = ""
    for line in text.splitlines():
        for part in _NEXT.split(_PREFIX.sub("", line, count=1)):
            key, colon, value = part.partition(":")
            if colon:
                before = key.strip() or before
                yield before, value.strip()


def fields(text: str) -> dict[str, str]:
    """The same by key, in small letters; the first of equal keys counts."""
    found: dict[str, str] = {}
    for key, value in pairs(text):
        found.setdefault(key.lower(), value)
    return found


def value_of(text: str, *keys: str) -> str:
    """The value of the first of these keys that is there."""
    found = fields(text)
    for key in keys:
        if found.get(key):
            return found[key]
    raise NotUnderstood("")


def count(text: str) -> int | None:
    """The number, if the text is one and nothing else."""
    return int(text) if re.fullmatch(r"[0-9]{1,12}", text) else None


def cells(line: str, gap: str = r"\s\s+|\t") -> list[str]:
    """The cells of a line: between bars where it begins with one, else between gaps.

    A line that begins with a gap has a first cell without text.
    """
    line = line.rstrip()
    if line.lstrip().startswith("|"):
        return [cell.strip() for cell in line.removesuffix("|").split("|")[1:]]
    return re.split(gap, line) if line and not line.lstrip().startswith("+") else []


def table(text: str, gap: str = r"\s\s+|\t") -> list[Mapping[str, str]]:
    """The rows of the first table, by the names of its columns.

    Its header is the first line that is followed by one with as many cells; other lines are left out.
    """
    rows = [row for line in text.splitlines() if (row := cells(line, gap))]
    for number, (header, first) in enumerate(pairwise(rows)):
        if len(header) == len(first) > 1:
            return [
                dict(zip(header, row, strict=False)) for row in rows[number + 1 :] if len(row) == len(first)
            ]
    return []

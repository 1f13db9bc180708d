"""Parsers for the output of device tools, `key : value` lines and tables; unknown lines do no harm."""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

from doctor.errors import UnreadableOutput

_PREFIX = re.compile(r"\s{0,80}\[\w{1,16} \d{1,4}\]")
_NEXT = re.compile(r"(?<=\s\s)(?=[A-Za-z][^:]{0,40}:)")


def pairs(text: str) -> Iterator[tuple[str, str]]:
    """Each `key : value`; two blanks part several in a line. A line that begins with a colon goes on."""
    before = ""
    for line in text.splitlines():
        for part in _NEXT.split(_PREFIX.sub("", line, count=1)):
            key, colon, value = part.partition(":")
            if colon:
                before = key.strip() or before
                yield before, value.strip()


def fields(text: str) -> dict[str, str]:
    """The same by key in lower case; the first of equal keys counts."""
    return {key.lower(): value for key, value in reversed([*pairs(text)])}


def value_of(text: str, *keys: str) -> str:
    """The value of the first of these keys that has one."""
    found = fields(text)
    for key in keys:
        if found.get(key):
            return found[key]
    raise UnreadableOutput("")


def count(text: str) -> int | None:
    """The number, if the text is one and nothing else."""
    return int(text) if re.fullmatch(r"[0-9]{1,12}", text) else None


def cells(line: str, gap: str = r"\s\s+|\t") -> list[str]:
    """Between bars if it begins with one, else between gaps; the first is empty before a gap."""
    line = line.rstrip()
    if line.lstrip().startswith("|"):
        return [cell.strip() for cell in line.removesuffix("|").split("|")[1:]]
    return re.split(gap, line) if line and not line.lstrip().startswith("+") else []


def table(text: str, gap: str = r"\s\s+|\t") -> list[Mapping[str, str]]:
    """Its header is the first line followed by one with as many cells; other lines are skipped."""
    rows = [row for line in text.splitlines() if (row := cells(line, gap))]
    for number, (header, first) in enumerate(pairwise(rows)):
        if len(header) == len(first) > 1:
            return [
                dict(zip(header, row, strict=False)) for row in rows[number + 1 :] if len(row) == len(first)
            ]
    return []

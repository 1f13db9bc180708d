"""A file's text as it comes by, with a little of what was before and of what comes next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from doctor.text.printable import clean_line
from doctor.text.redact import redact

AROUND = 16 << 10
"""Bytes before and after a line that its neighbours are taken from."""
LONGEST = 8000
"""Characters of a line that are looked at; a longer one is cut."""
KEPT = 2000
"""Characters of a line that are kept."""
MOST_PARTS = 32
"""Of a line that a progress bar overwrites: its last states."""
_NEIGHBOURS = 40


@dataclass(slots=True)
class Window:
    """Lines [start, end) of `data` are looked at now; what is around them only lends its words."""

    data: bytes
    start: int
    end: int
    number: int
    """Of the line at `start`."""

    @property
    def text(self) -> bytes:
        return self.data[self.start : self.end]

    def above(self, at: int) -> list[str]:
        """The lines before the place, the nearest first."""
        part = self.data[max(0, at - AROUND) : at]
        return [_short(line) for line in reversed(part.split(b"\n")[-_NEIGHBOURS - 1 : -1])]

    def below(self, end: int) -> list[str]:
        return [
            _short(line) for line in self.data[end + 1 : end + AROUND].split(b"\n", _NEIGHBOURS)[:_NEIGHBOURS]
        ]


def windows(pieces: Iterable[bytes]) -> Iterator[Window]:
    """The last lines of a piece wait for the next one, so that each has its neighbours."""
    before = held = b""
    number = 1
    for piece in pieces:
        data = before + held + piece
        cut = data.rfind(b"\n", 0, max(len(before), len(data) - AROUND)) + 1
        start = len(before)
        if cut > start:
            yield Window(data, start, cut, number)
            number += data.count(b"\n", start, cut)
            before, held = data[max(0, cut - AROUND) : cut], data[cut:]
        elif len(data) - start > 4 * AROUND:  # one line longer than all that is kept
            yield Window(data, start, len(data), number)
            number += data.count(b"\n", start)
            before, held = data[-AROUND:], b""
        else:
            held = data[start:]
    if held:
        yield Window(before + held, len(before), len(before) + len(held), number)


def _short(line: bytes) -> str:
    """A neighbour: it is compared, and not kept."""
    text = line[-LONGEST:] if b"\r" in line else line[:LONGEST]
    return text.rstrip(b"\r").rpartition(b"\r")[2].decode("utf-8", "replace")


def harmless(raw: bytes) -> list[str]:
    """The states of one line as text that may be kept and shown; most have one."""
    parts = raw.strip(b"\r").split(b"\r")[-MOST_PARTS:] if b"\r" in raw else [raw]
    return [
        redact(clean_line(part[: LONGEST * 4].decode("utf-8", "replace")[:LONGEST].rstrip()))
        for part in parts
    ]

"""The lines of a window, and what each of them is looked at for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, reduce
from itertools import accumulate
from operator import or_

from doctor.logs.reading.sentences import Sentences
from doctor.logs.reading.window import Window
from doctor.logs.sentence import sentence


class Lines:
    def __init__(self, window: Window, table: Sentences) -> None:
        text = window.text
        self.window = window
        self.raw = text.split(b"\n")
        self.sentences = sentence(text).split(b"\n")
        if not self.raw[-1]:
            del self.raw[-1], self.sentences[-1]
        different = set(self.sentences)
        self.marks = table.marks(self.sentences, different)
        self.all_marks = reduce(or_, set(self.marks), 0)
        self.suspicious = table.suspicious(different, text)

    def beginning(self) -> Sequence[bytes]:
        """The first lines, by which a file's layout is known."""
        return self.window.text[: 64 << 10].split(b"\n")[:50]

    def places(self, marks: int) -> Sequence[int]:
        """Of the lines that have one of the marks."""
        if not self.all_marks & marks:
            return ()
        return [place for place, mark in enumerate(self.marks) if mark & marks]

    def marked(self, mark: int) -> bytes:
        """The lines with a mark, with their line ends."""
        if not self.all_marks & mark:
            return b""
        return b"\n".join([raw for raw, here in zip(self.raw, self.marks, strict=True) if here & mark])

    def number(self, place: int) -> int:
        return self.window.number + place

    def span(self, place: int) -> tuple[int, int]:
        """Where it begins and ends in the window's data."""
        end = self.window.start + self._ends[place] + place
        return end - len(self.raw[place]), end

    @cached_property
    def _ends(self) -> list[int]:
        return list(accumulate(map(len, self.raw)))

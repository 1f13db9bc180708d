"""The lines of a window by their sentences, and what to look for in the lines of each sentence."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, reduce
from itertools import accumulate, chain
from operator import or_

from doctor.logs.reading.sentences import Sentences
from doctor.logs.reading.window import Window
from doctor.logs.sentence import sentence
from doctor.text.grouped import grouped


class Lines:
    def __init__(self, window: Window, table: Sentences) -> None:
        text = window.text
        self.window = window
        self.raw = text.split(b"\n")
        self.sentences = sentence(text).split(b"\n")
        if not self.raw[-1]:
            del self.raw[-1], self.sentences[-1]
        self.marks = table.marks(set(self.sentences), text)
        """The marks of each sentence that has any."""
        self.all_marks = reduce(or_, self.marks.values(), 0)

    @cached_property
    def _places(self) -> Mapping[bytes, list[int]]:
        """Sentence -> the indices of its lines, for sentences with a mark; the others are not needed."""
        found: dict[bytes, list[int]] = {words: [] for words in self.marks}
        add_to = {words: places.append for words, places in found.items()}
        for place, add in enumerate(map(add_to.get, self.sentences)):
            if add is not None:
                add(place)
        return found

    def of(self, marks: int) -> Mapping[bytes, Sequence[int]]:
        """The indices of the lines of each sentence that has one of the marks."""
        if not self.all_marks & marks:
            return {}
        return {words: self._places[words] for words, mark in self.marks.items() if mark & marks}

    def of_all(self) -> Mapping[bytes, Sequence[int]]:
        """The indices of the lines of each sentence."""
        return grouped((words, place) for place, words in enumerate(self.sentences))

    def at(self, places: Sequence[int]) -> list[bytes]:
        """The lines at these indices."""
        raw = self.raw
        return [raw[place] for place in places]

    def marked(self, mark: int) -> bytes:
        """The lines with a mark, in their order."""
        return b"\n".join(self.at(in_order(self.of(mark).values())))

    def beginning(self) -> Sequence[bytes]:
        """The first lines, which show the layout of a file."""
        return self.window.text[: 64 << 10].split(b"\n")[:50]

    def number(self, place: int) -> int:
        return self.window.number + place

    def span(self, place: int) -> tuple[int, int]:
        """Where a line begins and ends in the data of the window."""
        end = self.window.start + self._ends[place] + place
        return end - len(self.raw[place]), end

    @cached_property
    def _ends(self) -> list[int]:
        return list(accumulate(map(len, self.raw)))


def in_order(places: Iterable[Sequence[int]]) -> Sequence[int]:
    some = list(places)
    return some[0] if len(some) == 1 else sorted(chain.from_iterable(some))  # sorting merges the runs

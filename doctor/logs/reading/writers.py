"""Finds out which ranks write in a window, by the launchers' prefixes of their lines."""

import re
from collections.abc import Iterator, Mapping, Sequence

from doctor.logs.forms.prefix import PrefixLayout, rank_of
from doctor.logs.reading.lines import Lines, in_order
from doctor.logs.reading.sentences import PREFIX

_RANK = re.compile(rb"(\d{1,6})\][: ]")
_TAG = re.compile(rb"[\[@,]\d{1,6},(\d{1,6})\](?:\[[^\]\n]{1,80}\])?<?\Z")
_LABEL = re.compile(rb" {0,4}(\d{1,6})")
_BRACKET = re.compile(rb"\[(\d{1,6})")
_LONGEST = 110
"""The most bytes of a tag."""


class Writers:
    def __init__(self, lines: Lines, layout: PrefixLayout) -> None:
        self._lines = lines
        self._groups = lines.of(PREFIX)
        self._in_front = _in_front(lines.window.text) if self._groups else set()
        self.ranks = self._in_front.copy()
        self.tasks: set[int] = set()
        """Tasks of Slurm, which may be ranks."""
        self._others = 0
        """The number of writers, from a prefix that all lines have."""
        for wanted, end, pattern in ((layout.label, b": ", _LABEL), (layout.bracket, b"] ", _BRACKET)):
            if wanted:
                numbers = {int(each[1]) for each in filter(None, map(pattern.fullmatch, _heads(lines, end)))}
                self._others = len(self.ranks | numbers)
                if pattern is _LABEL:
                    self.tasks = numbers
                else:
                    self.ranks |= numbers
        if layout.hosts:
            heads = (head for end in (b": ", b"|", b"] ") for head in _heads(lines, end))
            names = layout.hosts & {head.strip(b" [").decode("utf-8", "replace") for head in heads}
            self._others = len(names)
            self.ranks |= {rank for name in names if (rank := rank_of(name)) is not None}

    def parted(self, groups: Mapping[bytes, Sequence[int]]) -> Iterator[tuple[Sequence[int], int]]:
        """Lines with a rank in front, then the others, each with the number of their known writers."""
        fronted = {words: places for words, places in groups.items() if words in self._groups}
        if self._others:
            yield in_order(groups.values()), self._others
            return
        if fronted:
            places = in_order(fronted.values())
            all_of_them = len(fronted) == len(self._groups)
            ranks = self._in_front if all_of_them else _in_front(b"\n".join(self._lines.at(places)))
            yield places, len(ranks)
        if len(fronted) < len(groups):
            yield in_order(places for words, places in groups.items() if words not in fronted), 1


def _heads(lines: Lines, end: bytes) -> set[bytes]:
    return {line[:80].partition(end)[0] for line in lines.raw}


def _in_front(text: bytes) -> set[int]:
    """The ranks in the prefixes. Splitting the text at a word is much faster than a search in each line."""
    found = {
        int(rank[1])
        for begin in {part[:8] for part in text.split(b"[rank")[1:]}
        if (rank := _RANK.match(begin))
    }
    if b"std" in text:
        heads = {part.rpartition(b"\n")[2][-_LONGEST:] for part in text.split(b"std")[:-1]}
        found |= {int(rank[1]) for head in heads if (rank := _TAG.search(head))}
    return found

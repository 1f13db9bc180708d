"""Which lines of a chunk can hold a symptom, without a search for each literal.

The lines of a log are few sentences with changing numbers. So the digits and blanks are taken out of a chunk
in one step, and only sentences that were not seen before are searched. What leaves the digits out of a line
leaves them out of the literals too, so no line is lost; lines whose sentence can hold a symptom are then
compared as they were written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, compress, count, groupby

CHANGING = b"0123456789 \t\r.,+-"
"""What is left out of a line to get its sentence."""
LEAST = 4
"""Characters that must be left of a literal; shorter ones are searched as they were written."""
MOST_BYTES = 32_000_000
"""Of sentences that are remembered; then they are forgotten, and searched again."""
LONGEST = 2000
"""A longer sentence is not remembered: it will not come again."""
_EACH = 100
"""Bytes that Python needs for each one besides its text."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """Literals of one symptom. `owner` is its place among all symptoms."""

    owner: int
    literals: tuple[bytes, ...]
    bare: tuple[bytes, ...]
    """The literals without what changes."""


class Prefilter:
    def __init__(self, patterns: Iterable[tuple[int, Sequence[str]]]) -> None:
        bare: dict[bytes, list[Pattern]] = {}
        written: dict[bytes, list[Pattern]] = {}
        for owner, literals in patterns:
            raw = tuple(literal.encode("utf-8", "surrogatepass") for literal in literals)
            left = tuple(each.translate(None, CHANGING) for each in raw)
            pattern = Pattern(owner, raw, tuple(filter(None, left)))
            longest = max(pattern.bare, key=len, default=b"")
            if len(longest) >= LEAST:
                bare.setdefault(longest, []).append(pattern)
            else:
                written.setdefault(max(raw, key=len), []).append(pattern)
        self._any_bare = tree(bare)
        self._each_bare = tree(bare, overlapping=True)
        self._bare = _by_shortest(bare)
        self._written = tuple(written.items())
        """Patterns by their longest literal, which is looked for first."""
        self._any_written = list(_by_beginning(written))
        self._known: dict[bytes, tuple[Pattern, ...]] = {}
        self._dirty: set[bytes] = set()
        self._held = 0

    def lines(self, chunk: bytes) -> list[tuple[int, int]]:
        """Where the lines are that hold a pattern: start and end, without the line end, in their order."""
        sentences = chunk.translate(None, CHANGING).split(b"\n")
        for sentence in set(sentences).difference(self._known):
            self.owners(sentence)
        found: set[tuple[int, int]] = set()
        if self._dirty and not self._dirty.isdisjoint(sentences):
            lines = chunk.split(b"\n")
            ends = list(accumulate(map(len, lines)))
            for number in compress(count(), map(self._dirty.__contains__, sentences)):
                line = lines[number]
                if any(_stand(line, each.literals) for each in self.owners(sentences[number])):
                    end = ends[number] + number  # a line end after each line before it
                    found.add((end - len(line), end))
        return sorted(found.union(self._lines_as_written(chunk)))

    def possible(self, line: bytes) -> set[int]:
        """The owners whose patterns stand in the line."""
        told = {
            each.owner for each in self.owners(line.translate(None, CHANGING)) if _stand(line, each.literals)
        }
        if any(each.search(line) for each in self._any_written):
            told.update(each.owner for each in self._as_written(line))
        return told

    def owners(self, sentence: bytes) -> tuple[Pattern, ...]:
        """The patterns that lines of this sentence can hold."""
        known = self._known.get(sentence)
        if known is not None:
            return known
        found: tuple[Pattern, ...] = ()
        if self._any_bare and self._each_bare and self._any_bare.search(sentence):
            near = {match[1] for match in self._each_bare.finditer(sentence)}
            some = chain.from_iterable(self._bare[literal] for literal in sorted(near))
            found = tuple(each for each in some if _stand(sentence, each.bare))
        if found:
            self._dirty.add(sentence)
        self._held += len(sentence) + _EACH
        if len(sentence) <= LONGEST or found:
            self._known[sentence] = found
        return found

    def forget(self) -> None:
        """Forget the sentences where they have become too many: memory is bounded over any log."""
        if self._held > MOST_BYTES:
            self._known.clear()
            self._dirty.clear()
            self._held = 0

    def _lines_as_written(self, chunk: bytes) -> Iterator[tuple[int, int]]:
        for expression in self._any_written:
            at = 0
            while found := expression.search(chunk, at):
                start = chunk.rfind(b"\n", 0, found.start()) + 1
                end = chunk.find(b"\n", found.end())
                end = len(chunk) if end < 0 else end
                if any(self._as_written(chunk[start:end])):
                    yield start, end
                at = end

    def _as_written(self, line: bytes) -> Iterator[Pattern]:
        near = chain.from_iterable(some for longest, some in self._written if longest in line)
        return (each for each in near if _stand(line, each.literals))


def _stand(line: bytes, literals: Iterable[bytes]) -> bool:
    at = 0
    for literal in literals:
        found = line.find(literal, at)
        if found < 0:
            return False
        at = found + len(literal)
    return True


def _by_beginning(literals: Iterable[bytes]) -> Iterator[re.Pattern[bytes]]:
    """One expression for each first byte: where it is a single one, the search leaps from one to the next."""
    ordered = sorted(literals)
    for _, same in groupby(ordered, key=lambda literal: literal[:1]):
        expression = tree(same)
        if expression:
            yield expression


def _by_shortest(patterns: Mapping[bytes, list[Pattern]]) -> dict[bytes, list[Pattern]]:
    """The patterns by what `tree` finds of their literals: the shortest with which a literal begins."""
    found: dict[bytes, list[Pattern]] = {}
    for literal, some in patterns.items():
        shortest = next(head for end in range(1, len(literal) + 1) if (head := literal[:end]) in patterns)
        found.setdefault(shortest, []).extend(some)
    return found


def tree(literals: Iterable[bytes], *, overlapping: bool = False) -> re.Pattern[bytes] | None:
    """One expression for all literals that shares their beginnings; nothing in it repeats or can go back.

    An overlapping one finds what begins at every place, as its first group, also within another.
    """
    root: dict[int, dict] = {}  # type: ignore[type-arg]
    ends: set[int] = set()
    for literal in sorted(literals, key=len):
        node = root
        for byte in literal:
            if id(node) in ends:
                break  # a shorter literal says it already
            node = node.setdefault(byte, {})
        ends.add(id(node))
    if not root:
        return None
    written = _written(root)
    return re.compile(b"(?=(%s))" % written if overlapping else written, re.DOTALL)


def _written(root: dict) -> bytes:  # type: ignore[type-arg]
    """Without recursion in depth: chains of single bytes are walked."""
    out = b""
    node = root
    while len(node) == 1:
        ((byte, node),) = node.items()
        out += re.escape(bytes([byte]))
    if node:
        branches = (re.escape(bytes([byte])) + _written(below) for byte, below in sorted(node.items()))
        out += b"(?:" + b"|".join(branches) + b")"
    return out

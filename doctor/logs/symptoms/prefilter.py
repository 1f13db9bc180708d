"""Finds the symptoms that a line can hold, without a search for each literal.

Most lines are excluded by their sentence (doctor.logs.sentence): the literals lose the same characters, so no
line is lost. A sentence is searched for the rarest four characters of the longest literal of each pattern.
Lines of a sentence that can hold a symptom are then compared as they were written.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, KeysView, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from doctor.logs.sentence import sentence
from doctor.logs.symptoms.literals import place, stands
from doctor.text.grouped import grouped

GRAM = 4
"""Characters that a literal must have without numbers; if it has fewer, its numbers count: EI0006."""
MOST_KNOWN = 2000
"""The most remembered sentences that can hold a symptom."""
TOGETHER = 200
"""Sentences that are searched at once."""
_DIGIT = re.compile(rb"[0-9]")


@dataclass(frozen=True, slots=True)
class Pattern:
    """Literals of one symptom. `owner` is its index in the list of all symptoms."""

    owner: int
    literals: tuple[bytes, ...]
    bare: tuple[bytes, ...]
    """The sentences of the literals."""


class Prefilter:
    def __init__(self, patterns: Iterable[tuple[int, Sequence[str]]]) -> None:
        long: list[tuple[bytes, Pattern]] = []
        self._coded: dict[bytes, list[Pattern]] = {}
        """Patterns with few characters besides numbers, by their longest literal."""
        for owner, literals in patterns:
            raw = tuple(literal.encode("utf-8", "surrogatepass") for literal in literals)
            pattern = Pattern(owner, raw, tuple(filter(None, map(sentence, raw))))
            longest = max(pattern.bare, key=len, default=b"")
            if len(longest) >= GRAM:
                long.append((longest, pattern))
            else:
                self._coded.setdefault(max(raw, key=len), []).append(pattern)
        self._grams = _by_rarest(long)
        self._codes = tuple({sentence(literal) for literal in self._coded})
        like = _any_digits(self._coded)
        self._any_code, self._each_code = re.compile(like), re.compile(b"(?=(%s))" % like)
        """They match the literals of `_coded` with any digits; `_each_code` also finds overlapping ones."""
        self._known: dict[bytes, tuple[Pattern, ...]] = {}

    def possible(self, sentences: Iterable[bytes]) -> set[bytes]:
        """The sentences whose lines can hold a symptom."""
        waiting = iter(sentences)
        found: set[bytes] = set()
        while some := [*islice(waiting, TOGETHER)]:
            together = b"\n".join(some)
            near = [each for each in self._near(together) if max(each.bare, key=len) in together]
            codes = [code for code in self._codes if code in together]
            if near or codes:
                found.update(
                    words
                    for words in some
                    if any(code in words for code in codes)
                    or stands(words, (each.bare for each in near)) is not None
                )
        return found

    def owners(self, line: bytes) -> Iterator[int]:
        """The owners of patterns that are in the line; an owner may occur twice."""
        words = sentence(line)
        near: Iterable[Pattern] = self._patterns(words)
        if any(code in words for code in self._codes) and self._any_code.search(line):
            codes = self._each_code.findall(line)
            near = chain(near, *(self._coded[code] for code in codes if code in self._coded))
        return (each.owner for each in near if place(line, each.literals) is not None)

    def numbered(self, words: bytes) -> bytes:
        """An expression for the literals with numbers that a line of the sentence may hold; often empty."""
        codes = (code for code in self._coded if sentence(code) in words)
        literals = chain(codes, chain.from_iterable(each.literals for each in self._patterns(words)))
        return _any_digits(filter(_DIGIT.search, literals))

    def _patterns(self, words: bytes) -> tuple[Pattern, ...]:
        """The patterns that lines of the sentence can hold."""
        known = self._known.get(words)
        if known is None:
            known = tuple(each for each in self._near(words) if place(words, each.bare) is not None)
            if known:
                if len(self._known) >= MOST_KNOWN:
                    self._known.clear()
                self._known[words] = known
        return known

    def _near(self, words: bytes) -> Iterator[Pattern]:
        return chain.from_iterable(map(self._grams.__getitem__, _grams(words, self._grams.keys())))


def _any_digits(literals: Iterable[bytes]) -> bytes:
    """An expression for the literals with any digits."""
    return b"|".join(sorted({_DIGIT.sub(b"[0-9]", re.escape(each)) for each in literals}))


def _grams(words: bytes, wanted: KeysView[int] | None = None) -> set[int]:
    """All pieces of four characters, as numbers; only those in `wanted`, if given."""
    found: set[int] = set()
    for at in range(GRAM):
        pieces = memoryview(words)[at : len(words) - (len(words) - at) % GRAM].cast("I")
        found |= set(pieces) if wanted is None else wanted & pieces
    return found


def _by_rarest(patterns: Sequence[tuple[bytes, Pattern]]) -> dict[int, list[Pattern]]:
    """The patterns by one gram of their longest literal: the gram that the fewest literals have."""
    of = {longest: _grams(longest) for longest, _ in patterns}
    common = Counter(chain.from_iterable(of.values()))
    rarest = {longest: min(sorted(grams), key=common.__getitem__) for longest, grams in of.items()}
    return grouped((rarest[longest], pattern) for longest, pattern in patterns)

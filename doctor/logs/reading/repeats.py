"""Finds the lines that say what an earlier line said, with other times and sizes: they are only counted.

Which numbers of a line matter is found by trial: a number matters if the line says something else with
another number in its place.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from doctor.logs.forms import complaint
from doctor.logs.model import Form
from doctor.logs.reading.fold import Subject, UnresolvedParty

FEW = 50
"""Fewer lines of one sentence in a window are examined one by one: that costs less than the trials."""
MOST = 20_000
"""The most remembered lines; beyond that, all are forgotten."""
MOST_TRIED = 500
"""The most shapes of lines of one file whose numbers are tried."""
ENOUGH = 10
"""The least number of lines of a shape for which the trials are worth it."""
_HEX = rb"(?<=0x)[0-9a-fA-F_]+|\b[0-9a-f]{8,16}\b|(?<=:)[0-9a-f]{2}(?=[:.])"
"""Addresses of memory and of PCI devices: their letters are digits, too."""
_NUMBER = re.compile(_HEX + rb"|\d+")
_ADDRESSES = tuple(map(re.compile, (rb"0x[0-9a-fA-F_]+", rb" [0-9a-f]{8,16}\b", rb":[0-9a-f]{2}(?=[:.])")))
"""The same, each beginning with a letter: so they are searched faster."""
_DIGITS, _LETTERS = b"0123456789abcdefABCDEF", b"bcdefaBCDEFA"
_OTHERS = tuple(
    bytes.maketrans(_DIGITS, each + _LETTERS) for each in (b"0" * 10, b"1234567891", b"4567891234")
)
"""Other digits for those of a number."""


class Meaning(NamedTuple):
    """What a line says, whatever its neighbours are."""

    form: Form
    who: UnresolvedParty
    symptoms: tuple[tuple[str, Subject], ...]
    """Ids of symptoms, each with what it is about."""
    odd: str = ""
    """The wording of a complaint without a symptom."""
    learned: str = ""
    """What it shows about ranks."""


class Repeat(NamedTuple):
    """Lines that say what an examined line says."""

    meaning: Meaning
    times: int
    last: int
    """The index of the last one."""


class Repeats:
    def __init__(self, meaning: Callable[[bytes], Meaning | None]) -> None:
        """`meaning` is None for a line that has to be examined."""
        self._meaning = meaning
        self._known: dict[tuple[bytes, ...], int | None] = {}
        """The meaning of a line, by its shape and its numbers that matter."""
        self._numbered: dict[Meaning, int] = {}
        """The meanings, numbered: they are compared often."""
        self._met: dict[int, int] = {}
        """The number of the first examined line of each meaning: sentences come in no order."""
        self._spans: dict[bytes, Sequence[slice]] = {}
        """Where the numbers that matter are in the lines of a shape."""
        self._tried = 0

    def forget(self) -> None:
        """The next lines belong to another part of the file, or are read in another way."""
        for each in (self._known, self._numbered, self._met, self._spans):
            each.clear()

    def sort(
        self, raws: Sequence[bytes], places: Sequence[int], codes: bytes, begin: int
    ) -> tuple[list[int], list[Repeat]]:
        """The indices of the lines that have to be examined, and the others. `raws` are the lines at
        `places`, `codes` is an expression for numbers that matter whatever the trials say, and `begin` is the
        number of the line at place 0.
        """
        if len(self._known) > MOST:
            self.forget()
        written, last = Counter(raws), dict(zip(raws, places, strict=True))
        first = dict(zip(reversed(raws), reversed(places), strict=True))
        find = re.compile(codes or b"(?!)").findall
        examined, alone = list[int](), set[bytes]()
        more, ends = Counter[int](), dict[int, int]()
        text = b"\n".join(written)
        shapes = complaint.like(text).split(b"\n")
        many = Counter(shapes)
        if len(many) > len(shapes) // ENOUGH:
            for address in _ADDRESSES:
                text = address.sub(lambda found: found[0][:1] + b"1" * (len(found[0]) - 1), text)
            shapes = complaint.like(text).split(b"\n")
            many = Counter(shapes)
        for raw, shape in zip(written, shapes, strict=True):
            spans = self._spans.get(shape)
            if spans is None:
                spans = self._matter(raw, shape, many[shape])
            key = (shape, *find(raw), *[raw[span] for span in spans])
            number = self._known[key] if key in self._known else self._new(key, raw)
            if number is None:
                alone.add(raw)
                continue
            line = begin + first[raw]
            if line < self._met.get(number, line + 1):
                self._met[number] = line
                examined.append(first[raw])
                more[number] -= 1
            more[number] += written[raw]
            ends[number] = max(last[raw], ends.get(number, 0))
        if alone:
            examined += [place for raw, place in zip(raws, places, strict=True) if raw in alone]
        meanings = [*self._numbered]
        return examined, [Repeat(meanings[each], times, ends[each]) for each, times in more.items() if times]

    def _new(self, key: tuple[bytes, ...], raw: bytes) -> int | None:
        meaning = self._meaning(raw)
        number = meaning and self._numbered.setdefault(meaning, len(self._numbered))
        self._known[key] = number
        return number

    def _matter(self, raw: bytes, shape: bytes, lines: int) -> Sequence[slice]:
        """The numbers of a line that matter: all, if too few lines have its shape or too many were tried."""
        numbers = [slice(*found.span()) for found in _NUMBER.finditer(raw)]
        if lines < ENOUGH or self._tried >= MOST_TRIED:
            return numbers
        said = self._meaning(raw)

        def matters(at: slice) -> bool:
            others = (raw[at].translate(each) for each in _OTHERS)
            return any(self._meaning(raw[: at.start] + each + raw[at.stop :]) != said for each in others)

        self._tried += 1
        self._spans[shape] = [*filter(matters, numbers)]
        return self._spans[shape]


def alike(words: bytes) -> bytes:
    """A key of sentences: those that differ only in the letters of addresses have the same."""
    return words.translate(None, _LETTERS)

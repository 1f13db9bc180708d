"""Reads lines that differ only in their numbers many at once, by the shape of an earlier line.

A shape is made from a line whose values have known positions, so that nothing is mistaken; any other line is
read by itself.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import inf
from operator import add
from struct import Struct
from typing import Any, NamedTuple

import msgspec

from doctor.logs.loss.lines import LossValues, ValueSpans
from doctor.logs.loss.names import as_number
from doctor.logs.loss.rows import Rows, Shape, by_front, without
from doctor.logs.model import LossForm
from doctor.logs.sentence import sentence

MOST_SHAPES = 4
"""The most shapes of one sentence."""
MOST_TRIES = 500
"""The most shapes that are made for one file; a file that needs more is too varied."""
LONGEST = 1000
MOST_NUMBERS = 40
_FLOATS = msgspec.json.Decoder(list[float])
_INTEGERS = msgspec.json.Decoder(list[int])
_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)
_NUMBER = re.compile(
    r"(?P<power>\d{1,40}(?:\.\d{1,60})?[eE][-+]?\d{1,4})|(?P<decimal>\d{1,40}\.\d{1,60})|(?P<whole>\d{1,15})|\d"
)
_WRITTEN = {
    "power": r"\d{1,40}(?:\.\d{1,60})?[eE][-+]?\d{1,4}",
    "decimal": r"\d{1,40}\.\d{1,60}",
    "whole": r"\d{1,15}",
}
_ANY = {"power": r"\d+(?:\.\d+)?[eE][-+]?\d+", "decimal": r"\d+\.\d+", "whole": r"\d+"}
"""Patterns for numbers that are not read."""


class Front(NamedTuple):
    """The prefix that a launcher put in front of a line."""

    end: int = 0
    time: tuple[int, int] = (0, 0)
    """The position of a time in it, which does not identify the writer."""
    timed: bool = False
    """Whether the line states when it was written, in the prefix or later."""


NO_FRONT = Front()


class Shapes:
    """The shapes of one file, by the sentences of its lines."""

    def __init__(self) -> None:
        self._known: dict[bytes, list[Shape]] = {}
        self._tries = 0

    def of(self, words: bytes) -> Sequence[Shape]:
        return self._known.get(words, ())

    def learn(self, text: str, said: LossValues, spans: ValueSpans | None, front: Front = NO_FRONT) -> None:
        line = text.encode()
        known = self._known.setdefault(sentence(line), [])
        if self._tries < MOST_TRIES and not any(each.lines.fullmatch(line) for each in known):
            self._tries += 1
            if shape := _shape(text, said, spans, front):
                known[:] = [shape, *known[: MOST_SHAPES - 1]]

    def rows(
        self, words: bytes, lines: Sequence[bytes], places: Sequence[int]
    ) -> Iterator[tuple[bytes, Rows]]:
        """The lines of one sentence that have one of its shapes, writer by writer, each with the launcher's
        prefix.
        """
        shapes = self.of(words)
        forms = b"\n".join(lines).translate(_ZEROS).split(b"\n")
        alike: dict[bytes, list[int]] = {form: [] for form in {*forms}}
        add_to = {form: numbers.append for form, numbers in alike.items()}
        for number, form in enumerate(forms):
            add_to[form](number)
        of: dict[Shape, list[tuple[Struct, list[int]]]] = {shape: [] for shape in shapes}
        whole = next((shape for shape in shapes if all(map(shape.layout, alike))), None)
        for form, numbers in alike.items():
            for shape in (whole,) if whole else shapes:
                if layout := shape.layout(form):
                    of[shape].append((layout, numbers))
                    break
        for shape, some in of.items():
            if some:
                yield from _rows(shape, _read(lines, some), [places[row] for _, rows in some for row in rows])

    def forget_rows(self) -> None:
        """Forget the shapes of table rows, because another table begins."""
        for known in self._known.values():
            known[:] = [each for each in known if each.like.form is not LossForm.CSV]


def _read(lines: Sequence[bytes], some: Sequence[tuple[Struct, Sequence[int]]]) -> list[tuple[bytes, ...]]:
    """The groups of lines, layout by layout."""
    found: list[tuple[bytes, ...]] = []
    for layout, numbers in some:
        found += layout.iter_unpack(b"".join([lines[number] for number in numbers]))
    return found


def _rows(
    shape: Shape, found: Sequence[tuple[bytes, ...]], places: Sequence[int]
) -> Iterator[tuple[bytes, Rows]]:
    """The rows of each writer. A line whose loss is a whole number is left out: it is read by itself."""
    before, after, *columns = zip(*found, strict=True)

    def column(group: int, read: Callable[[Sequence[bytes]], Sequence[Any]]) -> Sequence[Any]:
        if not group:
            return ()
        values = columns[group - 3]
        if values.count(values[0]) == len(values):
            return [*read(values[:1])] * len(values)
        return read(values)

    losses = column(shape.at_loss, _floats)
    rows = Rows(
        places=places,
        shapes=[shape] * len(places),
        losses=losses,
        steps=column(shape.at_step, _integers),
        of=column(shape.at_of, _integers),
        epochs=column(shape.at_epoch, _whole_parts),
    )
    fronts = before if not any(after) else after if not any(before) else [*map(add, before, after)]
    if inf in losses or True in map(float.is_integer, losses):
        odd = [row for row, loss in enumerate(losses) if loss.is_integer() or loss == inf]
        rows, fronts = rows.without(odd), without(fronts, odd)
    return by_front(fronts, rows) if fronts else iter(())


def _floats(written: Sequence[bytes]) -> Sequence[float]:
    """The numbers of a column. A decoder of JSON is many times faster, but refuses 007.5 and 1e999."""
    try:
        return _FLOATS.decode(b"[%b]" % b",".join(written))
    except msgspec.DecodeError:
        return [*map(float, written)]


def _integers(written: Sequence[bytes]) -> Sequence[int]:
    try:
        return _INTEGERS.decode(b"[%b]" % b",".join(written))
    except msgspec.DecodeError:
        return [*map(int, written)]


def _whole_parts(written: Sequence[bytes]) -> Sequence[int]:
    return [int(each.partition(b".")[0]) for each in written]


def _shape(text: str, said: LossValues, spans: ValueSpans | None, front: Front) -> Shape | None:
    if len(text) > LONGEST or said.rank is not None:
        return None
    if said.form is LossForm.JSON and said.epoch is not None:
        return None  # 0.5 is a part of an epoch, and 1.0 is not
    numbers = list(_NUMBER.finditer(text))
    if len(numbers) > MOST_NUMBERS or not all(each.lastgroup for each in numbers):
        return None
    if any(here.end() == there.start() for here, there in pairwise(numbers)):
        return None  # too many digits for one number
    places = _places(numbers, spans) if spans else _only_places(numbers, said)
    if not places or any(numbers[place].start() < front.end for place in places.values()):
        return None
    cuts = (0, front.time[0], front.time[1], front.end, len(text))
    if any(each.start() < cut < each.end() for each in numbers for cut in cuts):
        return None
    groups = {place: number for number, place in enumerate(sorted({*places.values()}), start=3)}
    parts = ["".join(_like(text, numbers, groups, begin, end)) for begin, end in pairwise(cuts)]
    group = {name: groups[place] for name, place in places.items()}
    return Shape(
        lines=re.compile(rf"({parts[0]}){parts[1]}({parts[2]}){parts[3]}".encode()),
        like=said,
        at_loss=group["loss"],
        at_step=group.get("step", 0),
        at_of=group.get("of", 0),
        at_epoch=group.get("epoch", 0),
        timed=front.timed,
    )


def _like(
    text: str, numbers: Sequence[re.Match[str]], groups: Mapping[int, int], begin: int, end: int
) -> Iterator[str]:
    """A pattern for a part of a text with any numbers in it; the wanted numbers are groups."""
    for number, each in enumerate(numbers):
        if begin <= each.start() < end:
            kind = each.lastgroup or ""
            yield _literal(text[begin : each.start()])
            yield f"({_WRITTEN[kind]})" if number in groups else f"(?:{_ANY[kind]})"
            begin = each.end()
    yield _literal(text[begin:end])


def _places(numbers: Sequence[re.Match[str]], spans: ValueSpans) -> dict[str, int]:
    """For each value, the index of its number in the line; empty if a value is not one of the numbers."""
    begins = {each.start(): place for place, each in enumerate(numbers)}
    found: dict[str, int] = {}
    for name, span in spans._asdict().items():
        if span is None:
            continue
        place = begins.get(span[0])
        if place is None or (name != "epoch" and numbers[place].end() != span[1]):
            return {}
        found[name] = place
    return found


def _only_places(numbers: Sequence[re.Match[str]], said: LossValues) -> dict[str, int]:
    """Like `_places` if only the values are known: each must occur exactly once."""
    found: dict[str, int] = {}
    for name, value in (("loss", said.loss), ("step", said.step), ("epoch", said.epoch)):
        if value is None:
            continue
        same = [place for place, number in enumerate(numbers) if as_number(number[0]) == value]
        if len(same) != 1 or same[0] in found.values() or (name != "loss" and not numbers[same[0]]["whole"]):
            return {}
        found[name] = same[0]
    return found


def _literal(text: str) -> str:
    """A pattern for the text between numbers, with any number of blanks: numbers are padded with them."""
    return re.sub(r"(?:\\ )+", " +", re.escape(text))

"""Lines of a loss that differ from one before only in their numbers are read by its shape, many at once.

A shape is made of a line of which it is known where its values stand, so that nothing is mistaken; any other
line is read by itself.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import inf
from operator import add
from typing import Any, NamedTuple

from doctor.logs.loss.lines import SLOWEST, Said, Spans
from doctor.logs.loss.names import as_number
from doctor.logs.loss.rows import Rows, Shape, by_front, without
from doctor.logs.model import LossForm
from doctor.logs.sentence import sentence

MOST_SHAPES = 4
"""Of one sentence."""
MOST_TRIES = 500
"""Lines without a shape that one is made of; then a file is too varied."""
LONGEST = 1000
MOST_NUMBERS = 40
_UNITS = (1.0, 1e-3, 1e-6)
_NUMBER = re.compile(
    r"(?P<power>\d{1,40}(?:\.\d{1,60})?[eE][-+]?\d{1,4})|(?P<decimal>\d{1,40}\.\d{1,60})|(?P<whole>\d{1,15})|\d"
)
_WRITTEN = {
    "power": r"\d{1,40}(?:\.\d{1,60})?[eE][-+]?\d{1,4}",
    "decimal": r"\d{1,40}\.\d{1,60}",
    "whole": r"\d{1,15}",
}
_ANY = {"power": r"\d+(?:\.\d+)?[eE][-+]?\d+", "decimal": r"\d+\.\d+", "whole": r"\d+"}
"""Numbers that are not read."""


class Front(NamedTuple):
    """What a launcher wrote in front of a line."""

    end: int = 0
    time: tuple[int, int] = (0, 0)
    """Where a time stands in it, which tells nothing of who wrote the line."""
    timed: bool = False
    """The line says when it was written, there or later."""


NO_FRONT = Front()


class Shapes:
    """Of one file, by the sentences of its lines."""

    def __init__(self) -> None:
        self._known: dict[bytes, list[Shape]] = {}
        self._tries = 0

    def of(self, words: bytes) -> Sequence[Shape]:
        return self._known.get(words, ())

    def learn(self, text: str, said: Said, spans: Spans | None, front: Front = NO_FRONT) -> None:
        line = text.encode()
        known = self._known.setdefault(sentence(line), [])
        if self._tries < MOST_TRIES and not any(each.lines.fullmatch(line) for each in known):
            self._tries += 1
            if shape := _shape(text, said, spans, front):
                known[:] = [shape, *known[: MOST_SHAPES - 1]]

    def rows(
        self, words: bytes, lines: Sequence[bytes], places: Sequence[int]
    ) -> Iterator[tuple[bytes, Rows]]:
        """Of lines of one sentence those that have one of its shapes, writer by writer: each with what a
        launcher wrote in front of its lines.
        """
        for shape in self.of(words):
            found = shape.lines.findall(b"\n".join(lines))
            if len(found) == len(lines):
                yield from _rows(shape, found, places)
                return
        of: defaultdict[Shape, list[tuple[int, tuple[bytes, ...]]]] = defaultdict(list)
        for line, place in zip(lines, places, strict=True):
            for shape in self.of(words):
                if matched := shape.lines.fullmatch(line.strip(b"\r")):
                    of[shape].append((place, matched.groups()))
                    break
        for shape, some in of.items():
            yield from _rows(shape, [values for _, values in some], [place for place, _ in some])

    def forget_rows(self) -> None:
        """Those below a header, where another begins."""
        for known in self._known.values():
            known[:] = [each for each in known if each.like.form is not LossForm.CSV]


def _rows(
    shape: Shape, found: Sequence[tuple[bytes, ...]], places: Sequence[int]
) -> Iterator[tuple[bytes, Rows]]:
    """No loss of a row is whole: such a line is read by itself."""
    before, after, *columns = zip(*found, strict=True)

    def numbers(group: int, number: Callable[[bytes], Any]) -> Sequence[Any]:
        return [*map(number, columns[group - 3])] if group else ()

    losses = numbers(shape.at_loss, float)
    took = numbers(shape.at_took, float)
    if shape.unit != 1:
        took = [shape.unit * each for each in took]
    rows = Rows(
        places=places,
        shapes=[shape] * len(places),
        losses=losses,
        steps=numbers(shape.at_step, int),
        of=numbers(shape.at_of, int),
        epochs=numbers(shape.at_epoch, _whole_part),
        took=took,
    )
    fronts = before if not any(after) else [*map(add, before, after)]
    sure = not took or 0 < min(took) <= max(took) < SLOWEST
    if not sure or inf in losses or True in map(float.is_integer, losses):
        odd = [row for row, loss in enumerate(losses) if loss.is_integer() or loss == inf]
        if not sure:
            odd = sorted({*odd, *(row for row, each in enumerate(took) if not 0 < each < SLOWEST)})
        rows, fronts = rows.without(odd), without(fronts, odd)
    return by_front(fronts, rows) if fronts else iter(())


def _whole_part(number: bytes) -> int:
    return int(number.partition(b".")[0])


def _shape(text: str, said: Said, spans: Spans | None, front: Front) -> Shape | None:
    if len(text) > LONGEST or said.rank is not None:
        return None
    if said.form is LossForm.JSON and said.epoch is not None:
        return None  # 0.5 is a part of an epoch, and 1.0 is none
    numbers = list(_NUMBER.finditer(text))
    if len(numbers) > MOST_NUMBERS or not all(each.lastgroup for each in numbers):
        return None
    if any(here.end() == there.start() for here, there in pairwise(numbers)):
        return None  # digits without an end
    if spans:
        places, unit = _places(numbers, spans), spans.unit
    else:
        places, unit = _only_places(numbers, said)
    if not places or any(numbers[place].start() < front.end for place in places.values()):
        return None
    cuts = (0, front.time[0], front.time[1], front.end, len(text))
    if any(each.start() < cut < each.end() for each in numbers for cut in cuts):
        return None
    groups = {place: number for number, place in enumerate(sorted({*places.values()}), start=3)}
    parts = ["".join(_like(text, numbers, groups, begin, end)) for begin, end in pairwise(cuts)]
    group = {name: groups[place] for name, place in places.items()}
    return Shape(
        lines=re.compile(rf"^({parts[0]}){parts[1]}({parts[2]}){parts[3]}\r?$".encode(), re.MULTILINE),
        like=said,
        at_loss=group["loss"],
        at_step=group.get("step", 0),
        at_of=group.get("of", 0),
        at_epoch=group.get("epoch", 0),
        at_took=group.get("took", 0),
        unit=unit,
        timed=front.timed,
    )


def _like(
    text: str, numbers: Sequence[re.Match[str]], groups: Mapping[int, int], begin: int, end: int
) -> Iterator[str]:
    """What matches that part of a text, whatever the numbers in it are; those that are wanted are groups."""
    for number, each in enumerate(numbers):
        if begin <= each.start() < end:
            kind = each.lastgroup or ""
            yield _literal(text[begin : each.start()])
            yield f"({_WRITTEN[kind]})" if number in groups else f"(?:{_ANY[kind]})"
            begin = each.end()
    yield _literal(text[begin:end])


def _places(numbers: Sequence[re.Match[str]], spans: Spans) -> dict[str, int]:
    """Which of the numbers each value is; nothing where one is none of them."""
    begins = {each.start(): place for place, each in enumerate(numbers)}
    found: dict[str, int] = {}
    for name, span in spans._asdict().items():
        if name == "unit" or span is None:
            continue
        place = begins.get(span[0])
        if place is None or (name != "epoch" and numbers[place].end() != span[1]):
            return {}
        found[name] = place
    return found


def _only_places(numbers: Sequence[re.Match[str]], said: Said) -> tuple[dict[str, int], float]:
    """The same where only the values are known, and the unit of the time: each must stand there once."""
    found: dict[str, int] = {}
    unit = 1.0
    for name, value in (("loss", said.loss), ("step", said.step), ("epoch", said.epoch), ("took", said.took)):
        if value is None:
            continue
        units = _UNITS if name == "took" else (1.0,)
        whole = name in ("step", "epoch")
        same = [
            (place, each)
            for place, number in enumerate(numbers)
            for each in units
            if as_number(number[0]) * each == value
        ]
        if len(same) != 1 or same[0][0] in found.values() or (whole and not numbers[same[0][0]]["whole"]):
            return {}, 1.0
        found[name], unit = same[0]
    return found, unit


def _literal(text: str) -> str:
    """Numbers are padded with blanks."""
    return re.sub(r"(?:\\ )+", " +", re.escape(text))

"""Lines of a loss that differ from one before only in their numbers are read by its shape, many at once.

A shape is made of a line of which it is known where its values stand, so that nothing is mistaken; any other
line is read by itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise, repeat
from math import isfinite
from typing import Any

from doctor.logs.loss.lines import SLOWEST, Said, Spans
from doctor.logs.loss.names import as_number
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


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    lines: re.Pattern[bytes]
    """Of whole lines. Its first group is what a launcher wrote in front."""
    like: Said
    """What the line said that it was made of."""
    at_loss: int
    """Its group; those that follow are 0 where the line does not tell it."""
    at_step: int
    at_of: int
    at_epoch: int
    at_took: int
    unit: float
    timed: bool
    """It says when it was written."""


Row = tuple[int, Shape, bytes, int | None, int | None, int | None, float, float | None]
"""A line: its place, its shape, what a launcher wrote in front; step, of how many, epoch, loss, seconds."""


def said_of(row: Row) -> Said:
    """What `read_line` says of the line."""
    _, shape, _, step, of, epoch, loss, took = row
    return Said(shape.like.form, shape.like.name, loss, step, of, epoch, shape.like.part, took)


class Shapes:
    """Of one file, by the sentences of its lines."""

    def __init__(self) -> None:
        self._known: dict[bytes, list[Shape]] = {}
        self._tries = 0

    def of(self, words: bytes) -> Sequence[Shape]:
        return self._known.get(words, ())

    def learn(self, text: str, said: Said, spans: Spans | None, prefix: int = 0, timed: bool = False) -> None:
        """`prefix` characters are a launcher's; `timed`: the line has a time."""
        line = text.encode()
        known = self._known.setdefault(sentence(line), [])
        if self._tries < MOST_TRIES and not any(each.lines.fullmatch(line) for each in known):
            self._tries += 1
            if shape := _shape(text, said, spans, prefix, timed):
                known[:] = [shape, *known[: MOST_SHAPES - 1]]

    def rows(self, words: bytes, lines: Sequence[bytes], places: Sequence[int]) -> list[Row]:
        """Of lines of one sentence, those that have one of its shapes."""
        for shape in self.of(words):
            found = shape.lines.findall(b"\n".join(lines))
            if len(found) == len(lines):
                return _rows(shape, found, places)
        rows: list[Row] = []
        for line, place in zip(lines, places, strict=True):
            for shape in self.of(words):
                if matched := shape.lines.fullmatch(line.strip(b"\r")):
                    rows += _rows(shape, [matched.groups()], [place])
                    break
        return rows

    def forget_rows(self) -> None:
        """Those below a header, where another begins."""
        for known in self._known.values():
            known[:] = [each for each in known if each.like.form is not LossForm.CSV]


def _rows(shape: Shape, found: Sequence[tuple[bytes, ...]], places: Sequence[int]) -> list[Row]:
    """No loss of a row is whole: such a line is read by itself."""
    columns = list(zip(*found, strict=True))

    def numbers(group: int, number: Callable[[bytes], Any]) -> Iterable[Any]:
        return map(number, columns[group - 1]) if group else repeat(None)

    losses = list(map(float, columns[shape.at_loss - 1]))
    took = [shape.unit * float(each) for each in columns[shape.at_took - 1]] if shape.at_took else None
    rows: list[Row] = list(
        zip(
            places,
            repeat(shape),
            columns[0],
            numbers(shape.at_step, int),
            numbers(shape.at_of, int),
            numbers(shape.at_epoch, _whole_part),
            losses,
            took or repeat(None),
            strict=False,
        )
    )
    odd = {row for row, loss in enumerate(losses) if loss.is_integer() or not isfinite(loss)}
    if took and (min(took) <= 0 or max(took) >= SLOWEST):
        odd.update(row for row, each in enumerate(took) if not 0 < each < SLOWEST)
    for row in sorted(odd, reverse=True):
        del rows[row]
    return rows


def _whole_part(number: bytes) -> int:
    return int(number.partition(b".")[0])


def _shape(text: str, said: Said, spans: Spans | None, prefix: int, timed: bool) -> Shape | None:
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
    if not places or any(numbers[place].start() < prefix for place in places.values()):
        return None
    if any(each.start() < prefix < each.end() for each in numbers):
        return None
    groups = {place: number for number, place in enumerate(sorted({*places.values()}), start=2)}
    ends = [0, *(each.end() for each in numbers), len(text)]
    out = ["", ""]
    """Of the prefix, and of what follows it."""
    for number, each in enumerate((*numbers, None)):
        begin, end = ends[number], each.start() if each else len(text)
        out[0] += _literal(text[begin : min(end, prefix)])
        out[1] += _literal(text[max(begin, prefix) : end])
        if each:
            kind = each.lastgroup or ""
            out[each.start() >= prefix] += f"({_WRITTEN[kind]})" if number in groups else f"(?:{_ANY[kind]})"
    group = {name: groups[place] for name, place in places.items()}
    return Shape(
        lines=re.compile(rf"^({out[0]}){out[1]}\r?$".encode(), re.MULTILINE),
        like=said,
        at_loss=group["loss"],
        at_step=group.get("step", 0),
        at_of=group.get("of", 0),
        at_epoch=group.get("epoch", 0),
        at_took=group.get("took", 0),
        unit=unit,
        timed=timed,
    )


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
            if as_number(number[0]) * each == value and (number["whole"] or not whole)
        ]
        if len(same) != 1 or same[0][0] in found.values():
            return {}, 1.0
        found[name], unit = same[0]
    return found, unit


def _literal(text: str) -> str:
    """Numbers are padded with blanks."""
    return re.sub(r"(?:\\ )+", " +", re.escape(text))

"""Lines of a loss that differ from one before only in their numbers are read by its shape, which is faster.

A shape is made only of a line in which each value stands once, so that nothing is mistaken; any other line is
read as usual.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from doctor.logs.loss.lines import EPOCH, Said, read_line
from doctor.logs.loss.names import as_number
from doctor.logs.model import LossForm

MOST_SHAPES = 4
MOST_TRIES = 2000
"""Lines without a shape that one is made of; then a file is too varied."""
LONGEST = 1000
MOST_NUMBERS = 40
_NUMBER = re.compile(
    r"(?P<power>\d{1,40}(?:\.\d{1,60})?[eE][-+]?\d{1,4})|(?P<decimal>\d{1,40}\.\d{1,60})|(?P<whole>\d{1,15})|\d"
)
_WRITTEN = {
    "power": r"\d{1,40}(?:\.\d{1,60})?[eE][-+]?\d{1,4}",
    "decimal": r"\d{1,40}\.\d{1,60}",
    "whole": r"\d{1,15}",
}
_UNITS = (1.0, 1e-3, 1e-6)


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    pattern: re.Pattern[str]
    lines: re.Pattern[bytes]
    """The same of a whole line in a text. Its first group is what a launcher wrote in front."""
    said: Said
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

    def read(self, text: str) -> Said | None:
        found = self.pattern.fullmatch(text)
        if not found:
            return None
        like = self.said
        loss = as_number(found[self.at_loss])
        took = self.seconds(found)
        if loss.is_integer() or (took is not None and not 0 < took < 1e7):
            return None
        return Said(
            like.form,
            like.name,
            loss,
            int(found[self.at_step]) if self.at_step else None,
            int(found[self.at_of]) if self.at_of else None,
            int(found[self.at_epoch].partition(".")[0]) if self.at_epoch else None,
            like.part,
            took,
        )

    def seconds(self, found: re.Match[str] | re.Match[bytes]) -> float | None:
        """What a step took, as a line of the shape says."""
        return float(found[self.at_took]) * self.unit if self.at_took else None


class Shapes:
    """Of one file."""

    def __init__(self) -> None:
        self.known: list[Shape] = []
        self._tries = 0

    def read(self, text: str, prefix: int = 0, timed: bool = False) -> Said | None:
        """What `read_line` says of it. `prefix` characters are a launcher's; `timed`: it has a time."""
        for shape in self.known:
            if said := shape.read(text):
                return said
        said = read_line(text)
        if said:
            self.learn(text, said, prefix, timed)
        return said

    def learn(self, text: str, said: Said, prefix: int, timed: bool) -> None:
        if self._tries < MOST_TRIES and not any(each.pattern.fullmatch(text) for each in self.known):
            self._tries += 1
            if shape := _shape(text, said, prefix, timed):
                self.known = [shape, *self.known[: MOST_SHAPES - 1]]

    def forget_rows(self) -> None:
        """Those below a header, where another begins."""
        self.known = [each for each in self.known if each.said.form is not LossForm.CSV]


def _shape(text: str, said: Said, prefix: int, timed: bool) -> Shape | None:
    if len(text) > LONGEST or said.rank is not None:
        return None
    if said.form is LossForm.JSON and said.epoch is not None:
        return None  # 0.5 is a part of an epoch, and 1.0 is none
    numbers = list(_NUMBER.finditer(text))
    if len(numbers) > MOST_NUMBERS or not all(each.lastgroup for each in numbers):
        return None
    epoch = EPOCH.search(text)
    epoch_at = epoch.start("epoch") if epoch else -1
    each_number = [(n, found, as_number(found[0])) for n, found in enumerate(numbers)]
    values: Mapping[str, list[tuple[int, float]]] = {
        "loss": [(n, 1.0) for n, _, value in each_number if value == said.loss],
        "step": _whole(numbers, said.step),
        "of": _whole(numbers, said.of),
        "epoch": [(n, 1.0) for n, found, _ in each_number if found.start() == epoch_at],
        "took": [(n, unit) for n, _, value in each_number for unit in _UNITS if value * unit == said.took],
    }
    wanted = {
        "loss": True,
        "step": said.step is not None,
        "of": said.of is not None,
        "epoch": said.epoch is not None,
        "took": said.took is not None,
    }
    if any(wanted[name] and len(values[name]) != 1 for name in wanted):
        return None
    places = {name: values[name][0] for name in wanted if wanted[name]}
    if len({place for place, _ in places.values()}) < len(places):
        return None
    order = sorted((place, name) for name, (place, _) in places.items())
    groups = {name: number for number, (_, name) in enumerate(order, start=1)}
    taken = {place for place, _ in order}
    if any(each.start() < prefix < each.end() for each in numbers) or any(
        numbers[place].start() < prefix for place in taken
    ):
        return None
    ends = [0, *(each.end() for each in numbers), len(text)]
    out = ["", ""]
    """Of the prefix, and of what follows it."""
    for number, each in enumerate((*numbers, None)):
        begin, end = ends[number], each.start() if each else len(text)
        out[0] += _literal(text[begin : min(end, prefix)])
        out[1] += _literal(text[max(begin, prefix) : end])
        if each:
            written = _WRITTEN[each.lastgroup or ""]
            out[each.start() >= prefix] += f"({written})" if number in taken else f"(?:{written})"
    whole = f"({out[0]}){out[1]}"
    group = {name: groups.get(name, -1) + 1 for name in wanted}
    return Shape(
        pattern=re.compile(whole),
        lines=re.compile(rf"^{whole}\r?$".encode(), re.MULTILINE),
        said=said,
        at_loss=group["loss"],
        at_step=group["step"],
        at_of=group["of"],
        at_epoch=group["epoch"],
        at_took=group["took"],
        unit=places["took"][1] if "took" in places else 1.0,
        timed=timed,
    )


def _whole(numbers: list[re.Match[str]], value: int | None) -> list[tuple[int, float]]:
    return [
        (n, 1.0)
        for n, each in enumerate(numbers)
        if value is not None and each["whole"] and int(each[0]) == value
    ]


def _literal(text: str) -> str:
    """Numbers are padded with blanks."""
    return re.sub(r"(?:\\ )+", " {1,20}", re.escape(text))

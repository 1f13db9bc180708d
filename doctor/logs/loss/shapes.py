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


@dataclass(frozen=True, slots=True)
class _Shape:
    pattern: re.Pattern[str]
    said: Said
    """What the line said that it was made of."""
    groups: tuple[int, int, int, int, int]
    """Of the loss, the step, the steps of all, the epoch, the time; 0 for none."""
    unit: float

    def read(self, text: str) -> Said | None:
        found = self.pattern.fullmatch(text)
        if not found:
            return None
        at_loss, at_step, at_of, at_epoch, at_took = self.groups
        like = self.said
        loss = as_number(found[at_loss])
        took = as_number(found[at_took]) * self.unit if at_took else None
        if loss.is_integer() or (took is not None and not 0 < took < 1e7):
            return None
        return Said(
            like.form,
            like.name,
            loss,
            int(found[at_step]) if at_step else None,
            int(found[at_of]) if at_of else None,
            int(found[at_epoch].partition(".")[0]) if at_epoch else None,
            like.part,
            took,
        )


class Shapes:
    """Of one file."""

    def __init__(self) -> None:
        self._shapes: list[_Shape] = []
        self._tries = 0

    def read(self, text: str) -> Said | None:
        """What `read_line` says of it."""
        for shape in self._shapes:
            if said := shape.read(text):
                return said
        said = read_line(text)
        if said and self._tries < MOST_TRIES:
            self._tries += 1
            if shape_ := _shape(text, said):
                self._shapes = [shape_, *self._shapes[: MOST_SHAPES - 1]]
        return said


def _shape(text: str, said: Said) -> _Shape | None:
    if len(text) > LONGEST or said.form is LossForm.JSON or said.rank is not None:
        return None
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
    out, at = "", 0
    for number, each in enumerate(numbers):
        written = _WRITTEN[each.lastgroup or ""]
        out += _literal(text[at : each.start()]) + (f"({written})" if number in taken else f"(?:{written})")
        at = each.end()
    return _Shape(
        re.compile(out + _literal(text[at:])),
        said,
        (groups["loss"], *(groups.get(name, 0) for name in ("step", "of", "epoch", "took"))),  # type: ignore[arg-type]
        places["took"][1] if "took" in places else 1.0,
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

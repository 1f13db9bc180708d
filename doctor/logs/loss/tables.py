"""Reads losses in columns: a CSV table with a header, also in the middle of a log."""

import math
import re
from dataclasses import dataclass

from doctor.logs.loss.lines import LONGEST, STEP_NAMES, LossValues
from doctor.logs.loss.names import NO_NUMBER, NUMBER, rank_of
from doctor.logs.model import LossForm

MOST_COLUMNS = 200
_TITLE = re.compile(r"[\"']?[A-Za-z_#][\w /.\-()%#]{0,60}[\"']?")
_CELL = re.compile(rf"[\"']?((?i:{NO_NUMBER})|{NUMBER})[\"']?")


@dataclass(frozen=True, slots=True)
class Header:
    between: str
    titles: tuple[str, ...]
    loss: int
    others: tuple[int, ...]
    """Further loss columns, less likely the loss of each step; Lightning leaves cells empty."""
    step: int | None
    epoch: int | None
    rank: int | None

    def read(self, text: str) -> LossValues | None:
        """Read a row below it; None if its loss is empty, or if it is not a row."""
        cells = _cells(text, self.between)
        if len(cells) != len(self.titles):
            return None
        loss = _number(cells[self.loss])
        if loss is None:
            return None
        step, epoch = self._whole(cells, self.step), self._whole(cells, self.epoch)
        part = self.epoch is not None and epoch is None
        return LossValues(
            LossForm.CSV, self.titles[self.loss], loss, step, None, epoch, part, self._whole(cells, self.rank)
        )

    def _whole(self, cells: list[str], column: int | None) -> int | None:
        value = None if column is None else _number(cells[column])
        whole = value is not None and math.isfinite(value) and value.is_integer() and 0 <= value < 1e15
        return int(value) if whole and value is not None else None


def read_header(text: str) -> Header | None:
    text = text[:LONGEST].strip().lstrip("\ufeff")
    between = next((each for each in (",", "\t", ";") if each in text), None)
    if between is None or not (text[0].isalpha() or text[0] in "\"'#_"):
        return None
    cells = _cells(text, between)
    if len(cells) > MOST_COLUMNS or not all(map(_TITLE.fullmatch, cells)):
        return None
    titles = [cell.strip("\"'").lower() for cell in cells]
    losses = sorted(
        (rank, place) for place, title in enumerate(titles) if (rank := rank_of(title)) is not None
    )
    at = {title: place for place, title in reversed(list(enumerate(titles)))}
    step = next((at[name] for name in (*STEP_NAMES, "it") if name in at), None)
    epoch = at.get("epoch", at.get("epochs"))
    if not losses or (step is None and epoch is None):
        return None
    (_, loss), *others = losses
    return Header(
        between, tuple(titles), loss, tuple(place for _, place in others), step, epoch, at.get("rank")
    )


def may_be_row(raw: bytes) -> bool:
    return raw[:1].isdigit() or raw[:1] in (b'"', b",", b" ")


def _cells(text: str, between: str) -> list[str]:
    return [cell.strip() for cell in text[:LONGEST].rstrip("\r\n").split(between, MOST_COLUMNS + 1)]


def _number(cell: str) -> float | None:
    found = _CELL.fullmatch(cell)
    return float(found[1]) if found else None

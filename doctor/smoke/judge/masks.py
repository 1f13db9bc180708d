"""Compares tokens, masks and labels with what the seed, the step and the replica determine."""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from doctor.smoke.events import BatchHashes
from doctor.smoke.judge.cells import Cell, cells
from doctor.smoke.judge.charge import SmokeCharge, since_text, worded
from doctor.smoke.onhost.corpus import reference_batch
from doctor.smoke.onhost.shape import CellShape
from doctor.smoke.result import SmokeResult
from doctor.text.grouped import grouped

PARTS = ("tokens", "mask", "labels")
Triple = tuple[str, str, str]


class DataDeviation(NamedTuple):
    """How one rank's data first deviate. Equal for ranks with the same fault."""

    step: int
    right_until: int | None
    """The last examined step at which they were right."""
    parts: tuple[str, ...]
    story: str
    kind: str


def judge_masks(result: SmokeResult) -> Iterator[SmokeCharge]:
    """One charge for all ranks of a cell that deviate in the same way from the same step on."""
    for cell in cells(result):
        found = ((deviation, place) for place in cell.places if (deviation := _deviation(cell, place)))
        for deviation, places in grouped(found).items():
            yield _charge(cell, deviation, places)


@lru_cache(maxsize=4096)
def _wanted(shape: CellShape, step: int, dp: int) -> Triple:
    """The hashes of what a replica must train on."""
    return reference_batch(shape, step, shape.replica(dp)[0])


def _triple(batch: BatchHashes) -> Triple:
    return batch.tokens, batch.mask, batch.labels


def _deviation(cell: Cell, place: int) -> DataDeviation | None:
    dp = cell.shape.dp_of(place)
    right: int | None = None
    for step, batch in sorted(cell.batches(place).items()):
        wanted, got = _wanted(cell.shape, step, dp), _triple(batch)
        if got != wanted:
            parts = tuple(part for part, a, b in zip(PARTS, got, wanted, strict=True) if a != b)
            kind, story = _story(cell, place, step, got, parts)
            return DataDeviation(step, right, parts, story, kind)
        right = step
    return None


def _story(cell: Cell, place: int, step: int, got: Triple, parts: tuple[str, ...]) -> tuple[str, str]:
    """Whose data the rank has, if known, or how it differs from its peers: as a kind and a text."""
    own = cell.shape.dp_of(place)
    what = (
        "mask" if "mask" in parts and "tokens" not in parts else "labels" if parts == ("labels",) else "batch"
    )
    index = PARTS.index("tokens" if what == "batch" else what)
    verb = "are" if what == "labels" else "is"
    for dp in range(cell.shape.dp):
        if dp != own and got[index] == _wanted(cell.shape, step, dp)[index]:
            return "same-data", f"its {what} {verb} that of replica {dp} instead of replica {own}"
    for other in (step + 1, step - 1):
        if other >= 0 and got[index] == _wanted(cell.shape, other, own)[index]:
            way = "ahead" if other > step else "behind"
            return way, f"its {what} {verb} that of step {other}, one step {way}"
    peers = [peer for peer in cell.replica(own) if peer != place]
    theirs = [_triple(batch) for peer in peers if (batch := cell.batches(peer).get(step))]
    if theirs and all(each == _wanted(cell.shape, step, own) for each in theirs):
        return what, f"its {what} {verb} not that of its {cell.peers}"
    if theirs and all(each == got for each in theirs):
        return what, f"its {what}, the same on the whole replica, {verb} not what the seed gives"
    return what, f"its {what} {verb} not what the seed gives"


def _charge(cell: Cell, deviation: DataDeviation, places: list[int]) -> SmokeCharge:
    step, right, parts, story, kind = deviation
    lines = []
    for place in places:
        got = dict(zip(PARTS, _triple(cell.batches(place)[step]), strict=True))
        wanted = dict(zip(PARTS, _wanted(cell.shape, step, cell.shape.dp_of(place)), strict=True))
        differ = ", ".join(f"{part} {got[part]} instead of {wanted[part]}" for part in parts)
        lines.append(f"{cell.name(place)}: {differ}")
    replicas = {cell.shape.dp_of(place) for place in places}
    peers = {peer for dp in replicas for peer in cell.replica(dp)}
    since = since_text(step, right)
    listed = " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
    words = worded("batch", kind=kind, story=story, since=since, parts=listed, step=step)
    return cell.charge(words, places, peers, f"hashes of the batch of step {step}", lines, step=step)

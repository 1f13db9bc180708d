"""One cell of a finished run, as the judges of its numbers need it: by places, replicas and steps."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import NamedTuple

from doctor.smoke.events import BatchHashes, RankStart, TrainStep
from doctor.smoke.judge.charge import SmokeCharge, ranks_text
from doctor.smoke.judge.nondeterminism import tolerance
from doctor.smoke.onhost.shape import CellShape
from doctor.smoke.result import RankOutcome, SmokeResult

NOT_ARITHMETIC = ("python", "numpy")
"""Versions that do not change what torch computes."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell; `seen` is in the order of places. Reports of steps that are not in the plan are left out."""

    number: int
    shape: CellShape
    ranks: tuple[int, ...]
    seen: tuple[RankOutcome, ...]

    @property
    def places(self) -> range:
        return range(len(self.seen))

    @property
    def within(self) -> float | None:
        """How close equal results must be, as a share of all magnitudes; None if every bit must be equal."""
        return tolerance(self.seen)

    @property
    def closeness(self) -> str:
        within = self.within
        return "in every bit" if within is None else f"within {within:.0e} of its magnitude"

    def numbers(self, places: Iterable[int]) -> tuple[int, ...]:
        """Places as ranks of the whole run."""
        return tuple(self.ranks[place] for place in sorted(places))

    def name(self, place: int) -> str:
        return ranks_text([self.ranks[place]])

    def replica(self, dp: int) -> list[int]:
        return self.shape.replica(dp)

    @property
    def peers(self) -> str:
        """What the ranks of a replica are to each other."""
        return "tensor-parallel peers" if self.shape.stages == 1 else "peers in the same replica"

    @property
    def columns(self) -> list[list[int]]:
        """For each part of the model, the places that hold it."""
        return [
            [place for place in self.places if self.shape.part_of(place) == part]
            for part in range(self.shape.parts)
        ]

    def batches(self, place: int) -> dict[int, BatchHashes]:
        return {batch.step: batch for batch in self.seen[place].batches if batch.step < self.shape.steps}

    def steps(self, place: int) -> dict[int, TrainStep]:
        return {step.step: step for step in self.seen[place].steps if step.step < self.shape.steps}

    def common_steps(self, places: Iterable[int]) -> list[dict[int, TrainStep]]:
        """For each step that all of them finished, from the first one: place -> what it reported."""
        said = {place: self.steps(place) for place in places}
        steps = range(self.shape.steps) if said else ()
        common = takewhile(lambda step: all(step in known for known in said.values()), steps)
        return [{place: known[step] for place, known in said.items()} for step in common]


def cells(result: SmokeResult) -> Iterator[Cell]:
    for number, ranks in enumerate(result.plan.cells):
        yield Cell(number, result.plan.shape(number), ranks, result.cell_ranks(number))


class Vote(NamedTuple):
    """`decided`: more than half agree, and `odd` are the others; else `odd` are all of them."""

    odd: tuple[int, ...]
    decided: bool


def vote(values: Mapping[int, Hashable]) -> Vote | None:
    """Which keys differ from the majority; None if all agree. If two values tie, either may be wrong."""
    if len(set(values.values())) < 2:
        return None
    common, times = Counter(values.values()).most_common(1)[0]
    if 2 * times > len(values):
        return Vote(tuple(sorted(key for key, value in values.items() if value != common)), True)
    return Vote(tuple(sorted(values)), False)


def vote_of_most(cell: Cell, values: Mapping[int, str], basis: Mapping[int, Hashable | None]) -> Vote | None:
    """The vote of the largest group with an equal basis. Voters on one host alone are no majority."""
    groups: dict[Hashable, dict[int, str]] = defaultdict(dict)
    for place, value in values.items():
        if basis[place] is not None:
            groups[basis[place]][place] = value
    most = max(groups.values(), key=len, default={})
    found = vote(most)
    if found and found.decided:
        host = cell.shape.host_of
        right = {host(place) for place in most if place not in found.odd}
        if len(right) == 1 and right != {host(place) for place in found.odd}:
            return Vote(tuple(sorted(most)), False)
    return found


def arithmetic(started: RankStart | None) -> Hashable:
    """Equal for ranks whose floating-point results must agree in every bit."""
    if started is None:
        return None
    versions = {name: version for name, version in started.versions.items() if name not in NOT_ARITHMETIC}
    return (started.product, tuple(sorted(versions.items())))


def alike(cell: Cell, places: Iterable[int]) -> bool:
    """Whether the results of these ranks may be compared bit by bit."""
    return len({arithmetic(cell.seen[place].started) for place in places}) == 1


def everybody(result: SmokeResult, charge: SmokeCharge, cell: Cell) -> SmokeCharge:
    """The charge against all ranks of a cell; it names them only if there are other cells."""
    if len(result.plan.cells) == 1:
        return replace(charge, ranks=(), victims=cell.ranks)
    return replace(charge, ranks=cell.ranks, undecided=True)


def without(charge: SmokeCharge, ranks: Iterable[int]) -> SmokeCharge | None:
    """The charge without these ranks; None if no rank is left."""
    gone = set(ranks)
    left = tuple(rank for rank in charge.ranks if rank not in gone)
    return replace(charge, ranks=left) if left else None

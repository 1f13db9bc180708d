"""Whether the all-reduced gradient is the sum of the replicas' gradients, by projections on fixed signs."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from doctor.smoke.events import TrainStep
from doctor.smoke.judge.cells import Cell

LIMIT = 1e-7
"""The allowed error as a share of all magnitudes; healthy runs stay below 5e-10."""


@dataclass(frozen=True, slots=True)
class Loss:
    """A sum that is not the sum of its parts. `places`, out of the reduced `column`, hold it.

    `unreduced`: they hold only their own part. `lost` is the place whose part is missing in the sum.
    """

    step: int
    column: tuple[int, ...]
    places: tuple[int, ...]
    wanted: float
    got: float
    unreduced: bool = False
    lost: int | None = None

    @property
    def everybody(self) -> bool:
        return self.places == self.column


def first_loss(cell: Cell) -> tuple[Loss, ...]:
    """The wrong sums of the first step that has any, by column."""
    if cell.shape.dp < 2:
        return ()
    columns = cell.columns
    for step, said in enumerate(cell.common_steps(cell.places)):
        found = tuple(loss for column in columns for loss in _losses(column, step, said))
        if found:
            return found
    return ()


def _losses(column: list[int], step: int, said: Mapping[int, TrainStep]) -> Iterator[Loss]:
    owns: dict[int, tuple[float, float]] = {}
    results: dict[int, float] = {}
    for place in column:
        own, reduced = said[place].own, said[place].reduced
        if own is None or reduced is None:
            return
        owns[place], results[place] = own, reduced
    sharded = all(len(said[place].shards) == len(column) for place in column)
    parts = {
        place: {each: said[each].shards[index] if sharded else owns[each][0] for each in column}
        for index, place in enumerate(column)
    }
    """What each place holds the sum of."""
    sums = {place: sum(added.values()) for place, added in parts.items()}
    allowed = LIMIT * sum(abs(own[1]) for own in owns.values())
    if not all(map(math.isfinite, (allowed, *sums.values()))):
        return
    wrong = [place for place in column if abs(results[place] - sums[place]) > allowed]
    explain = [
        {each for each in column if abs(results[p] + parts[p][each] - sums[p]) <= allowed} for p in wrong
    ]
    whole = bool(wrong) and wrong == [p for p in column if any(parts[p].values())]
    missing = set.intersection(*explain) if whole else ()
    lost = min(missing) if len(missing) == 1 else None
    # A part that is almost zero does not show whether it was added. If one is missing, the other is alone.
    alone = [p for p in wrong if lost is None and abs(results[p] - owns[p][0]) <= LIMIT * abs(owns[p][1])]
    if alone:
        yield Loss(step, tuple(column), tuple(alone), sums[alone[0]], results[alone[0]], unreduced=True)
    rest = [place for place in wrong if place not in alone]
    # If one kept its own part, all others have what it entered later instead of it, and so one sum.
    one_sum = len(rest) > 1 and max(results[p] for p in rest) - min(results[p] for p in rest) <= allowed
    if rest and not (alone and wrong == column and one_sum and not sharded):
        yield Loss(step, tuple(column), tuple(rest), sums[rest[0]], results[rest[0]], lost=lost)


def projections(cell: Cell, step: int) -> tuple[str, list[str]]:
    """The projections of what each rank put in and got out, one line each, as evidence of this source."""
    lines = []
    for place in cell.places[:32]:
        said = cell.steps(place).get(step)
        if said and said.own and said.reduced is not None:
            after = f"after the all-reduce {said.reduced:.9g}"
            lines.append(f"{cell.name(place)}: own {said.own[0]:.9g}, {after}")
    return f"gradients of step {step}", lines

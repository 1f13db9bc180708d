"""Losses and gradients that are NaN or infinite: charges the rank whose own were the first."""

from collections.abc import Iterator
from dataclasses import replace

from doctor.model import Evidence
from doctor.smoke.judge.cells import Cell, cells, everybody
from doctor.smoke.judge.charge import SmokeCharge, worded
from doctor.smoke.result import SmokeResult

BLOWN_UP = 3.0
"""A loss that first grew to more than this many times its beginning became NaN by divergence."""


def judge_nan(result: SmokeResult) -> Iterator[SmokeCharge]:
    """Charges for the first NaN: `finite` is about a rank's values before they are summed over replicas."""
    for cell in cells(result):
        steps = [(place, said) for place in cell.places for said in cell.steps(place).values()]
        bad = [(said.step, place) for place, said in steps if not said.finite]
        if not bad:
            continue
        first = min(bad)[0]
        places = [place for step, place in bad if step == first]
        losses = [(said.step, said.loss) for _, said in steps if said.loss is not None]
        began = max((loss for step, loss in losses if step == 0), default=0.0)
        highest = max((loss for step, loss in losses if step <= first), default=0.0)
        blown_up = began > 0 and highest > BLOWN_UP * began
        charge = _charge(cell, first, places)
        if blown_up or len(places) == len(cell.places):
            why = ", after growing without bound" if blown_up else " on all ranks at once"
            everyone = replace(
                charge, summary=f"the loss or gradient is NaN or infinite at step {first}{why}"
            )
            yield everybody(result, everyone, cell)
            continue
        yield from _by_replica(cell, charge, places)


def _by_replica(cell: Cell, charge: SmokeCharge, places: list[int]) -> Iterator[SmokeCharge]:
    """One charge for each replica: tensor-parallel peers pass NaN on to each other in the same step."""
    for dp in range(cell.shape.dp):
        mine = [place for place in places if cell.shape.dp_of(place) == dp]
        if len(mine) == 1:
            yield replace(charge, ranks=cell.numbers(mine))
        elif mine:
            yield replace(charge, ranks=cell.numbers(mine), undecided=True, kind="nan-replica")


def _charge(cell: Cell, first: int, places: list[int]) -> SmokeCharge:
    lines = []
    for place in cell.places[:32]:
        said = cell.steps(place).get(first)
        if said:
            state = "finite" if said.finite else "not finite"
            lines.append(f"{cell.name(place)}: own loss and gradient {state} at step {first}")
    return SmokeCharge(
        *worded("nan", step=first),
        victims=cell.numbers(set(cell.places) - set(places)),
        step=first,
        evidence=(Evidence("ranks", "\n".join(lines)),),
    )

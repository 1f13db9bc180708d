"""Losses and gradients that are no numbers, from the rank whose own were the first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from doctor.model import Evidence
from doctor.smoke.judge.cells import Cell, cells, everybody
from doctor.smoke.judge.charge import Charge
from doctor.smoke.result import SmokeResult

CHECK = "smoke-loss-nan"
BLOWN_UP = 3.0
"""Losses that grew so many times above the first ones ended in no number because of the numerics."""


def judge_nan(result: SmokeResult) -> Iterator[Charge]:
    """`finite` was looked at before anything was summed over replicas: the first rank stands alone."""
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
            why = ": it grew without bound before" if blown_up else " on all ranks at once"
            everyone = replace(charge, summary=f"loss or gradient is no number at step {first}{why}")
            yield everybody(result, everyone, cell)
            continue
        yield from _by_replica(cell, charge, places)


def _by_replica(cell: Cell, charge: Charge, places: list[int]) -> Iterator[Charge]:
    """Tensor-parallel peers catch it from one another in the same step."""
    for dp in range(cell.shape.dp):
        mine = [place for place in places if cell.shape.dp_of(place) == dp]
        if len(mine) == 1:
            yield replace(charge, ranks=cell.numbers(mine))
        elif mine:
            yield replace(charge, ranks=cell.numbers(mine), undecided=True, kind="nan-replica")


def _charge(cell: Cell, first: int, places: list[int]) -> Charge:
    lines = []
    for place in cell.places[:32]:
        said = cell.steps(place).get(first)
        if said:
            state = "finite" if said.finite else "not finite"
            lines.append(f"{cell.name(place)}: own loss and gradient {state} at step {first}")
    return Charge(
        check=CHECK,
        kind="nan",
        summary=f"its own loss or gradient was no number (NaN or infinite) at step {first}, before any of it "
        "was summed with the others'",
        expected="finite numbers",
        actual=f"NaN or infinite from step {first} on",
        victims=cell.numbers(set(cell.places) - set(places)),
        phase="train",
        step=first,
        evidence=(Evidence("ranks", "\n".join(lines)),),
    )

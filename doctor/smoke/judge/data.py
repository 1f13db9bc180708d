"""Judges the numbers of a run (who was NaN first, too), and leaves out charges that only follow from others.

The first deviation counts. What comes after it in the same cell may be its consequence, and is left out,
unless it is a fact about one rank that no other rank can cause.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from doctor.model import Evidence, Severity
from doctor.smoke.judge.cells import Cell, cells, everybody, without
from doctor.smoke.judge.charge import SmokeCharge, worded
from doctor.smoke.judge.collective import judge_collective
from doctor.smoke.judge.corruption import judge_corruption
from doctor.smoke.judge.desync import judge_desync
from doctor.smoke.judge.links import judge_links
from doctor.smoke.judge.loss import judge_loss
from doctor.smoke.judge.masks import judge_masks
from doctor.smoke.judge.speed import judge_speed
from doctor.smoke.judge.streams import judge_streams
from doctor.smoke.onhost.page import PHASES
from doctor.smoke.result import SmokePlan, SmokeResult
from doctor.text.hostprogram import sections

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
        charge = _nan_charge(cell, first, places)
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


def _nan_charge(cell: Cell, first: int, places: list[int]) -> SmokeCharge:
    lines = []
    for place in cell.places[:32]:
        said = cell.steps(place).get(first)
        if said:
            state = "finite" if said.finite else "not finite"
            lines.append(f"{cell.name(place)}: own loss and gradient {state} at step {first}")
    return cell.charge(worded("nan", step=first), places, cell.places, "ranks", lines, step=first)


Moment = tuple[int, float, int]
"""Phase, step, and the place within the step."""
DATA = "smoke-mask-divergence"
MISMATCH = "smoke-mismatch"
TRAIN = PHASES.index("train")
ON_ITS_OWN = {"golden", "golden-again", "alone", "init", "collective"}
"""Kinds that show a fault of a rank, or of a phase, that nothing earlier in the run can cause."""
HARMLESS = {"library", "stream", "device-product"}
"""Kinds without consequences: the training draws from a generator of its own."""
WITHIN_STEP = {kind: int(at) for kind, at in sections(__file__, "data.txt")["within step"].items()}
"""A wrong gradient is summed and spoils all replicas alike. If one of them has different parameters, these
explain its different gradient, never the reverse."""
AFTER_STEP = 4
FOLLOWS_FROM_DATA = {"tp-loss", "transient", "data", "gradient", "replica"}
"""Kinds that wrong data of a rank cause on all ranks of its replica."""


def judge_data(result: SmokeResult, earlier: Sequence[SmokeCharge] = ()) -> tuple[SmokeCharge, ...]:
    """The charges for wrong numbers and slow ranks or links; `earlier` are those for how the run ended."""
    plan = result.plan
    data = list(_data_charges(judge_masks(result), judge_streams(result)))
    judges = (judge_collective, judge_desync, judge_nan, judge_corruption, judge_loss)
    others = [charge for judge in judges for charge in judge(result)]
    found = [*data, *(charge for charge in others if not _comes_from_data(plan, charge, data))]
    found = [charge for charge in found if not _is_narrowed_down(charge, [*earlier, *found])]
    grounds = [charge for charge in [*earlier, *found] if charge.kind not in HARMLESS and _counts(charge)]
    kept = [charge for charge in found if not _is_consequence(plan, charge, grounds, earlier)]
    return (*sorted(kept, key=_moment), *judge_speed(result), *judge_links(result))


def _data_charges(masks: Iterable[SmokeCharge], streams: Iterable[SmokeCharge]) -> Iterator[SmokeCharge]:
    """If data and stream deviate on a rank, only the earlier is charged, with the stream as evidence."""
    masked: list[SmokeCharge | None] = list(masks)
    for stream in streams:
        left: SmokeCharge | None = stream
        for number, mask in enumerate(masked):
            both = [rank for rank in stream.ranks if mask and rank in mask.ranks]
            if mask is None or not both or stream.kind != "stream" or stream.undecided:
                continue
            if _moment(stream) < _moment(mask):
                masked[number] = without(mask, both)
            else:
                also = Evidence("random streams", stream.summary)
                masked[number] = replace(mask, evidence=(*mask.evidence, also, *stream.evidence))
                left = without(left, both) if left else None
        if left:
            yield left
    yield from (mask for mask in masked if mask)


def _moment(charge: SmokeCharge) -> Moment:
    phase = PHASES.index(charge.phase) if charge.phase in PHASES else 0
    if charge.step is None:
        return (phase, -1.0 if charge.kind == "init" or charge.phase != "train" else float("inf"), 0)
    within = 0 if charge.check == DATA else WITHIN_STEP.get(charge.kind, AFTER_STEP)
    return (phase, float(charge.step), within)


def _counts(charge: SmokeCharge) -> bool:
    return charge.severity is not Severity.WARN


def _cells(plan: SmokePlan, charge: SmokeCharge) -> set[int]:
    """The cells that a charge is about; all of them if it names nobody."""
    found = {plan.seat(rank).cell for rank in (*charge.ranks, *charge.victims)}
    found |= {seat.cell for host in charge.hosts for seat in plan.on(host)}
    return found or set(range(len(plan.cells)))


def _replicas(plan: SmokePlan, charge: SmokeCharge) -> set[tuple[int, int]]:
    seats = [plan.seat(rank) for rank in charge.ranks]
    return {(seat.cell, plan.shape(seat.cell).dp_of(seat.place)) for seat in seats}


def _comes_from_data(plan: SmokePlan, charge: SmokeCharge, data: Iterable[SmokeCharge]) -> bool:
    """Whether the charge is explained by wrong data of the same replica."""
    if charge.kind not in FOLLOWS_FROM_DATA:
        return False
    spoilt = {each for other in data if other.kind not in HARMLESS for each in _replicas(plan, other)}
    return bool(charge.ranks) and not spoilt.isdisjoint(_replicas(plan, charge))


def _is_narrowed_down(charge: SmokeCharge, others: Iterable[SmokeCharge]) -> bool:
    """Whether another charge narrows these suspects down to fewer."""
    suspects = set(charge.ranks)
    return charge.undecided and any(
        _counts(other) and set(other.ranks) < suspects
        for other in others
        if other.ranks and other.kind not in HARMLESS and other.check != "smoke-loss-stall"
    )


def _is_consequence(
    plan: SmokePlan, charge: SmokeCharge, grounds: Iterable[SmokeCharge], earlier: Sequence[SmokeCharge]
) -> bool:
    """Whether the charge may be the consequence of something that happened before it in its cell."""
    if charge.check == DATA:
        return False
    if charge.kind in ON_ITS_OWN:
        return charge.kind == "collective" and any(_met_wrong_call(plan, charge, one) for one in earlier)
    mine, moment = _cells(plan, charge), _moment(charge)
    for ground in grounds:
        if ground is charge or mine.isdisjoint(_cells(plan, ground)):
            continue
        phase, step, within = _moment(ground)
        if ground in earlier:
            # Peers pair a missing call with the next one of the same kind, for several steps until two looks
            # show it, and the first wrong sum is on a rank without fault.
            early = (min(phase, TRAIN), -math.inf, 0)
            if (early if ground.check == MISMATCH else (phase, step, 0)) <= moment:
                return True
        elif (phase, step, within) < moment:
            return True
    return False


def _met_wrong_call(plan: SmokePlan, charge: SmokeCharge, ground: SmokeCharge) -> bool:
    """Whether the charge is a wrong result of calls that a mismatch had paired wrongly: nobody's fault."""
    same = not _cells(plan, charge).isdisjoint(_cells(plan, ground))
    return same and ground.check == MISMATCH and _moment(ground)[0] <= _moment(charge)[0]

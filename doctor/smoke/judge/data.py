"""All that the numbers of a run prove, without what only follows from something else.

The first deviation counts. What comes after it in the same cell may be its consequence, and is left out,
unless it is a fact about one rank that no other rank can cause.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from doctor.model import Evidence, Severity
from doctor.smoke.judge.cells import without
from doctor.smoke.judge.charge import Charge
from doctor.smoke.judge.collective import judge_collective
from doctor.smoke.judge.corruption import judge_corruption
from doctor.smoke.judge.desync import judge_desync
from doctor.smoke.judge.links import judge_links
from doctor.smoke.judge.loss import judge_loss
from doctor.smoke.judge.masks import judge_masks
from doctor.smoke.judge.nan import judge_nan
from doctor.smoke.judge.speed import judge_speed
from doctor.smoke.judge.streams import judge_streams
from doctor.smoke.onhost.page import PHASES
from doctor.smoke.result import SmokePlan, SmokeResult

Moment = tuple[int, float, int]
"""Phase, step, and the place within the step."""
DATA = "smoke-mask-divergence"
MISMATCH = "smoke-mismatch"
TRAIN = PHASES.index("train")
ON_ITS_OWN = {"golden", "golden-again", "alone", "init", "collective"}
"""Kinds that show a fault of a rank, or of a phase, that nothing earlier in the run can cause."""
HARMLESS = {"library", "stream", "device-product"}
"""Kinds of which nothing follows: the training draws from a generator of its own."""
WITHIN_STEP = {
    "nan": 1,
    "nan-replica": 1,
    "tp-loss": 1,
    "parameters": 2,
    "transient": 3,
    "data": 3,
    "gradient": 3,
}
"""A wrong gradient is summed and spoils all replicas alike: where one of them has other parameters, these
explain its other gradient, and never the reverse."""
AFTER_STEP = 4
FOLLOWS_FROM_DATA = {"tp-loss", "transient", "data", "gradient", "replica"}
"""What other data of a rank do to all ranks of its replica."""


def judge_data(result: SmokeResult, earlier: Sequence[Charge] = ()) -> tuple[Charge, ...]:
    """`earlier`: what is charged already, for how the run ended."""
    plan = result.plan
    data = list(_joined(judge_masks(result), judge_streams(result)))
    judges = (judge_collective, judge_desync, judge_nan, judge_corruption, judge_loss)
    others = [charge for judge in judges for charge in judge(result)]
    found = [*data, *(charge for charge in others if not _from_data(plan, charge, data))]
    found = [charge for charge in found if not _solved(charge, [*earlier, *found])]
    grounds = [charge for charge in [*earlier, *found] if charge.kind not in HARMLESS and _counts(charge)]
    kept = [charge for charge in found if not _follows(plan, charge, grounds, earlier)]
    return (*sorted(kept, key=_moment), *judge_speed(result), *judge_links(result))


def _joined(masks: Iterable[Charge], streams: Iterable[Charge]) -> Iterator[Charge]:
    """A rank's data and its random streams: what deviates first is charged, the other is evidence of it."""
    masked: list[Charge | None] = list(masks)
    for stream in streams:
        left: Charge | None = stream
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


def _moment(charge: Charge) -> Moment:
    phase = PHASES.index(charge.phase) if charge.phase in PHASES else 0
    if charge.step is None:
        first = charge.kind == "init" or charge.phase != "train"
        return (phase, -1.0 if first else float("inf"), 0)
    within = 0 if charge.check == DATA else WITHIN_STEP.get(charge.kind, AFTER_STEP)
    return (phase, float(charge.step), within)


def _counts(charge: Charge) -> bool:
    return charge.severity is not Severity.WARN


def _cells(plan: SmokePlan, charge: Charge) -> set[int]:
    """The cells that a charge is about; all of them where nobody is named."""
    found = {plan.seat(rank).cell for rank in (*charge.ranks, *charge.victims)}
    found |= {seat.cell for host in charge.hosts for seat in plan.on(host)}
    return found or set(range(len(plan.cells)))


def _replicas(plan: SmokePlan, charge: Charge) -> set[tuple[int, int]]:
    return {(plan.seat(rank).cell, plan.seat(rank).place // plan.tp) for rank in charge.ranks}


def _from_data(plan: SmokePlan, charge: Charge, data: Iterable[Charge]) -> bool:
    """Whether it is what a replica does whose data are others than they should be."""
    if charge.kind not in FOLLOWS_FROM_DATA:
        return False
    spoilt = {each for other in data if other.kind not in HARMLESS for each in _replicas(plan, other)}
    return bool(charge.ranks) and not spoilt.isdisjoint(_replicas(plan, charge))


def _solved(charge: Charge, others: Iterable[Charge]) -> bool:
    """Whether another charge says which of these suspects it was, or names fewer of them."""
    suspects = set(charge.ranks)
    return charge.undecided and any(
        _counts(other) and set(other.ranks) < suspects
        for other in others
        if other.ranks and other.kind not in HARMLESS and other.check != "smoke-loss-stall"
    )


def _follows(plan: SmokePlan, charge: Charge, grounds: Iterable[Charge], earlier: Sequence[Charge]) -> bool:
    """Whether something happened before it, in its cell, of which it may be the consequence."""
    if charge.check == DATA:
        return False
    if charge.kind in ON_ITS_OWN:
        return charge.kind == "collective" and any(_confused(plan, charge, ground) for ground in earlier)
    mine, moment = _cells(plan, charge), _moment(charge)
    for ground in grounds:
        if ground is charge or mine.isdisjoint(_cells(plan, ground)):
            continue
        phase, step, within = _moment(ground)
        if ground in earlier:
            # A call left out pairs with the next of the same kind for several steps before two looks have
            # shown it, and the first wrong sum is that of a rank without fault.
            early = (min(phase, TRAIN), -math.inf, 0)
            if (early if ground.check == MISMATCH else (phase, step, 0)) <= moment:
                return True
        elif (phase, step, within) < moment:
            return True
    return False


def _confused(plan: SmokePlan, charge: Charge, ground: Charge) -> bool:
    """Whether a call of the collectives phase met another one than its own: its result is nobody's fault."""
    same = not _cells(plan, charge).isdisjoint(_cells(plan, ground))
    return same and ground.check == MISMATCH and _moment(ground)[0] <= _moment(charge)[0]

"""What the loss shows: a fall that is too slow or stops halfway, a lagging replica, jumps, leaking labels,
NaN and infinity.

The limits come from healthy runs with 200 seeds: two replicas of two ranks, 16 sequences each a step. `curve`
knows the level that the last losses must have reached.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

from doctor.model import Confidence, Evidence
from doctor.smoke.judge.cells import Cell, cells, everybody
from doctor.smoke.judge.charge import SmokeCharge, Worded, worded
from doctor.smoke.judge.curve import allowed, excess
from doctor.smoke.onhost.corpus import FLOOR
from doctor.smoke.result import SmokeResult

BUDGETS = ((30, 10, 0.7), (20, 6, 0.6), (15, 5, 0.5))
"""(steps, last, part): with so many steps, the last losses must have covered that part of the way."""
FIRST = 3
LARGEST = 1e100
"""A larger loss counts as infinite, so that sums of losses stay finite."""
GAP = 0.55
"""The allowed gap between a replica and the others, over ten steps: five standard deviations."""
HALFWAY = 0.5
"""A replica can only lag behind others that have covered this part of what they must cover."""
SPIKE = 3.0
SPIKE_AFTER, SPIKE_WINDOW = 10, 8
CURVE_SD = 0.06
"""The standard deviation of the mean of the last ten losses of two replicas."""
FALLING = -0.1
"""A curve that merely does not fall ends at most this far above its beginning, as a part of the way."""


@dataclass(frozen=True, slots=True)
class LossSummary:
    """How the loss of one cell went."""

    steps: int
    curve: tuple[float | None, ...]
    drop: float | None
    limit: float | None
    floor: float
    replica_gap: float | None


def loss_summary(result: SmokeResult, cell: int = 0) -> LossSummary:
    curves = replica_curves(result, cell)
    mean = _mean(curves)
    steps = len(mean)
    tail, limit = _budget(steps)
    gaps = _gaps(curves, tail) if limit is not None else []
    drop = _drop([each for each in mean if each is not None], tail) if limit and None not in mean else None
    return LossSummary(steps, tuple(mean), drop, limit, FLOOR, max(gaps) if len(gaps) > 1 else None)


def judge_loss(result: SmokeResult) -> Iterator[SmokeCharge]:
    """If all cells fail alike, no rank is at fault."""
    found = [(cell, list(_judge(cell))) for cell in cells(result)]
    common = [charge for _, charges in found for charge in charges if not charge.ranks]
    if len(found) > 1 and len(common) == len(found) and len({charge.kind for charge in common}) == 1:
        yield replace(common[0], victims=tuple(rank for cell, _ in found for rank in cell.ranks))
        return
    for cell, charges in found:
        for charge in charges:
            yield charge if charge.ranks else everybody(result, charge, cell)


def replica_curves(result: SmokeResult, cell: int = 0) -> list[list[float | None]]:
    """The loss of each replica of a cell at each step that all its ranks finished."""
    return _curves(next(found for found in cells(result) if found.number == cell))


def _curves(cell: Cell) -> list[list[float | None]]:
    """The loss of each replica at each step, the mean over its ranks."""
    steps = cell.common_steps(cell.places)
    return [
        [_mean_of([said[place].loss for place in cell.replica(dp)]) for said in steps]
        for dp in range(cell.shape.dp)
    ]


def _mean_of(losses: Sequence[float | None]) -> float | None:
    known = [loss for loss in losses if loss is not None and abs(loss) < LARGEST]
    return fmean(known) if known and len(known) == len(losses) else None


def _mean(curves: Sequence[Sequence[float | None]]) -> list[float | None]:
    return [_mean_of(losses) for losses in zip(*curves, strict=True)]


def _budget(steps: int) -> tuple[int, float | None]:
    """The number of last steps that count, and the part of the way that they must have covered."""
    for least, tail, limit in BUDGETS:
        if steps >= least:
            return tail, limit
    return 0, None


def _drop(curve: Sequence[float], tail: int) -> float:
    first = fmean(curve[:FIRST])
    # A loss that begins at the floor cannot fall any further; what it does from there is not learning.
    return (first - fmean(curve[-tail:])) / max(first - FLOOR, 0.1)


def _gaps(curves: Sequence[Sequence[float | None]], tail: int) -> list[float]:
    """How far each replica's last losses are above the median of the others'; [] if any is not finite."""
    ends = [_mean_of(curve[-tail:]) for curve in curves]
    known = [end for end in ends if end is not None]
    if len(known) < len(ends) or len(known) < 2:
        return []
    return [end - median(known[:dp] + known[dp + 1 :]) for dp, end in enumerate(known)]


def _judge(cell: Cell) -> Iterator[SmokeCharge]:
    curves = _curves(cell)
    curve: list[float] = []
    for loss in _mean(curves):
        if loss is None:
            break  # smoke-loss-nan
        curve.append(loss)
    if charge := _spike(curve):
        yield charge
        return
    tail, limit = _budget(len(curve))
    if len(curve) < len(curves[0]):
        return
    if limit is None:
        if charge := _frozen(cell, curve) or _risen(curve):
            yield charge
        return
    shown = f"{curve[0]:.2f} to {fmean(curve[-tail:]):.2f} in {len(curve)} steps"
    if charge := _lag(cell, curves, tail, limit, shown):
        yield charge
        return
    if charge := _frozen(cell, curve) or _stalled(curve, tail, limit, shown) or _stopped(cell, curves, curve):
        yield charge
    spread = 5 * CURVE_SD * math.sqrt(2 / cell.shape.dp)
    if len(curve) >= BUDGETS[0][0] and fmean(curve[-tail:]) < FLOOR - spread:
        yield _everybodys(worded("below the floor", floor=FLOOR, least=FLOOR - spread, shown=shown), curve)


def _frozen(cell: Cell, curve: Sequence[float]) -> SmokeCharge | None:
    """In a healthy run each step changes all parameters. No step: any other fault may be the cause."""
    before = {place: init.params for place in cell.places if (init := cell.seen[place].init)}
    for step, said in enumerate(cell.common_steps(cell.places)):
        if all(report.params == before.get(place) for place, report in said.items()):
            return _everybodys(worded("frozen", step=step), curve, confidence=Confidence.CERTAIN)
        before = {place: report.params for place, report in said.items()}
    return None


def _stalled(curve: Sequence[float], tail: int, limit: float, shown: str) -> SmokeCharge | None:
    """A loss that did not come near the floor at all."""
    drop = _drop(curve, tail)
    if drop >= limit:
        return None
    name = "risen" if drop < FALLING else "stall"
    values = {"limit": limit, "floor": FLOOR, "steps": len(curve), "covered": max(0.0, drop)}
    return _everybodys(worded(name, **values, shown=shown), curve)


def _stopped(
    cell: Cell, curves: Sequence[Sequence[float | None]], curve: Sequence[float]
) -> SmokeCharge | None:
    """A loss that fell at first and then no further, or too slowly."""
    steps = range(len(curve) - _budget(len(curve))[0], len(curve))
    above, most = excess(cell.shape, curves, steps), allowed(cell.shape.dp, steps)
    if above is None or above <= most:
        return None
    return _everybodys(worded("loss stopped", most=most, above=above, steps=len(steps)), curve)


def _lag(
    cell: Cell, curves: Sequence[Sequence[float | None]], tail: int, limit: float, shown: str
) -> SmokeCharge | None:
    """A charge against the replicas that are behind the others, if the others do learn."""
    gaps, allowed = _gaps(curves, tail), GAP * math.sqrt(BUDGETS[0][1] / tail)
    lagging = [dp for dp, gap in enumerate(gaps) if gap > allowed]
    rest = _mean([curve for dp, curve in enumerate(curves) if dp not in lagging])
    known = [loss for loss in rest if loss is not None]
    if not lagging or not known or _drop(known, tail) < HALFWAY * limit:
        return None
    ends = [_mean_of(curve[-tail:]) or 0.0 for curve in curves]
    others = fmean(end for dp, end in enumerate(ends) if dp not in lagging)
    own = " and ".join(f"{ends[dp]:.2f}" for dp in lagging)
    lines = [f"replica {dp}: {end:.3f}" for dp, end in enumerate(ends)]
    values = {"gap": max(gaps), "allowed": allowed, "others": others, "own": own, "tail": tail}
    behind = [place for dp in lagging for place in cell.replica(dp)]
    words = worded("loss of a replica", **values)
    source = f"mean loss of the last {tail} steps (all: {shown})"
    return cell.charge(words, behind, (), source, lines, confidence=Confidence.STRONG)


def _spike(curve: Sequence[float]) -> SmokeCharge | None:
    for step in range(SPIKE_AFTER + 1, len(curve)):
        before = median(curve[step - SPIKE_WINDOW : step])
        if before > 0 and curve[step] > SPIKE * before:
            values = {"step": step, "before": before, "loss": curve[step]}
            return _everybodys(worded("spike", times=SPIKE, window=SPIKE_WINDOW, **values), curve, step)
    return None


def _risen(curve: Sequence[float]) -> SmokeCharge | None:
    """A rise, in a run that is too short to tell a jump from its beginning."""
    most = max(curve, default=0.0)
    if not curve or most <= SPIKE * curve[0]:
        return None
    words = worded("diverged", times=SPIKE, first=curve[0], most=most, step=curve.index(most))
    return _everybodys(words, curve)


def _everybodys(
    words: Worded, curve: Sequence[float], step: int | None = None, confidence: Confidence = Confidence.STRONG
) -> SmokeCharge:
    return SmokeCharge(
        *words,
        step=step,
        confidence=confidence,
        evidence=(Evidence("loss", " ".join(f"{loss:.2f}" for loss in curve[:200])),),
    )

"""Replicas that are different from the start or become so, and tensor-parallel peers whose losses differ."""

from collections.abc import Iterator, Mapping

from doctor.smoke.events import TrainStep
from doctor.smoke.judge.cells import Cell, Vote, alike, cells, close, everybody, vote
from doctor.smoke.judge.charge import SmokeCharge, worded
from doctor.smoke.judge.gradient_sum import first_loss, projections
from doctor.smoke.onhost.corpus import reference_init
from doctor.smoke.result import SmokeResult


def judge_desync(result: SmokeResult) -> Iterator[SmokeCharge]:
    """Only the first deviation of each cell: whatever comes later follows from it."""
    for cell in cells(result):
        if charges := list(_initial(cell)):
            yield from charges
            continue
        unreduced, wrong = list(_unreduced(result, cell)), first_loss(cell)
        end = wrong[0].step if wrong else cell.shape.steps
        before: Mapping[int, TrainStep] = {}
        for step, said in enumerate(cell.common_steps(cell.places)):
            if not all(each.finite for each in said.values()):
                break
            found = list(_losses(cell, step, said)) or (
                unreduced if step == end else list(_parameters(cell, step, said, before))
            )
            if found or step >= end:
                yield from found
                break
            before = said


def _initial(cell: Cell) -> Iterator[SmokeCharge]:
    """First parameters that differ from the reference or, if no rank matches it, from their replicas."""
    inits = {place: init.params for place in cell.places if (init := cell.seen[place].init)}
    firsts = ((column, reference_init(cell.shape, column[0])) for column in cell.columns if inits)
    wanted = {place: first for column, first in firsts for place in column}
    right = {place for place, got in inits.items() if got == wanted[place]}
    odd = sorted(set(inits) - right)
    decided = bool(right)
    if not decided:
        votes = [vote({p: inits[p] for p in column if p in inits}) for column in cell.columns]
        odd = sorted({place for found in votes if found for place in found.odd})
        decided = all(found.decided for found in votes if found)
    if not odd:
        return
    lines = [f"{cell.name(p)}: {inits[p]} instead of {wanted[p]}" for p in odd[:32]]
    words = worded("init", odd=len(odd), all=len(inits))
    source = "hashes of the parameters before the first step"
    yield cell.charge(words, odd, (), source, lines, decided=decided)


def _unreduced(result: SmokeResult, cell: Cell) -> Iterator[SmokeCharge]:
    """Ranks that went on with only their own gradient."""
    losses = [loss for loss in first_loss(cell) if loss.unreduced]
    if not losses:
        return
    places = sorted({place for loss in losses for place in loss.places})
    all_alike = all(loss.everybody for loss in losses) and len(losses) == cell.shape.parts
    step = losses[0].step
    words = worded("no-sync", loss=losses[0], replicas=cell.shape.dp)
    charge = cell.charge(words, places, (), *projections(cell, step), step=step)
    yield everybody(result, charge, cell) if all_alike else charge


def _losses(cell: Cell, step: int, said: Mapping[int, TrainStep]) -> Iterator[SmokeCharge]:
    """Tensor-parallel peers compute one loss together: it must be equal in every bit."""
    for dp in range(cell.shape.dp):
        replica = cell.replica(dp)
        if not alike(cell, replica):
            continue
        losses = {place: said[place].loss for place in replica}
        sums = {place: (loss, abs(loss)) for place, loss in losses.items() if loss is not None}
        found = vote(losses if cell.within is None else close(sums, cell.within))
        if found is None:
            continue
        shown = [f"{cell.name(p)}: {loss!r}" for p, loss in losses.items()]
        values = " and ".join(dict.fromkeys(map(repr, losses.values())))
        words = worded("tp-loss", step=step, closeness=cell.closeness, losses=values)
        source = f"losses of step {step}"
        yield cell.charge(words, found.odd, replica, source, shown, step=step, decided=found.decided)


def _weights(cell: Cell, said: Mapping[int, TrainStep], column: list[int]) -> Mapping[int, str]:
    """The parameters of these ranks, as texts that are equal if the parameters are."""
    if cell.within is None:
        return {place: said[place].params for place in column}
    return close({p: weights for p in column if (weights := said[p].weights)}, cell.within)


def _parameters(
    cell: Cell, step: int, said: Mapping[int, TrainStep], before: Mapping[int, TrainStep]
) -> Iterator[SmokeCharge]:
    """Parameters that differ after a step with right gradients: the update or the memory is at fault. Of two
    replicas, it is the one whose parameters the step did not change.
    """
    odd: set[int] = set()
    decided = True
    lines: list[str] = []
    for column in cell.columns:
        found = vote(_weights(cell, said, column)) if alike(cell, column) else None
        same = [place for place in column if before and said[place].params == before[place].params]
        if found and not found.decided and 0 < len(same) < len(column):
            found = Vote(tuple(same), True)
        if found:
            odd.update(found.odd)
            decided = decided and found.decided
            lines += [f"{cell.name(place)}: {said[place].params}" for place in column]
    if not odd:
        return
    replicas = len({cell.shape.dp_of(place) for place in odd})
    alone = "it is the only one" if replicas == 1 else f"{replicas} replicas are off"
    words = f"{alone} of {cell.shape.dp}" if decided else "the update or the memory of one of them is wrong"
    text = worded("parameters", step=step, words=words, replicas=cell.shape.dp)
    source = f"hashes of the parameters after step {step}"
    yield cell.charge(text, odd, (), source, lines[:32], step=step, decided=decided)

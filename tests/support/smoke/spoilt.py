"""Ways to spoil a healthy run: what its ranks would have reported if they had a fault."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from doctor.smoke.events import BatchHashes, CollectiveDeviation, TrainStep
from doctor.smoke.judge.charge import SmokeCharge
from doctor.smoke.onhost.collectiveplan import PERIOD, addends, total
from doctor.smoke.onhost.corpus import reference_batch
from doctor.smoke.onhost.shape import CellShape
from doctor.smoke.onhost.trainplan import replicas_again
from doctor.smoke.result import RankOutcome, SmokeResult
from tests.support.cases import from_cases
from tests.support.smoke.results import changed, healthy, mark, plan_of, with_batches, with_rank, with_steps

Spoil = Callable[[SmokeResult], SmokeResult]
Verdict = tuple[str, str, tuple[int, ...], bool]
"""Check, kind, culprits, undecided."""

SHAPES = from_cases(__file__, "SHAPES", dict[str, dict[str, int]])


@cache
def run_of(shape: str) -> SmokeResult:
    return healthy(plan_of(**SHAPES[shape]))


def verdicts(charges: tuple[SmokeCharge, ...]) -> list[Verdict]:
    return [(charge.check, charge.kind, charge.ranks, charge.undecided) for charge in charges]


def both(*spoils: Spoil) -> Spoil:
    def spoil(result: SmokeResult) -> SmokeResult:
        for each in spoils:
            result = each(result)
        return result

    return spoil


def shape_and_place(result: SmokeResult, rank: int) -> tuple[CellShape, int]:
    seat = result.plan.seat(rank)
    return result.plan.shape(seat.cell), seat.place


# Data.


def batches(rank: int, change: Callable[[BatchHashes], Any], first: int = 0) -> Spoil:
    return lambda result: with_batches(result, rank, change, first)


def masked(rank: int, first: int = 0) -> Spoil:
    """A different mask, and so different labels."""
    return batches(rank, lambda b: changed(b, mask=mark(rank, b.step), labels=mark("l", rank, b.step)), first)


def shuffled(rank: int) -> Spoil:
    """Labels in another order."""
    return batches(rank, lambda b: changed(b, labels=mark("shuffled", b.step)))


def stray(rank: int, *names: str, first: int = 0) -> Spoil:
    """Different draws from some streams."""

    def change(batch: BatchHashes) -> Any:
        streams = {name: mark(name, rank, batch.step) for name in names}
        return changed(batch, streams={**batch.streams, **streams})

    return batches(rank, change, first)


def data_of(rank: int, other: int, ahead: int = 0) -> Spoil:
    """The whole batch of another place, or of another step."""

    def spoil(result: SmokeResult) -> SmokeResult:
        shape, _ = shape_and_place(result, rank)

        def change(batch: BatchHashes) -> BatchHashes:
            return BatchHashes(batch.step, *reference_batch(shape, batch.step + ahead, other), batch.streams)

        return with_batches(result, rank, change)

    return spoil


def split_losses(rank: int, first: int) -> Spoil:
    """Losses as if one of two tensor-parallel peers had a different mask."""
    return lambda result: with_steps(result, rank, lambda s: changed(s, loss=(s.loss or 0) * 1.01), first)


def risen(*ranks: int) -> Spoil:
    """Losses far above those before the training, as if its learning rate were too high."""
    return both(*(steps(rank, lambda s: changed(s, loss=130.0 + s.step), 6) for rank in ranks))


# The training.


def steps(rank: int, change: Callable[[TrainStep], TrainStep], first: int = 0, last: int = 10**9) -> Spoil:
    return lambda result: with_steps(result, rank, change, first, last)


def learned_nothing(rank: int) -> Spoil:
    return steps(rank, lambda s: changed(s, loss=5.0 + s.step / 30))


def drifted(rank: int, first: int) -> Spoil:
    """Different parameters from a step on."""
    return steps(rank, lambda s: changed(s, params=mark("drift", rank, s.step)), first)


def unsynced(rank: int, first: int) -> Spoil:
    return both(steps(rank, lambda s: changed(s, reduced=(s.own or (0, 0))[0]), first), drifted(rank, first))


def summed_wrong(rank: int, first: int, error: float = 0.01) -> Spoil:
    return both(
        steps(rank, lambda s: changed(s, reduced=(s.reduced or 0) + error), first), drifted(rank, first)
    )


def lost_part(rank: int, column: tuple[int, ...], first: int) -> Spoil:
    """The sum of all ranks lacks one rank's part."""

    def spoil(result: SmokeResult) -> SmokeResult:
        part = {s.step: (s.own or (0, 0))[0] for s in result.ranks[rank].steps}
        for each in column:
            result = with_steps(
                result, each, lambda s: changed(s, reduced=(s.reduced or 0) - part[s.step]), first
            )
        return result

    return spoil


def initial(rank: int) -> Spoil:
    return lambda result: with_rank(
        drifted(rank, 0)(result), rank, init=changed(result.ranks[rank].init, params=mark("other"))
    )


# Audits.


def audited(rank: int, *, used: bool = False, of: tuple[int, ...] = (), first: int = 9) -> Spoil:
    """Different gradients: the gradient that was used, or those of the batches of some replicas."""

    def change(seen: RankOutcome, again: Sequence[int]) -> RankOutcome:
        audits = []
        for audit in seen.audits:
            if audit.step >= first:
                votes = tuple(
                    mark("bad", rank, batch, audit.step) if batch in of else vote
                    for batch, vote in zip(again, audit.votes, strict=True)
                )
                audit = changed(audit, votes=votes, used=mark("used", rank) if used else votes[0])
            audits.append(audit)
        return replace(seen, audits=tuple(audits))

    def spoil(result: SmokeResult) -> SmokeResult:
        shape, place = shape_and_place(result, rank)
        return with_rank(result, rank, lambda seen: change(seen, replicas_again(shape, shape.dp_of(place))))

    return spoil


def alone_wrong(rank: int, like: int | None = None) -> Spoil:
    """Everything that it computes alone is wrong; `like`: with the same values as that rank."""
    wrong = rank if like is None else like

    def change(seen: RankOutcome) -> RankOutcome:
        assert seen.solo
        return replace(
            seen, solo=changed(seen.solo, votes=tuple(mark("solo", wrong, v) for v in seen.solo.votes))
        )

    return lambda result: with_rank(result, rank, change)


def started(rank: int, **changes: Any) -> Spoil:
    def change(seen: RankOutcome) -> RankOutcome:
        return replace(seen, started=changed(seen.started, **changes))

    return lambda result: with_rank(result, rank, change)


def broken_device(*ranks: int, dp: int, replica: tuple[int, ...]) -> Spoil:
    """Everything that it computes is wrong, and so is everything that its tensor-parallel peers compute."""
    return both(
        *(audited(rank, of=tuple(range(dp))) for rank in replica), *(alone_wrong(rank) for rank in ranks)
    )


# Collectives.


def wrong(
    rank: int, name: str, index: int, got: object, expected: object, position: int, group: str = "world"
) -> Spoil:
    said = CollectiveDeviation(name, group, index, str(got), str(expected), position)

    def change(seen: RankOutcome) -> RankOutcome:
        assert seen.collectives
        return replace(seen, collectives=changed(seen.collectives, wrong=(*seen.collectives.wrong, said)))

    return lambda result: with_rank(result, rank, change)


def missing_part(culprit: int, world: int, *places: tuple[int, int]) -> Spoil:
    """All-reduces without one rank's part, as (position, index)."""
    members = list(range(world))
    sums, parts = total(members, "int32"), addends(members, "int32")[culprit]
    return both(
        *(
            wrong(
                rank,
                "all_reduce of 1000 int32",
                i,
                sums[i % PERIOD] - parts[i % PERIOD],
                sums[i % PERIOD],
                at,
            )
            for at, i in places
            for rank in members
        )
    )

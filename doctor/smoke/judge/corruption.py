"""Silent corruption: ranks that compute different results than their neighbours from the same numbers.

Three witnesses: a product of whole numbers; gradients of the training, computed again by the rank itself and
by two other replicas; and gradients that each rank computes alone.
"""

import math
from collections import defaultdict
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from doctor.model import Evidence
from doctor.smoke.events import Audit
from doctor.smoke.judge.cells import (
    Cell,
    arithmetic,
    cells,
    close_audits,
    close_gradients,
    vote,
    vote_of_most,
)
from doctor.smoke.judge.charge import SmokeCharge, ranks_text, worded
from doctor.smoke.onhost.trainplan import GOLDEN, places_again, replicas_again
from doctor.smoke.result import SmokeResult

ASTRAY = 2.0
"""A loss this many times as high as at the start is not that of numbers that occur in a training."""


def judge_corruption(result: SmokeResult) -> Iterator[SmokeCharge]:
    """Each rank is charged once, by the first witness; a suspicion is dropped if a suspect is guilty."""
    charges = list(_golden(result))
    for cell in cells(result):
        alone = list(_alone(cell))
        charges += _audited(cell, {rank for charge in alone for rank in charge.ranks})
        charges += alone
    sure = {rank for charge in charges if not charge.undecided for rank in charge.ranks}
    named: set[int] = set()
    for charge in sorted(charges, key=lambda charge: charge.undecided):
        if charge.undecided and not sure.isdisjoint(charge.ranks):
            continue
        ranks = tuple(rank for rank in charge.ranks if rank not in named)
        named.update(ranks)
        if ranks and (ranks == charge.ranks or not charge.undecided):
            yield replace(charge, ranks=ranks)


def _golden(result: SmokeResult) -> Iterator[SmokeCharge]:
    """The product is exact in every arithmetic: all repetitions on all ranks must agree."""
    hashes = {seen.rank: seen.started.golden for seen in result.ranks if seen.started and seen.started.golden}
    wavering = tuple(rank for rank, found in hashes.items() if len(set(found)) > 1)
    if wavering:
        yield _product_charge(hashes, wavering, "golden-again")
    steady = {rank: found[0] for rank, found in hashes.items() if rank not in wavering}
    if GOLDEN and GOLDEN in steady.values():
        odd, decided = tuple(rank for rank, found in steady.items() if found != GOLDEN), True
    elif found := vote(steady):
        odd, decided = found
    else:
        return
    if odd:
        yield _product_charge(hashes, odd, "golden", decided)


def _product_charge(
    hashes: Mapping[int, tuple[str, ...]], ranks: tuple[int, ...], kind: str, decided: bool = True
) -> SmokeCharge:
    right = [found[0] for rank, found in hashes.items() if rank not in ranks]
    expected = f"hash {right[0]}" if right else "the same hash each time, on all ranks"
    seen = "; ".join(dict.fromkeys(" ".join(hashes[rank][:8]) for rank in ranks[:4]))
    lines = [f"{ranks_text([rank])}: {' '.join(hashes[rank][:8])}" for rank in ranks[:32]]
    return SmokeCharge(
        *worded(kind, expected=expected, hashes=seen),
        ranks=ranks,
        undecided=not decided,
        evidence=(Evidence("hashes of the product", "\n".join(lines)),),
    )


def _audited(cell: Cell, wrong_alone: Container[int]) -> Iterator[SmokeCharge]:
    """The first audit of the training that shows anything; `wrong_alone`: ranks that are wrong alone, too."""
    said: dict[int, dict[int, Audit]] = defaultdict(dict)
    for place in cell.places:
        for audit in cell.seen[place].audits:
            if audit.step < cell.shape.steps and audit.votes:
                said[audit.step][place] = audit
    if cell.within is not None:
        shape = cell.shape
        what = {
            place: [(dp, shape.part_of(place)) for dp in replicas_again(shape, shape.dp_of(place))]
            for place in cell.places
        }
        said = {step: close_audits(audits, what, cell.within) for step, audits in said.items()}
    for step, audits in sorted(said.items()):
        if charges := list(_audit(cell, step, audits, wrong_alone)):
            yield from charges
            return


def _audit(
    cell: Cell, step: int, audits: Mapping[int, Audit], wrong_alone: Container[int]
) -> Iterator[SmokeCharge]:
    """What one audit shows: one charge for each replica.

    A rank that shares its model with tensor-parallel peers computes with what they computed. So when several
    ranks of one replica are off together, one of them is at fault and the others only repeat it.
    """
    transient = {place for place, audit in audits.items() if audit.used != audit.votes[0]}
    odd, torn = _disagreeing(cell, step, audits)
    if _astray(cell, step):
        transient = {place for place in transient if cell.ranks[place] in wrong_alone}
        odd = {place: batches for place, batches in odd.items() if cell.ranks[place] in wrong_alone}
        torn = {replicas for replicas in torn if any(cell.ranks[p] in wrong_alone for p in audits)}
    for dp in range(cell.shape.dp):
        replica = cell.replica(dp)
        places = [place for place in replica if place in transient or place in odd]
        if not places:
            continue
        own_only = all(odd.get(place, {dp}) <= {dp} for place in places)
        if not transient.isdisjoint(places):
            name = "transient"
        elif cell.within is not None:
            # Parameters were compared roughly: a wrong one shows on any of the ranks that share the model.
            places, name = replica, "gradient or parameter"
        else:
            name = "data" if own_only and cell.shape.dp > 2 else "gradient"
        decided = len(places) == 1 or (name == "data" and places == replica)
        yield _audit_charge(cell, step, audits, places, name, decided)
    if not transient and not odd:
        for replicas in sorted(torn):
            places = [place for dp in replicas for place in cell.replica(dp)]
            yield _audit_charge(cell, step, audits, places, "gradients of replicas", decided=False)


def _astray(cell: Cell, step: int) -> bool:
    """Whether every rank's loss is far above the first: healthy kernels may then round differently."""
    first, now = ([_loss(cell, place, at) for place in cell.places] for at in (0, step))
    return min(now) > ASTRAY * max(first)


def _loss(cell: Cell, place: int, step: int) -> float:
    seen = cell.steps(place).get(step)
    return math.nan if seen is None or seen.loss is None else seen.loss


def _disagreeing(
    cell: Cell, step: int, audits: Mapping[int, Audit]
) -> tuple[dict[int, set[int]], set[tuple[int, ...]]]:
    """Place -> the replicas whose batches it computed differently from the two others; and groups of replicas
    that differ, if it is unknown which of them is wrong.
    """
    odd: dict[int, set[int]] = defaultdict(set)
    torn: set[tuple[int, ...]] = set()
    replica_of = {place: cell.shape.dp_of(place) for place in audits}
    known = {dp: _computed_with(cell, dp, step) for dp in set(replica_of.values())}
    basis = {place: known[dp] for place, dp in replica_of.items()}
    for column in cell.columns:
        votes = (
            (place, replicas_again(cell.shape, replica_of[place]), audits[place].votes)
            for place in column
            if place in audits
        )
        for batch, cast in _ballots(votes):
            found = vote_of_most(cell, cast, basis)
            if found and found.decided:
                for place in found.odd:
                    odd[place].add(batch)
            elif found:
                torn.add(tuple(sorted({replica_of[place] for place in found.odd})))
    return odd, torn


def _ballots(votes: Iterable[tuple[int, Iterable[int], Iterable[str]]]) -> list[tuple[int, dict[int, str]]]:
    """Batch -> place -> hash of its gradient there; made from places with their batches and hashes."""
    ballots: dict[int, dict[int, str]] = defaultdict(dict)
    for place, batches, hashes in votes:
        for batch, got in zip(batches, hashes, strict=False):
            ballots[batch][place] = got
    return sorted(ballots.items())


def _computed_with(cell: Cell, dp: int, step: int) -> Hashable:
    """The parameters of a replica before the step, and its arithmetic; None if unknown."""
    parts: list[Hashable] = []
    for place in cell.replica(dp):
        seen = cell.seen[place]
        before = cell.steps(place).get(step - 1) if step else seen.init
        if before is None:
            return None
        same = before.params if cell.within is None else ""  # parameters are compared elsewhere
        parts.append((same, arithmetic(seen.started)))
    return tuple(parts)


def _audit_charge(
    cell: Cell,
    step: int,
    audits: Mapping[int, Audit],
    places: list[int],
    name: str,
    decided: bool,
) -> SmokeCharge:
    lines = []
    for place in cell.places:
        if place in audits:
            audit, replicas = audits[place], replicas_again(cell.shape, cell.shape.dp_of(place))
            batches = zip(replicas, audit.votes, strict=False)
            again = ", ".join(f"batch of replica {dp}: {got}" for dp, got in batches)
            lines.append(f"{cell.name(place)}: used {audit.used}; computed again: {again}")
    peers = {peer for place in places for peer in cell.replica(cell.shape.dp_of(place))}
    actual = "a different gradient" if decided else "different gradients"
    words = worded(name, step=step, closeness=cell.closeness, actual=actual)
    source = f"hashes of gradients of step {step}"
    return cell.charge(words, places, peers, source, lines[:32], step=step, decided=decided)


def _alone(cell: Cell) -> Iterator[SmokeCharge]:
    """Gradients computed alone: each batch by its own place and by two others, on a whole model."""
    said = {place: seen.solo for place, seen in enumerate(cell.seen) if seen.solo}
    solos: Mapping[int, Sequence[str]] = {place: solo.votes for place, solo in said.items()}
    if cell.within is not None:
        sums = {place: solo.sums for place, solo in said.items()}
        solos = close_gradients(sums, {p: places_again(cell.shape, p) for p in said}, cell.within)
    basis = {place: arithmetic(cell.seen[place].started) for place in solos}
    blamed: dict[bool, set[int]] = {True: set(), False: set()}
    lines: list[str] = []
    for batch, cast in _ballots((place, places_again(cell.shape, place), solos[place]) for place in solos):
        if found := vote_of_most(cell, cast, basis):
            lines += [f"batch {batch} on {cell.name(place)}: {got}" for place, got in cast.items()]
            blamed[found.decided].update(found.odd)
    source = "hashes of gradients that ranks computed alone"
    for decided, places in blamed.items():
        if places and (decided or blamed[True].isdisjoint(places)):
            others = "the two others" if decided else "the other"
            words = worded("alone", closeness=cell.closeness, others=others)
            yield cell.charge(words, places, (), source, lines[:48], decided=decided)

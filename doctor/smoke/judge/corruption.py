"""Silent corruption: ranks that compute something else than their neighbours from the same numbers.

Three witnesses: a product of whole numbers, gradients of the training computed again (`audits`), and
gradients that each rank computes all alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace

from doctor.model import Evidence
from doctor.smoke.judge.audits import judge_audits
from doctor.smoke.judge.cells import Cell, arithmetic, cells, vote, vote_of_most
from doctor.smoke.judge.charge import Charge, ranks_text
from doctor.smoke.onhost.trainplan import GOLDEN, places_again
from doctor.smoke.result import SmokeResult

CHECK = "smoke-corruption"


def judge_corruption(result: SmokeResult) -> Iterator[Charge]:
    """Each rank is charged once, by the first witness; where one is sure, mere suspicions do not count."""
    charges = list(_golden(result))
    for cell in cells(result):
        charges += judge_audits(cell)
        charges += _alone(cell)
    sure = {rank for charge in charges if not charge.undecided for rank in charge.ranks}
    named: set[int] = set()
    for charge in sorted(charges, key=lambda charge: charge.undecided):
        if charge.undecided and not sure.isdisjoint(charge.ranks):
            continue
        ranks = tuple(rank for rank in charge.ranks if rank not in named)
        named.update(ranks)
        if ranks and (ranks == charge.ranks or not charge.undecided):
            yield replace(charge, ranks=ranks)


def _golden(result: SmokeResult) -> Iterator[Charge]:
    """The product is exact in every arithmetic: all repetitions on all ranks must agree."""
    hashes = {seen.rank: seen.started.golden for seen in result.ranks if seen.started and seen.started.golden}
    wavering = tuple(rank for rank, found in hashes.items() if len(set(found)) > 1)
    if wavering:
        yield _product_charge(
            hashes, wavering, "it computes one product of whole numbers differently each time", "golden-again"
        )
    steady = {rank: found[0] for rank, found in hashes.items() if rank not in wavering}
    if GOLDEN and GOLDEN in steady.values():
        odd, decided = tuple(rank for rank, found in steady.items() if found != GOLDEN), True
    elif found := vote(steady):
        odd, decided = found
    else:
        return
    if odd:
        words = "it computes another product of whole numbers than the other ranks"
        yield _product_charge(hashes, odd, words, "golden", decided)


def _product_charge(
    hashes: Mapping[int, tuple[str, ...]],
    ranks: tuple[int, ...],
    words: str,
    kind: str,
    decided: bool = True,
) -> Charge:
    right = [found[0] for rank, found in hashes.items() if rank not in ranks]
    lines = [f"{ranks_text([rank])}: {' '.join(hashes[rank][:8])}" for rank in ranks[:32]]
    return Charge(
        check=CHECK,
        kind=kind,
        summary=words,
        expected=f"hash {right[0]}" if right else "the same hash each time, on all ranks",
        actual="; ".join(dict.fromkeys(" ".join(hashes[rank][:8]) for rank in ranks[:4])),
        ranks=ranks,
        phase="start",
        undecided=not decided,
        evidence=(Evidence("hashes of the product", "\n".join(lines)),),
    )


def _alone(cell: Cell) -> Iterator[Charge]:
    """Each batch was computed by its own place and the next two, each on a whole model of its own."""
    ballots: dict[int, dict[int, str]] = defaultdict(dict)
    for place in cell.places:
        if solo := cell.seen[place].solo:
            for batch, got in zip(places_again(cell.shape, place), solo.votes, strict=False):
                ballots[batch][place] = got
    blamed: dict[bool, set[int]] = {True: set(), False: set()}
    lines: list[str] = []
    for batch, cast in sorted(ballots.items()):
        if found := vote_of_most(cell, cast, lambda place: arithmetic(cell.seen[place].started)):
            lines += [f"batch {batch} on {cell.name(place)}: {got}" for place, got in cast.items()]
            blamed[found.decided].update(found.odd)
    evidence = (Evidence("hashes of gradients that ranks computed alone", "\n".join(lines[:48])),)
    for decided, places in blamed.items():
        if places and (decided or blamed[True].isdisjoint(places)):
            yield Charge(
                check=CHECK,
                kind="alone",
                summary="all alone, it computes other gradients than its neighbours from the same numbers",
                expected="the same gradient of one batch on every rank, in every bit",
                actual=f"another one than {'the two others' if decided else 'the other'}",
                ranks=cell.numbers(places),
                phase="audit",
                undecided=not decided,
                evidence=evidence,
            )

"""Gradients of the training that were computed again: by the rank itself, and by the next two replicas.

A rank that shares its model with tensor-parallel peers computes with what they computed. So when several
ranks of one replica are off together, one of them is at fault and the others only repeat it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping
from typing import NamedTuple

from doctor.model import Evidence
from doctor.smoke.judge.cells import Cell, arithmetic, vote_of_most
from doctor.smoke.judge.charge import Charge
from doctor.smoke.onhost.trainplan import replicas_again
from doctor.smoke.result import Audit

CHECK = "smoke-corruption"


class AuditView(NamedTuple):
    """What one audit shows. `transient`: places whose gradient differs from the one they compute again.

    `odd`: place -> the replicas whose batches it computed differently from the two others. `torn`: replicas
    that differ, and it is unknown which of them is wrong.
    """

    transient: set[int]
    odd: dict[int, set[int]]
    torn: set[tuple[int, ...]]


def judge_audits(cell: Cell) -> Iterator[Charge]:
    """The first audit that shows anything."""
    said: dict[int, dict[int, Audit]] = defaultdict(dict)
    for place in cell.places:
        for audit in cell.seen[place].audits:
            if audit.step < cell.shape.steps and audit.votes:
                said[audit.step][place] = audit
    for step, audits in sorted(said.items()):
        if charges := list(_charges(cell, step, audits, _look(cell, step, audits))):
            yield from charges
            return


def _look(cell: Cell, step: int, audits: Mapping[int, Audit]) -> AuditView:
    transient = {place for place, audit in audits.items() if audit.used != audit.votes[0]}
    odd: dict[int, set[int]] = defaultdict(set)
    torn: set[tuple[int, ...]] = set()
    basis = {dp: _basis(cell, dp, step) for dp in range(cell.shape.dp)}
    for tp in range(cell.shape.tp):
        ballots: dict[int, dict[int, str]] = defaultdict(dict)
        for place in cell.column(tp):
            if place in audits:
                replicas = replicas_again(cell.shape, cell.shape.dp_of(place))
                for batch, got in zip(replicas, audits[place].votes, strict=False):
                    ballots[batch][place] = got
        for batch, cast in ballots.items():
            known = {place: got for place, got in cast.items() if basis[cell.shape.dp_of(place)] is not None}
            found = vote_of_most(cell, known, lambda place: basis[cell.shape.dp_of(place)])
            if found and found.decided:
                for place in found.odd:
                    odd[place].add(batch)
            elif found:
                torn.add(tuple(sorted({cell.shape.dp_of(place) for place in found.odd})))
    return AuditView(transient, odd, torn)


def _basis(cell: Cell, dp: int, step: int) -> Hashable:
    """What a replica computed with: its parameters before the step, and its arithmetic. None: not known."""
    parts: list[Hashable] = []
    for place in cell.replica(dp):
        seen = cell.seen[place]
        before = cell.steps(place).get(step - 1) if step else seen.init
        if before is None:
            return None
        parts.append((before.params, arithmetic(seen.started)))
    return tuple(parts)


def _charges(cell: Cell, step: int, audits: Mapping[int, Audit], seen: AuditView) -> Iterator[Charge]:
    guilty = seen.transient | set(seen.odd)
    for dp in range(cell.shape.dp):
        places = [place for place in cell.replica(dp) if place in guilty]
        if not places:
            continue
        own_only = all(seen.odd.get(place, {dp}) <= {dp} for place in places)
        if not seen.transient.isdisjoint(places):
            kind, words = "transient", "the gradient that it used is not the one that it computes again"
        elif own_only and cell.shape.dp > 2:
            kind, words = (
                "data",
                "its gradient of its own batch is wrong, and those of others' batches are right",
            )
        else:
            kind, words = "gradient", "it computes other gradients than its neighbours from the same numbers"
        whole = kind == "data" and places == cell.replica(dp)
        yield _charge(cell, step, audits, places, kind, words, decided=len(places) == 1 or whole)
    if not guilty:
        for replicas in sorted(seen.torn):
            words = "replicas compute different gradients from the same numbers"
            places = [place for dp in replicas for place in cell.replica(dp)]
            yield _charge(cell, step, audits, places, "gradient", words, decided=False)


def _charge(
    cell: Cell,
    step: int,
    audits: Mapping[int, Audit],
    places: list[int],
    kind: str,
    words: str,
    decided: bool,
) -> Charge:
    lines = []
    for place in cell.places:
        if place in audits:
            audit, replicas = audits[place], replicas_again(cell.shape, cell.shape.dp_of(place))
            batches = zip(replicas, audit.votes, strict=False)
            again = ", ".join(f"batch of replica {dp}: {got}" for dp, got in batches)
            lines.append(f"{cell.name(place)}: used {audit.used}; computed again: {again}")
    peers = {peer for place in places for peer in cell.replica(cell.shape.dp_of(place))}
    return Charge(
        check=CHECK,
        kind=kind,
        summary=f"{words} (step {step})",
        expected="the same gradient of one batch, in every bit, whoever computes it",
        actual="another gradient" if decided else "different gradients",
        ranks=cell.numbers(places),
        victims=cell.numbers(peers - set(places)),
        phase="train",
        step=step,
        undecided=not decided,
        evidence=(Evidence(f"hashes of gradients of step {step}", "\n".join(lines[:32])),),
    )

"""The speed of the ranks in a smoke run: each compared with the others, by its steps and its loss."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean, median

from doctor.facts.smoke import JudgedRun
from doctor.rules.smoke import is_fault
from doctor.smoke.judge.loss import LARGEST

SLOW = ("smoke-straggler", "smoke-contention", "smoke-slow-link")
LAST = 10
"""The number of last steps over which a rank's loss is averaged."""


def is_slow(run: JudgedRun) -> bool:
    return any(charge.check in SLOW for charge in run.charges)


def slow_hosts(run: JudgedRun) -> set[str]:
    """The hosts at the ends of slow links."""
    return {
        host
        for charge in run.charges
        if charge.check == "smoke-slow-link"
        for host in charge.culprit_hosts(run.plan)
    }


@dataclass(frozen=True, slots=True)
class RankPace:
    """A rank's median step and last losses, compared with those of the others: it computes `late` seconds
    longer, and its loss is `loss_share` of the mean. `check` is the first check that names it.
    """

    rank: int
    host: str
    step: float
    late: float
    wait: float
    loss: float | None
    loss_share: float
    check: str


def rank_paces(run: JudgedRun) -> tuple[RankPace, ...]:
    """The paces of the ranks that measured at least one step."""
    told = {seen.rank: seen for seen in run.result.ranks if any(step.compute for step in seen.steps)}
    computes = {rank: median(step.compute for step in seen.steps) for rank, seen in told.items()}
    losses = {}
    for rank, seen in told.items():
        last = [
            step.loss for step in seen.steps[-LAST:] if step.loss is not None and abs(step.loss) < LARGEST
        ]
        if last:
            losses[rank] = fmean(last)
    usual = median(computes.values()) if computes else 0.0
    mean = fmean(losses.values()) if losses else 0.0
    named = _first_checks(run)
    return tuple(
        RankPace(
            rank,
            run.plan.seat(rank).host,
            step=computes[rank] + (wait := median(step.wait for step in seen.steps)),
            late=computes[rank] - usual,
            wait=wait,
            loss=losses.get(rank),
            loss_share=losses.get(rank, mean) / mean if mean else 1.0,
            check=named.get(rank, ""),
        )
        for rank, seen in told.items()
    )


def _first_checks(run: JudgedRun) -> dict[int, str]:
    """Rank -> the first check that names it or its host, faults before warnings."""
    named: dict[int, str] = {}
    for charge in sorted(run.charges, key=lambda charge: not is_fault(charge)):
        hosts = set(charge.culprit_hosts(run.plan)) if not charge.ranks else set()
        for rank in (*charge.ranks, *(seat.rank for seat in run.plan.seats if seat.host in hosts)):
            named.setdefault(rank, charge.check)
    return named

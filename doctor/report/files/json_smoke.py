"""The smoke runs in the JSON report."""

import msgspec

from doctor.facts.smoke import JudgedRun
from doctor.judge.verdict import Report
from doctor.report.page.smoke import Outcome, PhaseLine, RunNumbers
from doctor.rules.smoke import not_made
from doctor.smoke.judge.loss import LossSummary


class SmokeRank(msgspec.Struct, frozen=True):
    """A rank of a smoke run."""

    rank: int
    host: str
    device: int | None


class SmokeLayout(msgspec.Struct, frozen=True):
    """How the ranks share the training."""

    dp: int
    tp: int
    cells: int


class SmokeLink(msgspec.Struct, frozen=True):
    """How fast two hosts exchanged data: both sent at once, or one at a time if they were two or three."""

    hosts: tuple[str, str]
    bytes_per_second: int
    round_trip_ms: float
    sent_again: float = 0.0


class SmokeRunEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One short training."""

    status: Outcome
    reason: str | None
    backend: str
    framework: str = "torch"
    not_made: tuple[str, ...] = ()
    ranks: tuple[SmokeRank, ...] = ()
    layout: SmokeLayout | None = None
    phases: tuple[PhaseLine, ...] = ()
    loss: LossSummary | None = None
    bandwidth: tuple[SmokeLink, ...] = ()
    versions: dict[str, str] = {}
    comparison: str | None = None
    injected: str | None = None
    hosts: tuple[str, ...] = ()
    left_out: dict[str, str] = {}
    seconds: float = 0.0
    latency: float | None = None


class SmokeEntry(SmokeRunEntry, frozen=True, kw_only=True):
    """The first smoke run, and the runs that repeat it without the hosts that it named."""

    runs: tuple[SmokeRunEntry, ...] = ()


def smoke_entry(report: Report) -> SmokeEntry | None:
    """None if no run was asked for."""
    training = report.training
    if training.runs:
        first, *more = training.runs
        runs = tuple(_run(run, None) for run in more)
        return SmokeEntry(runs=runs, **msgspec.structs.asdict(_run(first, training.net_seconds)))
    if not training.not_made:
        return None
    return SmokeEntry(status="skipped", reason=training.not_made, backend=report.plan.carrier.value)


def _run(run: JudgedRun, net: float | None) -> SmokeRunEntry:
    plan, seen = run.plan, RunNumbers(run, net)
    return SmokeRunEntry(
        status=seen.outcome,
        reason=f"interrupted in the {seen.last_phase} phase" if seen.outcome == "skipped" else None,
        backend=plan.backend,
        framework=plan.framework,
        not_made=not_made(run),
        ranks=tuple(SmokeRank(seat.rank, seat.host, seat.device) for seat in plan.seats),
        layout=SmokeLayout(seen.replicas, plan.tp, len(plan.cells)),
        phases=seen.phases,
        loss=seen.loss,
        bandwidth=tuple(
            SmokeLink(link.hosts, round(link.rate), round(1e3 * link.round_trip, 4), round(link.resent, 5))
            for link in seen.links
        ),
        versions=dict(seen.versions),
        comparison=seen.comparison or None,
        injected=seen.injected or None,
        hosts=plan.hosts,
        left_out=dict(seen.left_out),
        seconds=run.result.total,
        latency=run.result.end.latency,
    )

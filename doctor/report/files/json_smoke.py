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
    """Its number."""
    host: str
    """Its host."""
    device: int | None
    """Its device; null without one."""


class SmokeLayout(msgspec.Struct, frozen=True):
    """How the ranks share the training."""

    dp: int
    """Replicas of a cell."""
    tp: int
    """Ranks of a replica."""
    cells: int
    """Groups of ranks that train together."""


class SmokeLink(msgspec.Struct, frozen=True):
    """How fast two hosts exchanged data: both sent at once, or one at a time if they were two or three."""

    hosts: tuple[str, str]
    """The two hosts."""
    bytes_per_second: int
    """The rate each way; the lower one if they differ."""
    round_trip_ms: float
    """The round trip in milliseconds."""
    sent_again: float = 0.0
    """The share of TCP segments that the worse of the two had to send again."""


class SmokeRunEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One short training."""

    status: Outcome
    """`skipped` if it could not be started, or if it was interrupted before anything was wrong."""
    reason: str | None
    """Why it was skipped."""
    backend: str
    """The backend of the collectives: `gloo`, `nccl`, `hccl` or MindSpore's `mccl`."""
    framework: str = "torch"
    """What trained: `torch` or `mindspore`; `versions` has its version."""
    not_made: tuple[str, ...] = ()
    """The collectives that were not tried, because the backend does not have them."""
    ranks: tuple[SmokeRank, ...] = ()
    """Each rank."""
    layout: SmokeLayout | None = None
    """How they share the training."""
    phases: tuple[PhaseLine, ...] = ()
    """Its phases, in order."""
    loss: LossSummary | None = None
    """The loss of the cell that learned the least; null before the first step."""
    bandwidth: tuple[SmokeLink, ...] = ()
    """Each pair of hosts that met, the slowest first."""
    versions: dict[str, str] = {}
    """The versions that the ranks imported; if they differ, each version with its hosts."""
    comparison: str | None = None
    """How results were compared; null if bit by bit."""
    injected: str | None = None
    """The faults that `--inject` asked for."""
    hosts: tuple[str, ...] = ()
    """The hosts that took part."""
    left_out: dict[str, str] = {}
    """The hosts that did not, and why."""
    seconds: float = 0.0
    """How long it took."""
    latency: float | None = None
    """Seconds from an injected fault until it was noticed."""


class SmokeEntry(SmokeRunEntry, frozen=True, kw_only=True):
    """The first smoke run, and the runs that repeat it without the hosts that it named."""

    runs: tuple[SmokeRunEntry, ...] = ()
    """The repeated runs."""


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

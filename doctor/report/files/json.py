"""The JSON report of `check`, `smoke` and `preflight`, with its smoke runs."""

from collections.abc import Iterable

import msgspec
from msgspec import UNSET, UnsetType

from doctor.facts.smoke import JudgedRun
from doctor.job.plan import JobPlan
from doctor.judge.again import Recheck, RecheckState
from doctor.judge.fact_table import facts_of_host
from doctor.judge.verdict import HostReport, Report
from doctor.model import Finding, Result, Scope
from doctor.report.files import envelope
from doctor.report.page.headline import last_line
from doctor.report.page.names import culprit, title
from doctor.report.page.rerun import verify
from doctor.report.page.smoke import Outcome, PhaseLine, RunNumbers
from doctor.rules.accept import CollectiveRate, collective_rates
from doctor.rules.alone import HostRate, host_rates
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
    pp: int | UnsetType = UNSET
    cp: int | UnsetType = UNSET
    ep: int | UnsetType = UNSET
    micro: int | UnsetType = UNSET
    vpp: int | UnsetType = UNSET
    zero: int | UnsetType = UNSET
    ps: int | UnsetType = UNSET
    order: str | UnsetType = UNSET


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
    collectives: tuple[CollectiveRate, ...] = ()
    alone: tuple[HostRate, ...] = ()
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
    soak: dict[str, dict[str, tuple[float, float, float, float]]] = {}


def smoke_entry(report: Report) -> SmokeEntry | None:
    """None if no run was asked for."""
    training = report.training
    if training.runs:
        first, *more = training.runs
        runs, soak = tuple(_run(run, None) for run in more), training.soak.told if training.soak else {}
        return SmokeEntry(runs=runs, soak=soak, **msgspec.structs.asdict(_run(first, training.net_seconds)))
    if not training.not_made:
        return None
    return SmokeEntry(status="skipped", reason=training.not_made, backend=report.plan.carrier.value)


def _run(run: JudgedRun, net: float | None) -> SmokeRunEntry:
    plan, seen = run.plan, RunNumbers(run, net)
    return envelope.entry_of(
        SmokeRunEntry,
        plan,
        status=seen.outcome,
        reason=f"interrupted in the {seen.last_phase} phase" if seen.outcome == "skipped" else None,
        not_made=not_made(run),
        ranks=tuple(SmokeRank(seat.rank, seat.host, seat.device) for seat in plan.seats),
        layout=SmokeLayout(
            seen.replicas, plan.tp, len(plan.cells), **plan.layout, order=plan.order if plan.layout else UNSET
        ),
        phases=seen.phases,
        loss=seen.loss,
        bandwidth=tuple(
            SmokeLink(link.hosts, round(link.rate), round(1e3 * link.round_trip, 4), round(link.resent, 5))
            for link in seen.links
        ),
        collectives=collective_rates(run),
        alone=host_rates(run),
        versions=dict(seen.versions),
        comparison=seen.comparison or None,
        injected=seen.injected or None,
        left_out=dict(seen.left_out),
        seconds=run.result.total,
        latency=run.result.end.latency,
    )


class SourcedWord(msgspec.Struct, frozen=True):
    """A word of the plan."""

    value: str
    source: str


class SourcedPort(msgspec.Struct, frozen=True):
    """A port of the plan."""

    value: int
    source: str


class PlanEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The job that the hosts are examined for."""

    hosts: int
    ranks: int
    backend: SourcedWord
    framework: SourcedWord | None
    head: SourcedWord
    master_port: SourcedPort


class WayEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What was typed, without secrets: `doctor check --again` repeats it. Each option is a list of words."""

    named: tuple[tuple[str, ...], ...]
    reached: tuple[tuple[str, ...], ...]
    asked: tuple[tuple[str, ...], ...]
    users: dict[str, str] = {}


class LookedAgainEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What has become of a finding of an earlier run."""

    id: str
    check: str
    hosts: tuple[str, ...]
    headline: str
    now: RecheckState
    still: tuple[str, ...]
    open: tuple[str, ...]
    reason: str


class CheckReport(envelope.Envelope, frozen=True, kw_only=True):
    """The report of `doctor check`, `smoke` and `preflight`."""

    plan: PlanEntry
    smoke: SmokeEntry | None
    unloaded: tuple[str, ...]
    way: WayEntry | None = None
    again: tuple[LookedAgainEntry, ...] | None = None


def check_report(report: Report) -> CheckReport:
    hosts = tuple(_host(host, report) for host in report.hosts)
    return CheckReport(
        run=envelope.entry_of(envelope.EnvelopeRun, report.run, strict=report.rules.strict),
        plan=_plan(report.plan),
        verdict=report.verdict,
        exit_code=report.exit_code,
        headline=last_line(report),
        summary=envelope.counted(hosts, report.counts(), len(report.checks.scopes)),
        hosts=hosts,
        findings=tuple(_finding(finding, report) for finding in report.findings),
        smoke=smoke_entry(report),
        results=tuple(_results(report.results)),
        unloaded=report.rules.unloaded,
        way=msgspec.convert(report.run.way, WayEntry | None, from_attributes=True),
        again=tuple(map(_looked_again, report.again)) or None,
    )


def _looked_again(found: Recheck) -> LookedAgainEntry:
    became = {"now": found.now, "still": found.still, "open": found.open, "reason": found.why}
    return envelope.entry_of(LookedAgainEntry, found.before, **became)


def _plan(plan: JobPlan) -> PlanEntry:
    return PlanEntry(
        hosts=len(plan.hosts),
        ranks=plan.ranks,
        backend=SourcedWord(plan.carrier.value, plan.carrier.source),
        framework=SourcedWord(plan.framework.value, plan.framework.source) if plan.framework else None,
        head=SourcedWord(plan.head.value, plan.head.source),
        master_port=SourcedPort(plan.master_port.value, plan.master_port.source),
    )


def _host(host: HostReport, report: Report) -> envelope.HostEntry:
    return envelope.entry_of(
        envelope.HostEntry,
        host,
        serial=known.serial or None if (known := report.seen.hardware.get(host.name)) else None,
        facts=facts_of_host(report.seen.facts, host.name),
    )


def _finding(found: Finding, report: Report) -> envelope.FindingEntry:
    where = tuple(msgspec.convert(place, envelope.PlaceEntry, from_attributes=True) for place in found.where)
    at = envelope.only(where)
    seen_on = found.hosts[0] if report.checks.scopes.get(found.check) is Scope.HOST and found.hosts else None
    return envelope.entry_of(
        envelope.FindingEntry,
        found,
        where=where,
        rank=at.rank,
        host=found.hosts[0] if len(found.hosts) == 1 else None,
        pid=at.pid,
        device=at.device,
        headline=f"{culprit(found, report.called)}: {title(found)}",
        evidence=tuple(envelope.EvidenceEntry(each.source, each.text, seen_on) for each in found.evidence),
        verify=verify(report, found) or None,
        open=report.rules.open(found),
    )


def _results(results: Iterable[Result]) -> Iterable[envelope.ResultEntry]:
    """Equal results share a row; its hosts come in the order of the report."""
    rows: dict[envelope.ResultEntry, dict[str, None]] = {}
    for result in results:
        reason = result.reason or (result.problem.summary if result.problem else None)
        row = envelope.ResultEntry(check=result.check, hosts=(), status=result.status, reason=reason)
        rows.setdefault(row, {}).update(dict.fromkeys(result.hosts))
    return (msgspec.structs.replace(row, hosts=tuple(hosts)) for row, hosts in rows.items())

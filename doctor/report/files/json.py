"""The JSON report of `check`, `smoke` and `preflight`."""

from collections.abc import Iterable

import msgspec

from doctor.job.plan import JobPlan
from doctor.judge.again import Recheck, RecheckState
from doctor.judge.fact_table import facts_of_host
from doctor.judge.verdict import HostReport, Report
from doctor.model import Finding, Result, Scope
from doctor.report.files import envelope
from doctor.report.files.json_smoke import SmokeEntry, smoke_entry
from doctor.report.page.headline import last_line
from doctor.report.page.names import culprit, title
from doctor.report.page.rerun import verify


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
    of_one = report.checks.scopes.get(found.check) is Scope.HOST and found.hosts
    seen_on = found.hosts[0] if of_one else None
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

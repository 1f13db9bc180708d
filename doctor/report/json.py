"""The report as JSON, schema 1: a contract that scripts depend on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from doctor import __version__
from doctor.job.plan import JobPlan
from doctor.judge.verdict import Report
from doctor.model import Finding, HostStatus, Result, Sourced
from doctor.report.smoke import smoke_data

SCHEMA = 1


def as_json(report: Report) -> bytes:
    text = msgspec.json.encode(as_data(report))
    return msgspec.json.format(text, indent=1) + b"\n"


def as_data(report: Report) -> dict[str, Any]:
    run = report.run
    return {
        "schema": SCHEMA,
        "tool": {"name": "cluster-doctor", "version": __version__},
        "run": {
            "command": run.command,
            "exam": run.exam,
            "started": run.started,
            "seconds": run.seconds,
            "transport": run.transport,
        },
        "plan": _plan(report.plan),
        "verdict": report.verdict.value,
        "summary": _summary(report),
        "hosts": [
            {
                "name": h.name,
                "address": h.address,
                "product": h.product,
                "status": h.status,
                "reason": h.reason,
            }
            for h in report.hosts
        ],
        "findings": [_finding(finding) for finding in report.findings],
        "smoke": smoke_data(report),
        "results": _results(report.results),
    }


def _sourced(value: Sourced[Any]) -> dict[str, Any]:
    return {"value": value.value, "source": value.source}


def _plan(plan: JobPlan) -> dict[str, Any]:
    return {
        "hosts": len(plan.hosts),
        "ranks": plan.ranks,
        "backend": _sourced(plan.backend),
        "head": _sourced(plan.head),
        "master_port": _sourced(plan.master_port),
    }


def _summary(report: Report) -> dict[str, int]:
    def hosts(status: HostStatus) -> int:
        return sum(host.status is status for host in report.hosts)

    return {
        "hosts": len(report.hosts),
        "healthy": hosts(HostStatus.HEALTHY),
        "faulty": hosts(HostStatus.FAULTY),
        "unexamined": hosts(HostStatus.UNEXAMINED),
        "checks": len(report.scopes),
        **report.counts(),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "id": finding.id,
        "check": finding.check,
        "status": finding.status,
        "hosts": finding.hosts,
        "nodeset": finding.nodeset,
        "subject": finding.subject,
        "where": finding.where,
        "view": finding.view,
        "confidence": finding.confidence,
        "summary": finding.summary,
        "expected": finding.expected,
        "actual": finding.actual,
        "evidence": finding.evidence,
        "remedy": finding.remedy,
        "because": finding.because,
    }


def _results(results: Iterable[Result]) -> list[dict[str, Any]]:
    """Results with the same outcome in one row, hosts in the order of the report."""
    rows: dict[tuple[str, str, str | None], dict[str, None]] = {}
    for result in results:
        reason = result.reason or (result.problem.summary if result.problem else None)
        rows.setdefault((result.check, result.status.value, reason), {}).update(dict.fromkeys(result.hosts))
    return [
        {"check": check, "hosts": list(hosts), "status": status, "reason": reason}
        for (check, status, reason), hosts in rows.items()
    ]

"""The report as JSON, schema 1: a contract that scripts depend on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from doctor import __version__
from doctor.job.plan import JobPlan
from doctor.judge.fact_table import facts_of_host
from doctor.judge.verdict import Report
from doctor.model import HostStatus, Result, Sourced
from doctor.report.smoke import smoke_data
from doctor.text.printable import escaped

SCHEMA = 1
FINDING = (
    *("id", "check", "status", "hosts", "nodeset", "subject", "where", "view", "confidence"),
    *("summary", "expected", "actual", "evidence", "remedy", "because"),
)


def as_json(report: Report) -> bytes:
    text = msgspec.json.encode(as_data(report))
    return escaped(msgspec.json.format(text, indent=1).decode()).encode() + b"\n"


def as_data(report: Report) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "tool": {"name": "cluster-doctor", "version": __version__},
        "run": _fields(report.run, ("command", "exam", "started", "seconds", "transport")),
        "plan": _plan(report.plan),
        "verdict": report.verdict.value,
        "summary": _summary(report),
        "hosts": [
            _fields(host, ("name", "address", "product", "status", "reason"))
            | {"facts": facts_of_host(report.facts, host.name)}
            for host in report.hosts
        ],
        "findings": [_fields(finding, FINDING) for finding in report.findings],
        "smoke": smoke_data(report),
        "results": _results(report.results),
    }


def _fields(value: object, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names}


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

"""The section about the run: its options and hosts, and how to repeat it."""

from __future__ import annotations

from typing import Any

from doctor.judge.verdict import Report
from doctor.model import SourcedValue
from doctor.report.html.markup import Html, join, section, tag
from doctor.report.html.times import time_tag
from doctor.report.rerun import repeat
from doctor.text.nodeset import fold

REPLAY = "doctor check --replay RUN.json --html PAGE.html"


def about_section(report: Report) -> Html:
    plan = report.plan
    source = f" ({report.run.hosts_from})" if report.run.hosts_from else ""
    counts = ", ".join(f"{count} {word}" for word, count in report.counts().items() if count)
    job = [
        ("job", f"{plan.ranks} rank{'' if plan.ranks == 1 else 's'}, backend {_sourced(plan.carrier)}"),
        ("head", f"{_sourced(plan.head)}, master port {_sourced(plan.master_port)}"),
        ("launch", plan.launch),
    ]
    version = report.run.exam_version
    rows = [
        ("started", time_tag(report.run.started)),
        ("took", f"{report.run.seconds:.1f} s"),
        ("hosts", f"{fold(plan.names)}{source}, by {report.run.transport}"),
        *([] if plan.of_node else job),
        ("exam", report.run.exam if version is None else f"{report.run.exam}/{version}"),
        ("checks", f"{len(report.checks.scopes)}{counts and f'; results: {counts}'}"),
        ("verdict", f"{report.verdict.value}, exit code {report.exit_code}"),
    ]
    listed = (join((tag("dt", name), tag("dd", said))) for name, said in rows if said)
    return section(
        "run",
        "This run",
        tag("dl", *listed),
        tag("h3", "The same again"),
        tag("pre", repeat(report), tabindex=0),
        tag("h3", "This page from the recording of the run"),
        tag("p", "RUN.json is what --save wrote, or the .run.json beside this page.", class_="soft"),
        tag("pre", REPLAY, tabindex=0),
    )


def _sourced(value: SourcedValue[Any]) -> str:
    return f"{value.value} ({value.source})"

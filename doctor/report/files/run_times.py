"""When a run began and ended, in UTC."""

from __future__ import annotations

from datetime import datetime, timedelta

from doctor.expect import moment
from doctor.judge.verdict import Report
from doctor.report.files.envelope import Envelope


def began(report: Report | Envelope) -> datetime | None:
    return moment(report.run.started)


def started(report: Report) -> str:
    begin = began(report)
    return _shown(begin) if begin else report.run.started


def ended(report: Report) -> str:
    begin = began(report)
    try:
        return _shown(begin + timedelta(seconds=report.run.seconds)) if begin else "?"
    except (OverflowError, ValueError):
        return "?"


def _shown(when: datetime) -> str:
    return f"{when:%Y-%m-%d %H:%M:%S} UTC"

"""The JSON report of any command."""

import json
from functools import cache
from typing import Any

from doctor.diff.envelope import DiffReport
from doctor.hang.envelope import HangReport
from doctor.hang.judge import judge
from doctor.hang.report_json import hang_report
from doctor.history.envelope import HistoryReport
from doctor.judge.verdict import Report
from doctor.live.evidence import LiveEvidence
from doctor.logs.envelope import LogsReport
from doctor.logs.explanation import Explanation
from doctor.logs.report_json import logs_report
from doctor.report.files import envelope, junit, prometheus
from doctor.report.files.envelope import Envelope
from doctor.report.files.json import CheckReport, check_report
from doctor.report.files.schema import schema_of
from doctor.run.envelope import RunReport
from doctor.slow.envelope import SlowReport
from tests.support.schemas import misfits

Made = Report | Explanation | LiveEvidence | Envelope


def envelope_of(made: Made) -> Envelope:
    if isinstance(made, Envelope):
        return made
    if isinstance(made, Report):
        return check_report(made)
    return logs_report(made) if isinstance(made, Explanation) else hang_report(judge(made), made)


def as_json(made: Made) -> bytes:
    return envelope.as_json(envelope_of(made))


def as_data(made: Made) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(as_json(made))
    return data


def as_junit(made: Made) -> bytes:
    return junit.as_junit(envelope_of(made))


def as_prometheus(made: Made) -> bytes:
    return prometheus.as_prometheus(envelope_of(made))


@cache
def schema() -> dict[str, Any]:
    """What `doctor list schema` prints."""
    return schema_of(CheckReport, LogsReport, HangReport, SlowReport, RunReport, DiffReport, HistoryReport)


def wrong(data: dict[str, Any]) -> list[str]:
    """The places where a report does not fit the shipped schema."""
    return list(misfits(data, schema()))

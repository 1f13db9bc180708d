"""The JSON report of `explain` and `logs`: the common envelope and the fields that only logs have."""

from typing import ClassVar

import msgspec
from msgspec import UNSET, UnsetType

from doctor.logs.explanation import ProofState
from doctor.logs.model import Form, LogOutcome, Role
from doctor.report.files.envelope import Envelope, FindingEntry
from doctor.report.files.json import CheckReport


class TimelineEntry(msgspec.Struct, frozen=True):
    """One moment of the job."""

    at: float | None
    says: str


class LineEntry(msgspec.Struct, frozen=True):
    """A line of a log."""

    file: str
    line: int
    text: str
    rank: int | None
    at: float | None


class LogFileEntry(msgspec.Struct, frozen=True):
    """A log that was read."""

    name: str
    bytes: int
    lines: int
    forms: tuple[Form, ...]
    host: str | None
    ranks: tuple[int, ...]
    problem: str | None


class CurveEntry(msgspec.Struct, frozen=True):
    """The losses of one rank in one log."""

    file: str
    rank: int | None
    host: str | None
    steps: tuple[int, ...]
    losses: tuple[float | None, ...]
    total: int


class ProofEntry(msgspec.Struct, frozen=True):
    """What the checks on the hosts show about a cause now."""

    on_hosts: ProofState
    says: str


class LogsOfFinding(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a finding that only logs have."""

    symptom: str | None
    role: Role
    known_by: tuple[str, ...]
    causes: tuple[str, ...]
    checks: tuple[str, ...]
    count: int
    proved: ProofEntry | None


class LogFindingEntry(FindingEntry, frozen=True, kw_only=True):
    """A cause, or a consequence of one (with `because` and the status `warn`)."""

    logs: LogsOfFinding


class LogsPart(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a report that only logs have."""

    outcome: LogOutcome
    read: str
    folder: str | None
    hosts: tuple[str, ...]
    checks: tuple[str, ...]
    commands: tuple[str, ...]
    ranks: tuple[int, ...]
    timeline: tuple[TimelineEntry, ...]
    odd: tuple[LineEntry, ...]
    telling: str | None
    progress: tuple[LineEntry, ...]
    beside: tuple[str, ...]
    ways: tuple[str, ...]
    open: tuple[str, ...]
    unread: tuple[str, ...]
    files: tuple[LogFileEntry, ...]
    curves: tuple[CurveEntry, ...]
    fetched_from: tuple[str, ...]


class LogsReport(Envelope, frozen=True, kw_only=True):
    """`doctor explain` of logs, and `doctor logs`."""

    KEY: ClassVar[str] = "logs"

    findings: tuple[LogFindingEntry, ...]
    logs: LogsPart
    check: CheckReport | UnsetType = UNSET

"""The report of `explain` and `logs` for programs: the envelope of all, and what only logs have."""

from __future__ import annotations

from typing import ClassVar

import msgspec
from msgspec import UNSET, UnsetType

from doctor.logs.explained import Proved
from doctor.logs.model import Form, Outcome, Role
from doctor.report.envelope import Envelope, FindingEntry
from doctor.report.json import CheckReport


class TimelineEntry(msgspec.Struct, frozen=True):
    """One moment of the job."""

    at: float | None
    """When, in seconds since 1970, by the clock of the first host; null if no clock says."""
    says: str
    """What happened."""


class LineEntry(msgspec.Struct, frozen=True):
    """A line of a log."""

    file: str
    """Where it stands."""
    line: int
    """Its number there."""
    text: str
    """The line, without secrets."""
    rank: int | None
    """Who wrote it."""
    at: float | None
    """When, in seconds since 1970, by its own clock."""


class LogFileEntry(msgspec.Struct, frozen=True):
    """A log that was read."""

    name: str
    """Below `folder`."""
    bytes: int
    """Its size."""
    lines: int
    """How many it has."""
    forms: tuple[Form, ...]
    """Who wrote its lines, the commonest first."""
    host: str | None
    """The host that it is of."""
    ranks: tuple[int, ...]
    """The ranks whose lines are in it."""
    problem: str | None
    """Why it was not read to its end."""


class CurveEntry(msgspec.Struct, frozen=True):
    """The losses of one rank in one log."""

    file: str
    """The log."""
    rank: int | None
    """The rank."""
    host: str | None
    """The host."""
    steps: tuple[int, ...]
    """The steps that were kept of a long curve."""
    losses: tuple[float | None, ...]
    """The loss of each; null if it was not a number."""
    total: int
    """How many losses the log has."""


class ProofEntry(msgspec.Struct, frozen=True):
    """What the hosts say of a cause now."""

    on_hosts: Proved
    """What came of it."""
    says: str
    """How that is known."""


class LogsOfFinding(msgspec.Struct, frozen=True, kw_only=True):
    """What only logs say of a finding."""

    symptom: str | None
    """The message that is known; null if it follows from a curve, or from what is not there."""
    role: Role
    """Whether it can be a cause or follows from one."""
    known_by: tuple[str, ...]
    """How it is known, a sentence each."""
    causes: tuple[str, ...]
    """What may have led to it, the likeliest first."""
    checks: tuple[str, ...]
    """Checks that can show it on the hosts, the likeliest first."""
    count: int
    """How often it was said."""
    proved: ProofEntry | None
    """What `--check` made of it; null if nothing was checked."""


class LogFindingEntry(FindingEntry, frozen=True, kw_only=True):
    """A cause, or what followed from one (`because`, with the status `warn`)."""

    logs: LogsOfFinding
    """What only logs say of it."""


class LogsPart(msgspec.Struct, frozen=True, kw_only=True):
    """What only logs have."""

    outcome: Outcome
    """`named`: a cause is named; `clean`: nothing complains; `unknown`: neither."""
    read: str
    """What was read, in a sentence."""
    folder: str | None
    """The folder of all files, if they have one in common."""
    hosts: tuple[str, ...]
    """The hosts that the checks are to be made on."""
    checks: tuple[str, ...]
    """The checks that can prove it."""
    commands: tuple[str, ...]
    """What to type to make them."""
    ranks: tuple[int, ...]
    """The ranks whose logs were read."""
    timeline: tuple[TimelineEntry, ...]
    """What happened, in order."""
    odd: tuple[LineEntry, ...]
    """The first lines that complain and that nobody knows."""
    progress: tuple[LineEntry, ...]
    """How far each rank was."""
    beside: tuple[str, ...]
    """What became of earlier attempts and of other jobs."""
    open: tuple[str, ...]
    """What could not be told, and what would tell it."""
    unread: tuple[str, ...]
    """What was not read, or not to its end, and why."""
    files: tuple[LogFileEntry, ...]
    """What was read."""
    curves: tuple[CurveEntry, ...]
    """Losses."""
    fetched_from: tuple[str, ...]
    """The hosts that logs were fetched from."""


class LogsReport(Envelope, frozen=True, kw_only=True):
    """`doctor explain` of logs, and `doctor logs`."""

    KEY: ClassVar[str] = "logs"

    findings: tuple[LogFindingEntry, ...]
    """Causes first, then what followed from them."""
    logs: LogsPart
    """What only logs have."""
    check: CheckReport | UnsetType = UNSET
    """The report of the checks that `--check` made; it is there only if they were made."""

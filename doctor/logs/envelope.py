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
    """When, in seconds since 1970, by the clock of the first host; null if unknown."""
    says: str
    """What happened."""


class LineEntry(msgspec.Struct, frozen=True):
    """A line of a log."""

    file: str
    """The file that the line is in."""
    line: int
    """Its line number."""
    text: str
    """The line, without secrets."""
    rank: int | None
    """The rank that wrote it."""
    at: float | None
    """When it was written, in seconds since 1970 by its own clock; null if unknown."""


class LogFileEntry(msgspec.Struct, frozen=True):
    """A log that was read."""

    name: str
    """Its path, relative to `folder`."""
    bytes: int
    """Its size."""
    lines: int
    """How many lines it has."""
    forms: tuple[Form, ...]
    """The programs that wrote its lines, the most frequent first."""
    host: str | None
    """The host that it comes from."""
    ranks: tuple[int, ...]
    """The ranks that wrote in it."""
    problem: str | None
    """Why it was not read to its end; null if it was."""


class CurveEntry(msgspec.Struct, frozen=True):
    """The losses of one rank in one log."""

    file: str
    """The log."""
    rank: int | None
    """The rank."""
    host: str | None
    """The host."""
    steps: tuple[int, ...]
    """The steps of the losses; a long curve is thinned."""
    losses: tuple[float | None, ...]
    """The loss at each step; null if it was not a number."""
    total: int
    """How many losses the log has."""


class ProofEntry(msgspec.Struct, frozen=True):
    """What the checks on the hosts show about a cause now."""

    on_hosts: ProofState
    """The result."""
    says: str
    """The reason, as a clause."""


class LogsOfFinding(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a finding that only logs have."""

    symptom: str | None
    """The id of the symptom; null if the finding follows from a curve, or from something that is missing."""
    role: Role
    """Whether it can be a cause or follows from one."""
    known_by: tuple[str, ...]
    """How it is known, one sentence each."""
    causes: tuple[str, ...]
    """Possible causes, the likeliest first."""
    checks: tuple[str, ...]
    """Checks that can show it on the hosts, the likeliest first."""
    count: int
    """How many lines say so."""
    proved: ProofEntry | None
    """The result of `--check`; null if nothing was checked."""


class LogFindingEntry(FindingEntry, frozen=True, kw_only=True):
    """A cause, or a consequence of one (with `because` and the status `warn`)."""

    logs: LogsOfFinding
    """The fields that only logs have."""


class LogsPart(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a report that only logs have."""

    outcome: LogOutcome
    """`named`: a cause is named; `clean`: the logs hold no complaint; `unknown`: neither, or only victims."""
    read: str
    """What was read, in one line."""
    folder: str | None
    """The folder that all files share; null if there is none."""
    hosts: tuple[str, ...]
    """The hosts to run the checks on."""
    checks: tuple[str, ...]
    """The checks that can prove it."""
    commands: tuple[str, ...]
    """The commands that run these checks."""
    ranks: tuple[int, ...]
    """The ranks whose logs were read."""
    timeline: tuple[TimelineEntry, ...]
    """What happened, in order."""
    odd: tuple[LineEntry, ...]
    """Lines that complain and match no symptom, the most telling first."""
    telling: str | None
    """What is special about the first of them, such as "it is an exception"."""
    progress: tuple[LineEntry, ...]
    """The last line of each rank that shows its step."""
    beside: tuple[str, ...]
    """How earlier attempts and other jobs ended."""
    open: tuple[str, ...]
    """What the logs could not show, and what would show it."""
    unread: tuple[str, ...]
    """What was not read, or not to its end, and why."""
    files: tuple[LogFileEntry, ...]
    """The logs that were read."""
    curves: tuple[CurveEntry, ...]
    """The loss curves."""
    fetched_from: tuple[str, ...]
    """The hosts that logs were fetched from."""


class LogsReport(Envelope, frozen=True, kw_only=True):
    """`doctor explain` of logs, and `doctor logs`."""

    KEY: ClassVar[str] = "logs"

    findings: tuple[LogFindingEntry, ...]
    """Causes first, then their consequences."""
    logs: LogsPart
    """The fields that only logs have."""
    check: CheckReport | UnsetType = UNSET
    """The report of the checks that `--check` ran; absent if none were run."""

"""The JSON report of `hang`: the envelope of all commands, and the fields that only `hang` has."""

from typing import ClassVar

import msgspec
from msgspec import UNSET, UnsetType

from doctor.hang.judge.judgement import HangConfidence, HangState
from doctor.live.libraries.opinions import OpinionKind, Source, Trust
from doctor.report.files.envelope import Envelope, FindingEntry
from doctor.report.files.json import CheckReport


class FrameEntry(msgspec.Struct, frozen=True):
    """A frame of a Python stack."""

    function: str
    file: str
    line: int
    source: str | None


class HangOfFinding(msgspec.Struct, frozen=True):
    """The fields of a finding that only `hang` has."""

    job: str
    place: str | None
    stack: tuple[FrameEntry, ...]


class HangFindingEntry(FindingEntry, frozen=True, kw_only=True):
    """A rank that others wait for: a culprit has the status `fail`, a suspect has `unknown`. After them come
    the findings of the checks that `--check` ran."""

    hang: HangOfFinding | None = None


class GoneRank(msgspec.Struct, frozen=True):
    """A rank whose process no longer exists."""

    rank: int
    host: str


class HangJobEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Processes that belong together."""

    name: str
    launcher: str | None
    ranks: int
    found: int
    missing: tuple[int, ...]
    gone: tuple[GoneRank, ...]
    hosts: tuple[str, ...]
    started: float | None
    master: str | None
    user: str | None
    command: str | None
    pids: tuple[int, ...]
    state: HangState | None = None
    headline: str | None = None


class WaitingRanks(msgspec.Struct, frozen=True):
    """Ranks that wait at the same place."""

    ranks: tuple[int, ...]
    number: int
    operation: str | None
    place: str | None
    function: str | None
    at_device: bool


class ChainLink(msgspec.Struct, frozen=True):
    """A rank that waits for another rank."""

    rank: int
    waits_for: int
    operation: str
    place: str


class HangRankEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What a rank is doing."""

    rank: int | None
    host: str
    pid: int
    state: str | None
    in_collective: bool | None
    known_by: str | None
    operation: str | None
    place: str | None
    step: int | None
    since_seconds: float | None
    does: str | None


class UnreachedEntry(msgspec.Struct, frozen=True):
    """A host that did not answer."""

    host: str
    reason: str


class RightsEntry(msgspec.Struct, frozen=True):
    """How much could be seen."""

    level: str
    stacks: bool
    connections: bool
    unread: tuple[str, ...]
    more: tuple[str, ...]


class LibraryEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What a library or a device tool reports. It never decides alone."""

    source: Source
    trust: Trust
    kind: OpinionKind
    says: str
    ranks: tuple[int, ...]
    confirms: bool
    against: tuple[str, ...]
    evidence: tuple[str, ...]


class HangPart(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that only `hang` has."""

    state: HangState
    confidence: HangConfidence
    standing_still_seconds: float | None
    standing_still_at_least: bool
    limit_seconds: float
    job: HangJobEntry | None
    jobs: tuple[HangJobEntry, ...]
    waiting: tuple[WaitingRanks, ...]
    chain: tuple[ChainLink, ...]
    ranks: tuple[HangRankEntry, ...]
    straggler: None = None
    unreached: tuple[UnreachedEntry, ...]
    rights: RightsEntry | None
    libraries: tuple[LibraryEntry, ...]
    notes: tuple[str, ...]
    do: tuple[str, ...]
    commands: tuple[str, ...]
    next_time: tuple[str, ...]


class HangReport(Envelope, frozen=True, kw_only=True):
    """`doctor hang`."""

    KEY: ClassVar[str] = "hang"

    findings: tuple[HangFindingEntry, ...]
    hang: HangPart
    check: CheckReport | UnsetType = UNSET

"""The report of `hang` for programs: the envelope of all, and what only `hang` has."""

from __future__ import annotations

from typing import ClassVar

import msgspec
from msgspec import UNSET, UnsetType

from doctor.hang.judge.judgement import Confidence, Verdict
from doctor.hang.opinions import Kind, Source, Trust
from doctor.report.envelope import Envelope, FindingEntry
from doctor.report.json import CheckReport


class FrameEntry(msgspec.Struct, frozen=True):
    """A frame of a Python stack."""

    function: str
    """Its name."""
    file: str
    """Its file."""
    line: int
    """The line in it."""
    source: str | None
    """The text of that line; null if the host could not read it."""


class HangOfFinding(msgspec.Struct, frozen=True):
    """What only `hang` says of a culprit or suspect."""

    job: str
    """The `name` of its job."""
    place: str | None
    """Where it is: `train.py:57`."""
    stack: tuple[FrameEntry, ...]
    """Its Python stack, the innermost frame first."""


class HangFindingEntry(FindingEntry, frozen=True, kw_only=True):
    """A rank that others wait for: a culprit has the status `fail`, a suspect `unknown`."""

    hang: HangOfFinding
    """What only `hang` says of it."""


class GoneRank(msgspec.Struct, frozen=True):
    """A rank that is no longer there."""

    rank: int
    """Its number."""
    host: str
    """Where it was, and whose processes were listed."""


class HangJobEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Processes that belong together."""

    name: str
    """Equal for all its ranks."""
    launcher: str | None
    """`torchrun`, `mpirun`, `srun` and so on; null if it is not known."""
    ranks: int
    """How many it should have."""
    found: int
    """How many were found."""
    missing: tuple[int, ...]
    """Those that were not."""
    gone: tuple[GoneRank, ...]
    """Those of them whose host answered."""
    hosts: tuple[str, ...]
    """Where it runs."""
    started: float | None
    """When, in seconds since 1970, by the clock of one of its hosts."""
    master: str | None
    """Where its ranks meet: ADDRESS:PORT."""
    user: str | None
    """Who runs it."""
    command: str | None
    """What was typed, without secrets."""
    pids: tuple[int, ...]
    """The processes of its ranks."""
    state: Verdict | None = None
    """What is so of it; null if it was not judged, or if it is the only one."""
    headline: str | None = None
    """The same in a sentence."""


class WaitingRanks(msgspec.Struct, frozen=True):
    """Ranks that wait at the same place."""

    ranks: tuple[int, ...]
    """Their numbers."""
    number: int
    """How many they are, with those whose number is not known."""
    operation: str | None
    """What they wait in: `all_reduce`."""
    place: str | None
    """Where: `train.py:88`."""
    function: str | None
    """In which function."""
    at_device: bool
    """Whether they wait for their device there; the collective may then be an earlier line."""


class ChainLink(msgspec.Struct, frozen=True):
    """One rank that waits for another."""

    rank: int
    """Who waits."""
    waits_for: int
    """For whom."""
    operation: str
    """In what."""
    place: str
    """Where."""


class HangRankEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Where a rank stands."""

    rank: int | None
    """Its number; null if it is not known."""
    host: str
    """Its host."""
    pid: int
    """Its process."""
    state: str | None
    """That of the process, as in /proc: `S`, `R`, `D`, `T`; empty if it is gone."""
    in_collective: bool | None
    """Whether it is inside a collective; null if nothing shows it."""
    known_by: str | None
    """What showed it: `stack`, `threads`."""
    operation: str | None
    """The collective."""
    place: str | None
    """Where: `train.py:88`."""
    step: int | None
    """The training step, if its stack shows it."""
    does: str | None
    """What it does outside a collective."""


class StragglerEntry(msgspec.Struct, frozen=True):
    """The rank that others waited for in most of many looks; it is not a culprit."""

    rank: int | None
    """Its number."""
    host: str
    """Its host."""
    pid: int
    """Its process."""
    outside: int
    """In how many looks it was outside while others were inside."""
    looks: int
    """Of how many."""


class UnreachedEntry(msgspec.Struct, frozen=True):
    """A host that did not answer."""

    host: str
    """The host."""
    reason: str
    """Why."""


class RightsEntry(msgspec.Struct, frozen=True):
    """How much could be seen."""

    level: str
    """`root`, `the job's own user` or `another user`; empty if nothing was seen."""
    stacks: bool
    """Whether Python stacks were."""
    connections: bool
    """Whether connections were."""
    unread: tuple[str, ...]
    """What could not be looked at, and why."""
    more: tuple[str, ...]
    """What would show more."""


class LibraryEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What a library or a device tool says. It never decides alone."""

    source: Source
    """Who says it."""
    trust: Trust
    """`strong`, or `vote`: a hint only."""
    kind: Kind
    """What it says, in a word."""
    says: str
    """What it says, in a sentence."""
    ranks: tuple[int, ...]
    """Whom it names."""
    confirms: bool
    """Whether it confirms what the processes show."""
    against: tuple[str, ...]
    """What it contradicts."""
    evidence: tuple[str, ...]
    """What it is read from."""


class HangPart(msgspec.Struct, frozen=True, kw_only=True):
    """What only `hang` has."""

    state: Verdict
    """`hang`, `moves`, `waits` (it may be normal), `unknown`, `no job` or `several jobs`."""
    confidence: Confidence
    """How sure the culprits are; `undecided` without any."""
    standing_still_seconds: float | None
    """Since when nothing moved; null if nothing shows it."""
    standing_still_at_least: bool
    """Whether it may be longer: nothing shows what was before the first look."""
    limit_seconds: float
    """`--limit`."""
    job: HangJobEntry | None
    """The job that was judged; null if there is none, or several."""
    jobs: tuple[HangJobEntry, ...]
    """All jobs that were asked for."""
    waiting: tuple[WaitingRanks, ...]
    """Who waits where."""
    chain: tuple[ChainLink, ...]
    """Who waits for whom."""
    ranks: tuple[HangRankEntry, ...]
    """Each rank."""
    straggler: StragglerEntry | None
    """Of `--watch`."""
    unreached: tuple[UnreachedEntry, ...]
    """Hosts that did not answer."""
    rights: RightsEntry | None
    """How much could be seen; null without a job."""
    libraries: tuple[LibraryEntry, ...]
    """What libraries and device tools say."""
    notes: tuple[str, ...]
    """What else is to be known."""
    do: tuple[str, ...]
    """What to do, in words."""
    commands: tuple[str, ...]
    """What to type."""
    next_time: tuple[str, ...]
    """What would show more the next time."""


class HangReport(Envelope, frozen=True, kw_only=True):
    """`doctor hang`."""

    KEY: ClassVar[str] = "hang"

    findings: tuple[HangFindingEntry, ...]
    """The ranks that others wait for."""
    hang: HangPart
    """What only `hang` has."""
    check: CheckReport | UnsetType = UNSET
    """The report of the checks that `--check` made; it is there only if they were made."""

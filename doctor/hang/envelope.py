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
    """The function's name."""
    file: str
    """The file that contains it."""
    line: int
    """The line in the file."""
    source: str | None
    """The text of that line; null if the host could not read it."""


class HangOfFinding(msgspec.Struct, frozen=True):
    """The fields of a finding that only `hang` has."""

    job: str
    """The `name` of its job."""
    place: str | None
    """Where it is: `train.py:57`."""
    stack: tuple[FrameEntry, ...]
    """Its Python stack, with the innermost frame first."""


class HangFindingEntry(FindingEntry, frozen=True, kw_only=True):
    """A rank that others wait for: a culprit has the status `fail`, a suspect has `unknown`. After them come
    the findings of the checks that `--check` ran."""

    hang: HangOfFinding | None = None
    """The fields that only `hang` has; null for a finding of a check."""


class GoneRank(msgspec.Struct, frozen=True):
    """A rank whose process no longer exists."""

    rank: int
    """Its number."""
    host: str
    """The host where it was, which answered."""


class HangJobEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Processes that belong together."""

    name: str
    """The name that all its ranks share."""
    launcher: str | None
    """`torchrun`, `mpirun`, `srun` and so on; null if unknown."""
    ranks: int
    """How many ranks it should have."""
    found: int
    """How many ranks were found."""
    missing: tuple[int, ...]
    """The ranks that were not found."""
    gone: tuple[GoneRank, ...]
    """The missing ranks whose host answered."""
    hosts: tuple[str, ...]
    """The hosts where it runs."""
    started: float | None
    """Its start in seconds since 1970, by the clock of one of its hosts."""
    master: str | None
    """The rendezvous of its ranks: ADDRESS:PORT."""
    user: str | None
    """The user who runs it."""
    command: str | None
    """The command line of its first rank, without secrets."""
    pids: tuple[int, ...]
    """The PIDs of its ranks."""
    state: HangState | None = None
    """Its state; null if it was not judged, or if it is the only job."""
    headline: str | None = None
    """Its state in a sentence."""


class WaitingRanks(msgspec.Struct, frozen=True):
    """Ranks that wait at the same place."""

    ranks: tuple[int, ...]
    """The ranks whose number is known."""
    number: int
    """How many ranks wait, including those whose number is unknown."""
    operation: str | None
    """The operation that they wait in: `all_reduce`."""
    place: str | None
    """The line that they wait at: `train.py:88`."""
    function: str | None
    """The function that they wait in."""
    at_device: bool
    """Whether they wait for their device there. The collective may then be on an earlier line."""


class ChainLink(msgspec.Struct, frozen=True):
    """A rank that waits for another rank."""

    rank: int
    """The rank that waits."""
    waits_for: int
    """The rank that it waits for."""
    operation: str
    """The operation that it waits in."""
    place: str
    """The line that it waits at."""


class HangRankEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What a rank is doing."""

    rank: int | None
    """Its number; null if unknown."""
    host: str
    """Its host."""
    pid: int
    """Its PID."""
    state: str | None
    """The state of the process, as in /proc: `S`, `R`, `D`, `T`; empty if it is gone."""
    in_collective: bool | None
    """Whether it is inside a collective; null if unknown."""
    known_by: str | None
    """What shows whether it is inside: `stack` or `threads`."""
    operation: str | None
    """The collective that it is in."""
    place: str | None
    """The line that it is at: `train.py:88`."""
    step: int | None
    """The training step, if its stack shows one."""
    since_seconds: float | None
    """Seconds since it exchanged anything with another rank; null if unknown."""
    does: str | None
    """What it does outside collectives."""


class UnreachedEntry(msgspec.Struct, frozen=True):
    """A host that did not answer."""

    host: str
    """The host."""
    reason: str
    """Why it did not answer."""


class RightsEntry(msgspec.Struct, frozen=True):
    """How much could be seen."""

    level: str
    """`root`, `the job's own user` or `another user`; empty if nothing was seen."""
    stacks: bool
    """Whether Python stacks were seen."""
    connections: bool
    """Whether connections were seen."""
    unread: tuple[str, ...]
    """What could not be read, and why."""
    more: tuple[str, ...]
    """How to see more."""


class LibraryEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What a library or a device tool reports. It never decides alone."""

    source: Source
    """The library or tool."""
    trust: Trust
    """`strong`, or `vote` if it is only a hint."""
    kind: OpinionKind
    """What it reports, in a word."""
    says: str
    """What it reports, in a sentence."""
    ranks: tuple[int, ...]
    """The ranks that it names."""
    confirms: bool
    """Whether it confirms what the processes show."""
    against: tuple[str, ...]
    """How it contradicts the processes or another library."""
    evidence: tuple[str, ...]
    """The data behind it."""


class HangPart(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that only `hang` has."""

    state: HangState
    """`hang`, `moves`, `waits` (it may be normal), `unknown`, `no job` or `several jobs`."""
    confidence: HangConfidence
    """How certain the culprits are; `undecided` if there are none."""
    standing_still_seconds: float | None
    """For how long nothing has moved; null if unknown."""
    standing_still_at_least: bool
    """Whether it may be longer, since nothing shows what happened before the first look."""
    limit_seconds: float
    """`--limit`, or twice the time that a step takes if that is known and longer."""
    job: HangJobEntry | None
    """The job that was judged; null if there was no job or more than one."""
    jobs: tuple[HangJobEntry, ...]
    """The jobs that the options chose, or all jobs."""
    waiting: tuple[WaitingRanks, ...]
    """The ranks that wait in a collective, by place."""
    chain: tuple[ChainLink, ...]
    """Which rank waits for which."""
    ranks: tuple[HangRankEntry, ...]
    """All ranks of the job."""
    straggler: None = None
    """Always null: `doctor slow` names the rank that is late."""
    unreached: tuple[UnreachedEntry, ...]
    """Hosts that did not answer."""
    rights: RightsEntry | None
    """How much could be seen; null without a job."""
    libraries: tuple[LibraryEntry, ...]
    """What libraries and device tools report."""
    notes: tuple[str, ...]
    """Further remarks."""
    do: tuple[str, ...]
    """What to do, in words."""
    commands: tuple[str, ...]
    """The commands to type."""
    next_time: tuple[str, ...]
    """Settings that show more next time."""


class HangReport(Envelope, frozen=True, kw_only=True):
    """`doctor hang`."""

    KEY: ClassVar[str] = "hang"

    findings: tuple[HangFindingEntry, ...]
    """The ranks that others wait for, then what the checks of `--check` found."""
    hang: HangPart
    """The fields that only `hang` has."""
    check: CheckReport | UnsetType = UNSET
    """The report of the checks that `--check` ran; absent if none were run."""

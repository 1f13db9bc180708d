"""The JSON report of `slow`: the envelope of all commands, and the fields that only `slow` has."""

from typing import ClassVar

import msgspec

from doctor.hang.envelope import FrameEntry, HangJobEntry, RightsEntry, UnreachedEntry
from doctor.hang.judge.judgement import HangState
from doctor.report.files.envelope import Envelope, FindingEntry
from doctor.slow.judge.judgement import Lag, LateReason, SlowState


class SlowOfFinding(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a finding that only `slow` has."""

    lag: Lag
    """`late`, `slowest stage`, `pauses`, `waits for a processor`, `slow device`, `slow link` or `lossy
    link`."""
    ranks: tuple[int, ...]
    """The ranks that are late; empty for a link."""
    share: float
    """The share of the time that the others wait for it; for a link, that it has data to send."""
    share_least: float
    """The least that `share` may be: on crowded hosts ranks are late by chance, too. 0 if unknown."""
    waits: float | None
    """The share of the time that it waits itself."""
    others: tuple[float, float] | None
    """The smallest and the largest share of the time that the others wait."""
    t: float | None
    """How far the difference stands out of its own noise."""
    line: FrameEntry | None
    """The line at which it is more often than the others."""
    line_share: float | None
    """In what share of the samples it is in that function."""
    line_others: float | None
    """In what share of the samples the others are there."""
    reason: LateReason | None
    """Why it is late, as words that do not change."""
    why: tuple[str, ...]
    """The same in sentences."""
    peers: tuple[str, ...]
    """For a link: the hosts at its other ends."""


class SlowFindingEntry(FindingEntry, frozen=True, kw_only=True):
    """Whom the others wait for. Its status is `warn`: late is not guilty."""

    slow: SlowOfFinding
    """The fields that only `slow` has."""


class DeviceEntry(msgspec.Struct, frozen=True, kw_only=True):
    """How fast the device of a rank ran; null where its tool says nothing."""

    name: str
    """What it is, and its number as the tool counts."""
    mhz: int | None
    """Its clock, the median of all readings."""
    most_mhz: int | None
    """The highest clock that it can have."""
    watts: int | None
    """What it draws."""
    celsius: int | None
    """How hot it was."""
    reasons: tuple[str, ...]
    """What holds its clock down."""


class PaceEntry(msgspec.Struct, frozen=True, kw_only=True):
    """How a rank takes part."""

    rank: int | None
    """Its number; null if unknown."""
    host: str
    """Its host."""
    pid: int
    """Its PID."""
    waits: float | None
    """The share of the samples in which it waited in a collective; null if unknown."""
    place: str | None
    """The line at which it is most often outside collectives."""
    device: DeviceEntry | None
    """Its device; null if it has none, or its tool does not show whose it is."""


class SlowPart(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that only `slow` has."""

    state: SlowState
    """`late`, `link`, `nobody`, `stands still`, `unknown`, `no job` or `several jobs`."""
    hang: HangState
    """What `doctor hang` says of the looks before and after the samples."""
    job: HangJobEntry | None
    """The job that was judged; null if there was no job or more than one."""
    jobs: tuple[HangJobEntry, ...]
    """The jobs that the options chose, or all jobs."""
    sampled_seconds: float
    """For how long samples were taken."""
    samples: int
    """How many samples of each rank count."""
    known_by: str | None
    """What shows when a rank waits: `threads`, `stacks` or `sockets`."""
    steps: int | None
    """How many steps were made meanwhile; null if the stacks do not show it."""
    step_seconds: float | None
    """How long a step takes."""
    smallest: float | None
    """The smallest share of the time, lost by one rank, that would have been named; null if nothing can be
    excluded."""
    maybe: str | None
    """Who waits least, if that may be chance."""
    ranks: tuple[PaceEntry, ...]
    """All ranks of the job."""
    unreached: tuple[UnreachedEntry, ...]
    """Hosts that did not answer."""
    rights: RightsEntry | None
    """How much could be seen; null without a job."""
    notes: tuple[str, ...]
    """Further remarks."""
    commands: tuple[str, ...]
    """The commands to type."""


class SlowReport(Envelope, frozen=True, kw_only=True):
    """`doctor slow`."""

    KEY: ClassVar[str] = "slow"

    findings: tuple[SlowFindingEntry, ...]
    """The ranks or links that the others wait for."""
    slow: SlowPart
    """The fields that only `slow` has."""

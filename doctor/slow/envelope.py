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
    ranks: tuple[int, ...]
    share: float
    share_least: float
    waits: float | None
    others: tuple[float, float] | None
    t: float | None
    line: FrameEntry | None
    line_share: float | None
    line_others: float | None
    reason: LateReason | None
    why: tuple[str, ...]
    peers: tuple[str, ...]


class SlowFindingEntry(FindingEntry, frozen=True, kw_only=True):
    """Whom the others wait for. Its status is `warn`: late is not guilty."""

    slow: SlowOfFinding


class DeviceEntry(msgspec.Struct, frozen=True, kw_only=True):
    """How fast the device of a rank ran; null where its tool says nothing."""

    name: str
    mhz: int | None
    most_mhz: int | None
    watts: int | None
    celsius: int | None
    reasons: tuple[str, ...]


class PaceEntry(msgspec.Struct, frozen=True, kw_only=True):
    """How a rank takes part."""

    rank: int | None
    host: str
    pid: int
    waits: float | None
    place: str | None
    device: DeviceEntry | None


class SlowPart(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that only `slow` has."""

    state: SlowState
    hang: HangState
    job: HangJobEntry | None
    jobs: tuple[HangJobEntry, ...]
    sampled_seconds: float
    samples: int
    known_by: str | None
    steps: int | None
    step_seconds: float | None
    smallest: float | None
    maybe: str | None
    ranks: tuple[PaceEntry, ...]
    unreached: tuple[UnreachedEntry, ...]
    rights: RightsEntry | None
    notes: tuple[str, ...]
    commands: tuple[str, ...]


class SlowReport(Envelope, frozen=True, kw_only=True):
    """`doctor slow`."""

    KEY: ClassVar[str] = "slow"

    findings: tuple[SlowFindingEntry, ...]
    slow: SlowPart

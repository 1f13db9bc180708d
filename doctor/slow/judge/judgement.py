"""What is known about a moving job after its samples are judged. Types only; no text for a terminal."""

from dataclasses import dataclass
from enum import Enum

from doctor.errors import EXIT_FAULT, EXIT_INCONCLUSIVE, EXIT_OK
from doctor.hang.judge.judgement import Judgement
from doctor.live.evidence import Frame
from doctor.live.jobs.job import RunningJob
from doctor.live.wires import Key


class SlowState(str, Enum):
    LATE = "late"
    """Others wait for a rank, or for the ranks of a host."""
    LINK = "link"
    """Others wait for a connection."""
    EVEN = "nobody"
    """Nobody is late, as far as can be seen."""
    STANDS = "stands still"
    UNKNOWN = "unknown"
    NO_JOB = "no job"
    SEVERAL = "several jobs"


class Lag(str, Enum):
    """How somebody is late."""

    LATE = "late"
    STAGE = "slowest stage"
    """Of a pipeline: it may be so by design."""
    PAUSES = "pauses"
    STARVED = "waits for a processor"
    DEVICE = "slow device"
    SLOW_LINK = "slow link"
    LOSSY_LINK = "lossy link"


class LateReason(str, Enum):
    """Why it is late."""

    LOADER = "data loader"
    READS = "reads"
    WRITES = "writes"
    GC = "garbage collection"
    CHECKPOINT = "checkpoint"
    EVALUATION = "evaluation"
    COMPUTES = "computes"
    UNEVEN = "takes longer at the same line"
    ELSEWHERE = "is at a line of its own"
    QUOTA = "CPU quota"
    STOPPED = "is stopped"
    HOGS = "other processes"
    NICE = "nice"
    GIL = "GIL"
    EVERYTHING = "everything takes longer"
    CLOCK = "clock of its device"


@dataclass(frozen=True, slots=True)
class Where:
    """The line at which somebody is more often than the others."""

    frame: Frame
    share: float
    others: float


@dataclass(frozen=True, slots=True)
class SlowCulprit:
    """Whom the others wait for: one rank, several, or the end of a connection."""

    lag: Lag
    host: str
    """The host, or the first of them."""
    hosts: tuple[str, ...]
    ranks: tuple[int, ...] = ()
    pid: int | None = None
    sentence: str = ""
    """Without its name: "the others wait for it 41 % of the time, 55 ms a step"."""
    share: float = 0.0
    """The share of the time that the others wait for it."""
    least: float = 0.0
    """The least that it may be, if what it waits longer for a processor is chance."""
    saves: float = 0.0
    """The share of the time that its repair alone saves: without it the others wait for the next. 0 for one
    that is late behind another, and if unknown.
    """
    waits: float | None = None
    others: tuple[float, float] | None = None
    """The smallest and the largest share that the others wait."""
    t: float | None = None
    agree: tuple[int, int] | None = None
    where: Where | None = None
    reason: LateReason | None = None
    why: tuple[str, ...] = ()
    whole_host: bool = False
    peers: tuple[str, ...] = ()
    """The other ends of a link."""
    doubted: bool = False
    """Whether its host may only wait for its device."""

    @property
    def is_link(self) -> bool:
        return self.lag in (Lag.SLOW_LINK, Lag.LOSSY_LINK)

    @property
    def certain(self) -> bool:
        """Whether it is more than a suspicion."""
        return self.lag not in (Lag.STARVED, Lag.DEVICE) and not self.doubted


@dataclass(frozen=True, slots=True)
class DeviceShare:
    """How fast the device of a rank ran, by all readings; None if its tool does not say it."""

    name: str
    mhz: int | None
    fastest: int | None
    most_mhz: int | None
    """The highest clock that it can have."""
    watts: int | None
    celsius: int | None
    reasons: tuple[str, ...]
    """What holds its clock down."""
    works: bool
    """Whether it had work in every reading, so that its clock says something."""


@dataclass(frozen=True, slots=True)
class RankShare:
    rank: int | None
    key: Key
    waits: float | None
    """The share of the samples in which it waited; None if unknown."""
    place: str = ""
    """The line at which it is most often outside."""
    device: DeviceShare | None = None


@dataclass(frozen=True, slots=True)
class SlowJudgement:
    state: SlowState
    started: str
    sentence: str
    hang: Judgement
    """What `doctor hang` says of the looks before and after the samples."""
    job: RunningJob | None = None
    jobs: tuple[RunningJob, ...] = ()
    late: tuple[SlowCulprit, ...] = ()
    seconds: float = 0.0
    samples: int = 0
    by: str = ""
    steps: int | None = None
    step_seconds: float | None = None
    """How long a step takes."""
    ranks: tuple[RankShare, ...] = ()
    smallest: float | None = None
    """The smallest share of the time that would have been seen; None if nothing can be excluded."""
    maybe: str = ""
    """Who may be late, if that is not certain."""
    notes: tuple[str, ...] = ()
    more: bool = False
    """Whether looking on may show more."""
    few: bool = False
    """Whether there were too few steps or samples to say anything."""

    @property
    def exit_code(self) -> int:
        if self.late:
            return EXIT_FAULT
        return EXIT_OK if self.state is SlowState.EVEN else EXIT_INCONCLUSIVE

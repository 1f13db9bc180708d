"""What is known about a job after its evidence is judged. Types only; no text for a terminal."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from doctor.errors import EXIT_FAULT, EXIT_INCONCLUSIVE, EXIT_OK
from doctor.live.evidence import Frame, JobMember
from doctor.live.jobs.job import RunningJob
from doctor.live.libraries.opinions import Opinion
from doctor.live.reach import Reach


class HangState(str, Enum):
    HANG = "hang"
    """It has stood still for longer than the limit."""
    MOVES = "moves"
    WAITS = "waits"
    """It waits for less than the limit, or for work that continues: it may be normal."""
    UNKNOWN = "unknown"
    NO_JOB = "no job"
    SEVERAL = "several jobs"


class HangConfidence(str, Enum):
    CERTAIN = "certain"
    STRONG = "strong"
    SUSPECT = "suspect"
    UNDECIDED = "undecided"


class Cause(str, Enum):
    """Why a rank keeps others waiting."""

    ENDED = "ended"
    GONE = "gone"
    STOPPED = "stopped"
    TRACED = "traced"
    FROZEN = "frozen"
    """By a control group, as with a container that is paused."""
    KERNEL = "stuck in the kernel"
    LINK = "connection lost"
    SLEEPS = "sleeps"
    COMPUTES = "computes"
    LOCK = "waits for a lock"
    QUEUE = "waits for a queue"
    AWAITS = "awaits in asyncio"
    GIL = "holds the GIL"
    PIPE = "waits for a pipe"
    STORAGE = "waits for storage"
    LOADER = "waits for its data loader"
    CHILD = "waits for a child process"
    FORK = "waits for a lock held over a fork"
    LEFT = "has left and cannot exit"
    INPUT = "waits for input"
    TYPES = "waits for somebody to type"
    TERMINAL = "waits for its terminal"
    WRITES = "moves data"
    IMPORTS = "imports"
    COMPILES = "compiles"
    ELSEWHERE = "is outside every collective"
    MISMATCH = "is in another collective"
    LAST = "is the last that others wait for"
    BEHIND = "is behind, as a library counts"
    ABSENT = "was not started"
    ADDRESS = "calls another address"
    NAME = "cannot resolve a name"
    NUMBER = "has another host's number"
    CONNECTS = "cannot connect"


@dataclass(frozen=True, slots=True)
class HeldLock:
    """A lock on a file that keeps a process waiting."""

    path: str
    holder: int | None
    """The PID of the process that holds it; None if none was found."""
    by_rank: bool = False
    """A rank of the job holds it."""


@dataclass(frozen=True, slots=True)
class Activity:
    """What a process outside collectives is doing."""

    cause: Cause
    words: str
    """ "sleeps", "waits for its data loader, whose worker (pid 812) opens a pipe that nobody writes to" """
    works: bool = False
    """It makes progress: it moved data or finished a step."""
    unproved: bool = False
    """It may be work, such as a long computation, or a wait for an answer that is due: either may end."""
    polls: bool = False
    """It waits for what another process may hold or make: a lock on a file, or something it polls for."""
    certain: bool = False
    """No other behaviour looks like it."""
    place: str = ""
    """The worker's line, if a worker keeps the rank waiting."""
    frames: tuple[Frame, ...] = ()
    held: HeldLock | None = None
    pid: int | None = None
    """The worker or child that keeps the rank waiting."""
    do: str = ""
    """What to do, if the cause does not say it; {who} and {place} stand for the rank and its line."""


@dataclass(frozen=True, slots=True)
class RankStanding:
    """Where a rank stands, and what it is doing if it is outside collectives."""

    member: JobMember
    inside: bool | None
    """Whether it is in a collective; None if unknown."""
    by: str = ""
    """What shows it: "stack" or "threads"; empty if nothing does."""
    operation: str = ""
    place: str = ""
    """ "train.py:57" """
    function: str = ""
    frames: tuple[Frame, ...] = ()
    step: int | None = None
    noticed: bool = False
    """The host waits for its device there. The collective may be on an earlier line."""
    moved: bool = False
    """Between the looks it entered, left or changed a collective, or finished a step."""
    went: bool = False
    """It was at different lines in different looks."""
    doing: Activity | None = None
    since: float | None = None
    """Seconds since it exchanged anything with another rank; None if unknown."""

    @property
    def rank(self) -> int | None:
        return self.member.rank

    @property
    def key(self) -> tuple[str, int]:
        return self.member.host, self.member.pid

    def named(self, cause: Cause, words: str) -> HangCulprit:
        """As one that others wait for, where it stands."""
        return HangCulprit(self.rank, *self.key, cause, words, self.place, self.frames)


@dataclass(frozen=True, slots=True)
class HangCulprit:
    """A rank that others wait for. `pid` is None if its process is gone."""

    rank: int | None
    host: str
    pid: int | None
    cause: Cause
    sentence: str
    """What it is doing, without its name: "sleeps in forward, train.py:57"."""
    place: str = ""
    frames: tuple[Frame, ...] = ()
    held: HeldLock | None = None
    by: int | None = None
    """The worker or child of it that keeps it waiting."""
    do: str = ""

    @property
    def key(self) -> tuple[str, int | None]:
        return self.host, self.pid


@dataclass(frozen=True, slots=True)
class WaitGroup:
    """Ranks that wait at the same place."""

    ranks: tuple[int, ...]
    number: int
    """How many ranks wait there, including those whose number is unknown."""
    operation: str
    place: str
    function: str
    noticed: bool = False


@dataclass(frozen=True, slots=True)
class Wait:
    """A rank that waits for another rank, and where."""

    rank: int
    on: int
    operation: str
    place: str
    function: str


@dataclass(frozen=True, slots=True)
class Rights:
    """How much could be seen."""

    level: str
    """ "root", "the job's own user", "another user" """
    stacks: bool
    connections: bool
    unread: tuple[str, ...] = ()
    raises: tuple[str, ...] = ()
    """How to see more."""
    lacks: tuple[str, ...] = ()
    """Architectures of hosts for which py-spy was missing but can be downloaded."""


@dataclass(frozen=True, slots=True)
class WeighedOpinion:
    """The opinion of a library or a device tool, compared with what the processes show."""

    opinion: Opinion
    confirms: bool = False
    against: tuple[str, ...] = ()
    """How it contradicts the processes or other opinions, a sentence each."""


@dataclass(frozen=True, slots=True)
class HangFinding:
    """Whom the others wait for, and how certain that is."""

    named: tuple[HangCulprit, ...] = ()
    confidence: HangConfidence = HangConfidence.UNDECIDED
    at_once: bool = False
    """The wait never ends by itself, so the limit does not apply."""
    works: bool = False
    unproved: bool = False
    accuses: bool = True
    """The named ranks are culprits, not only suspects."""
    sentence: str = ""
    """The judgement in a sentence, mostly why no rank is accused; if empty, the named ranks make it."""
    below: bool = False
    """All ranks wait in the same operation."""
    meets: bool = False
    """The ranks wait for their first meeting, so the age of the job shows for how long."""
    standings: tuple[RankStanding, ...] = ()
    """The ranks outside, with what they are doing."""
    do: tuple[str, ...] = ()
    """What to do, if neither the causes nor the confidence say it."""
    notes: tuple[str, ...] = ()

    @property
    def decided(self) -> bool:
        return bool(self.named) and self.accuses and not self.unproved and not self.works


@dataclass(frozen=True, slots=True)
class StartFault:
    named: tuple[HangCulprit, ...]
    sentence: str = ""
    """If nobody is named: what is wrong."""
    lasts: bool = False
    """It does not pass by itself."""
    works: bool = False
    unproved: bool = False
    confidence: HangConfidence = HangConfidence.CERTAIN
    do: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    check: bool = False
    """Whether checks between these hosts show more."""


@dataclass(frozen=True, slots=True)
class Standstill:
    """Where the ranks stand, and for how long nothing has moved."""

    groups: tuple[WaitGroup, ...] = ()
    chain: tuple[Wait, ...] = ()
    ranks: tuple[RankStanding, ...] = ()
    still: float | None = None
    """Seconds since anything moved; None if unknown."""
    at_least: bool = False
    """`still` may be longer: it covers only the time between the looks."""


@dataclass(frozen=True, slots=True)
class Judgement:
    verdict: HangState
    started: str
    sentence: str
    """The judgement in one sentence."""
    limit: float
    job: RunningJob | None = None
    jobs: tuple[RunningJob, ...] = ()
    each: tuple[Judgement, ...] = ()
    """If there are several jobs, the judgement of each, in the order of `jobs`."""
    finding: HangFinding = HangFinding()
    start: StartFault | None = None
    """Why the job does not start, if it has launchers and no rank yet."""
    stands: Standstill = Standstill()
    rights: Rights | None = None
    heard: tuple[WeighedOpinion, ...] = ()
    notes: tuple[str, ...] = ()
    unreached: tuple[tuple[str, str], ...] = ()
    reach: Reach = field(default_factory=Reach)

    @property
    def named(self) -> tuple[HangCulprit, ...]:
        """Culprits or suspects."""
        return self.finding.named

    @property
    def confidence(self) -> HangConfidence:
        return self.finding.confidence

    @property
    def culprits(self) -> tuple[HangCulprit, ...]:
        """The accused ranks of this job, or of all jobs if there are several."""
        if self.verdict is HangState.SEVERAL:
            return tuple(culprit for one in self.each for culprit in one.culprits)
        return self.named if self.finding.decided and self.verdict is HangState.HANG else ()

    @property
    def suspects(self) -> tuple[HangCulprit, ...]:
        """The ranks that others seem to wait for; empty if there are culprits."""
        return () if self.culprits else self.named

    @property
    def exit_code(self) -> int:
        if self.culprits:
            return EXIT_FAULT
        if self.each and all(one.exit_code == EXIT_OK for one in self.each):
            return EXIT_OK
        if self.verdict in (HangState.MOVES, HangState.WAITS):
            unseen = self.unreached and self.job is not None and self.job.missing
            return EXIT_INCONCLUSIVE if unseen else EXIT_OK
        return EXIT_INCONCLUSIVE

"""What is known about a job once its evidence is judged. Types only; no text for a terminal."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from doctor.errors import EXIT_FAULT, EXIT_INCONCLUSIVE, EXIT_OK
from doctor.hang.evidence import Frame, Member
from doctor.hang.opinions import Opinion


class Verdict(str, Enum):
    HANG = "hang"
    """It has stood still for longer than the limit."""
    MOVES = "moves"
    WAITS = "waits"
    """Below the limit, or for work that still goes on: it may be normal."""
    UNKNOWN = "unknown"
    NO_JOB = "no job"
    SEVERAL = "several jobs"


class Confidence(str, Enum):
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
    KERNEL = "stuck in the kernel"
    LINK = "connection lost"
    SLEEPS = "sleeps"
    COMPUTES = "computes"
    LOCK = "waits for a lock"
    GIL = "holds the GIL"
    PIPE = "waits for a pipe"
    STORAGE = "waits for storage"
    LOADER = "waits for its data loader"
    CHILD = "waits for a child process"
    INPUT = "waits for input"
    WRITES = "moves data"
    IMPORTS = "imports"
    COMPILES = "compiles"
    ELSEWHERE = "is outside every collective"
    MISMATCH = "is in another collective"
    LAST = "is the last that others wait for"
    BEHIND = "is behind, as a library counts"


@dataclass(frozen=True, slots=True)
class Doing:
    """What a process does outside every collective."""

    cause: Cause
    words: str
    """ "sleeps", "waits for its data loader, whose worker (pid 812) opens a pipe that nobody writes to" """
    works: bool = False
    """It gets something done: data moved, a step made."""
    unproved: bool = False
    """An endless loop and long work would look alike."""
    certain: bool = False
    """Nothing else looks like it."""
    place: str = ""
    """Of the worker, where it is a worker that keeps the rank waiting."""
    frames: tuple[Frame, ...] = ()


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a rank stands, and what it does if it is outside."""

    member: Member
    inside: bool | None
    """In a collective; None: nothing tells."""
    by: str = ""
    """What told: stack, threads; empty: nothing."""
    operation: str = ""
    place: str = ""
    """ "train.py:57" """
    function: str = ""
    frames: tuple[Frame, ...] = ()
    step: int | None = None
    noticed: bool = False
    """The host waits for its device there; the collective may be an earlier line."""
    moved: bool = False
    """It came into a collective, went out of one or on to another, or made a step between the looks."""
    went: bool = False
    """It was at another line in the first look, wherever that is."""
    doing: Doing | None = None

    @property
    def rank(self) -> int | None:
        return self.member.rank

    @property
    def key(self) -> tuple[str, int]:
        return self.member.host, self.member.pid


@dataclass(frozen=True, slots=True)
class Culprit:
    """A rank that others wait for. `pid` is None if no process is left."""

    rank: int | None
    host: str
    pid: int | None
    cause: Cause
    sentence: str
    """What it does, without its name: "sleeps in forward, train.py:57"."""
    place: str = ""
    frames: tuple[Frame, ...] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """Ranks that wait at the same place."""

    ranks: tuple[int, ...]
    number: int
    """With those whose number is unknown."""
    operation: str
    place: str
    function: str
    noticed: bool = False


@dataclass(frozen=True, slots=True)
class Wait:
    """One rank waits for another, and where."""

    rank: int
    on: int
    operation: str
    place: str
    function: str


@dataclass(frozen=True, slots=True)
class Job:
    """Processes that belong together."""

    name: str
    launcher: str
    world: int | None
    ranks: tuple[Member, ...]
    helpers: tuple[Member, ...]
    hosts: tuple[str, ...]
    missing: tuple[int, ...] = ()
    """Ranks that were not found."""
    gone: tuple[tuple[int, str], ...] = ()
    """Those of them whose host answered, with its name."""
    started: float | None = None
    """By the clock of one of its hosts, since 1970."""
    age: float = 0.0
    """Of its youngest rank."""
    bound: frozenset[tuple[str, int]] = frozenset()
    """Host and PID of the ranks that a launcher started or that are connected to others of their owner: no
    process of anybody else can have that.
    """
    stray: bool = False
    """Another job has the numbers that these ranks say."""

    @property
    def owner(self) -> str:
        return self.ranks[0].user if self.ranks else ""

    @property
    def expected(self) -> int:
        return max(self.world or 0, len(self.ranks))


@dataclass(frozen=True, slots=True)
class Rights:
    """How much could be seen."""

    level: str
    """ "root", "the job's own user", "another user" """
    stacks: bool
    connections: bool
    unread: tuple[str, ...] = ()
    raises: tuple[str, ...] = ()
    """What would show more."""
    lacks: tuple[str, ...] = ()
    """The machines of hosts for which there was no py-spy, but is one to be fetched."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What a library or a device tool said, beside what the processes show."""

    opinion: Opinion
    confirms: bool = False
    against: tuple[str, ...] = ()
    """Sentences: what it contradicts, the processes or another opinion."""


@dataclass(frozen=True, slots=True)
class Straggler:
    """Who was outside in most of many looks, while others were inside."""

    rank: int | None
    host: str
    pid: int
    outside: int
    looks: int

    def __str__(self) -> str:
        who = f"rank {self.rank}" if self.rank is not None else f"process {self.pid}"
        often = f"in {self.outside} of {self.looks} looks"
        return f"others waited for {who} on {self.host} {often}: it may be the slowest"


@dataclass(frozen=True, slots=True)
class Judgement:
    verdict: Verdict
    started: str
    sentence: str
    """What is so, in one sentence."""
    confidence: Confidence = Confidence.UNDECIDED
    job: Job | None = None
    jobs: tuple[Job, ...] = ()
    each: tuple[Judgement, ...] = ()
    """Of several jobs, each by itself, in the order of `jobs`."""
    named: tuple[Culprit, ...] = ()
    """Guilty or not: see `culprits` and `suspects`."""
    decided: bool = False
    groups: tuple[Group, ...] = ()
    chain: tuple[Wait, ...] = ()
    ranks: tuple[Standing, ...] = ()
    still: float | None = None
    """Seconds since anything moved; None: nothing tells."""
    at_least: bool = False
    """Nothing moved between the looks; what was before is not known."""
    limit: float = 60.0
    unreached: tuple[tuple[str, str], ...] = ()
    rights: Rights | None = None
    notes: tuple[str, ...] = ()
    heard: tuple[Heard, ...] = ()
    straggler: Straggler | None = None
    """Of many looks; never a culprit."""
    do: tuple[str, ...] = ()
    """Sentences; what is to be typed begins with a command and stands alone: see `commands`."""
    commands: tuple[str, ...] = ()
    next_time: tuple[str, ...] = ()

    @property
    def culprits(self) -> tuple[Culprit, ...]:
        """Those who are accused; of several jobs, of any."""
        if self.verdict is Verdict.SEVERAL:
            return tuple(culprit for one in self.each for culprit in one.culprits)
        return self.named if self.decided and self.verdict is Verdict.HANG else ()

    @property
    def suspects(self) -> tuple[Culprit, ...]:
        """Those whom others wait for, as far as one can tell."""
        return () if self.culprits else self.named

    @property
    def exit_code(self) -> int:
        if self.culprits:
            return EXIT_FAULT
        if self.each and all(one.exit_code == EXIT_OK for one in self.each):
            return EXIT_OK
        if self.verdict in (Verdict.MOVES, Verdict.WAITS):
            unseen = self.unreached and self.job is not None and self.job.missing
            return EXIT_INCONCLUSIVE if unseen else EXIT_OK
        return EXIT_INCONCLUSIVE

"""The nouns of cluster-doctor: frozen values that all other modules pass around.

Nothing here does work, and nothing here imports another module of ours.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, Literal, TypeVar

T = TypeVar("T")
Values = Mapping[str, str | int | tuple[str, ...]]
"""The values for the placeholders in a remedy's commands."""


class Status(str, Enum):
    """The outcome of one check on one host."""

    PASS = "pass"
    FAIL = "fail"
    WARN = "warn"
    UNKNOWN = "unknown"
    SKIP = "skip"
    CRASH = "crash"
    WAIVED = "waived"
    """It failed or warned, and somebody answers for that until a date."""


class Severity(str, Enum):
    """How much a fault matters: FAIL decides the verdict, WARN does so only with --strict."""

    FAIL = "fail"
    WARN = "warn"


class Damage(Enum):
    """What a fault does to the job, the worst first: reports are in this order."""

    GONE = "a host, a device or a link is gone or down"
    BLOCKED = "ranks cannot start, or cannot connect"
    WRONG = "results are wrong"
    LOAD = "the job is slow or fails under load"
    RISK = "it may do harm one day"


class Scope(str, Enum):
    """Whether a check judges each host alone or compares all of them."""

    HOST = "host"
    CLUSTER = "cluster"


class Confidence(str, Enum):
    CERTAIN = "certain"
    STRONG = "strong"
    SUSPECT = "suspect"


MOST_PLACES = 64
"""The most places of a problem: of so many, others may be left out."""
UNDECIDED = "; undecided which of them is at fault"
_FACT = re.compile(r"^[\w-]+: ")
"""Ends the summary of a fault that names every suspect; it is removed if a cause decides."""


class View(str, Enum):
    """Whose /dev/shm, limits and processes the facts show."""

    HOST = "host"
    CONTAINER = "container"


class Sphere(str, Enum):
    """What a check looks at, if a container may share it with its host."""

    HOST = "host"
    """The kernel and the machine: every container sees the host's."""
    NETWORK = "network"
    """Sockets, interfaces, net. settings: the host's if the container has no network of its own."""


class HostStatus(str, Enum):
    HEALTHY = "healthy"
    FAULTY = "faulty"
    UNEXAMINED = "unexamined"


class Verdict(str, Enum):
    HEALTHY = "healthy"
    FAULTY = "faulty"
    INCONCLUSIVE = "inconclusive"


Framework = Literal["torch", "mindspore"]
"""What trains."""


class Backend(str, Enum):
    """What carries the collectives of the job."""

    GLOO = "gloo"
    NCCL = "nccl"
    HCCL = "hccl"


class UnreachedKind(str, Enum):
    """The ways in which a host can fail to answer; each has its own sentence and next step."""

    NAME = "name-not-resolved"
    REFUSED = "refused"
    NO_ROUTE = "no-route"
    TIMEOUT = "timeout"
    AUTH = "auth"
    KEY_UNKNOWN = "key-unknown"
    KEY_CHANGED = "key-changed"
    BANNER = "no-banner"
    SILENT = "silent-shell"
    FLOOD = "flooding-shell"
    LOST = "connection-lost"
    NO_SHELL = "no-shell"
    ENTRY = "not-entered"
    JUMP = "jump-failed"
    RANK = "rank-absent"
    ASTRAY = "rank-astray"
    """It may have met a process of another user that holds the port of rank 0."""
    NODE = "node-out-of-slurm"
    STEP = "no-step"
    DEADLINE = "deadline"
    """The deadline of the whole run left no time for it."""
    CONTROLLER = "controller"
    """This machine lacked a resource, or the run was stopped."""
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Host:
    """One machine as the person named it, and how to reach it.

    `address` is what SSH dials; `data` is what ranks connect to, if the person gave one.
    `expected` holds the inventory's expectations for this host (names as in `Expect`).
    """

    name: str
    address: str
    user: str | None = None
    port: int | None = None
    jump: str | None = None
    enter: str | None = None
    enter_from: str = "host"
    data: str | None = None
    ranks: int | None = None
    python: str | None = None
    expected: Mapping[str, str] = field(default_factory=dict)
    node: str | None = None
    image: str = ""
    """The node on which it runs, and the image of its container, if it is a pod."""

    @property
    def contained(self) -> bool:
        """Whether it is a container: nsenter into the first process enters the machine itself."""
        machine = r"(?:^|[ /])nsenter (?:-t ?|--target[= ])1(?!\d)"
        return self.enter is not None and re.search(machine, self.enter) is None


@dataclass(frozen=True, slots=True)
class SourcedValue(Generic[T]):
    """A value and where it came from."""

    value: T
    source: str

    def __str__(self) -> str:
        return f"{self.value} ({self.source})"


@dataclass(frozen=True, slots=True)
class TableFile:
    """A rank table as its file contains it. `checksum` is the output of `cksum` for the bytes of the file."""

    path: str
    text: str
    checksum: str


@dataclass(frozen=True, slots=True)
class UnreachedHost:
    """A host that could not be examined, described for a person."""

    host: str
    kind: UnreachedKind
    summary: str
    remedy: str
    commands: tuple[str, ...] = ()
    detail: str = ""
    ranks: tuple[int, ...] = ()
    """In a job that examines itself: the ranks that are absent."""


class AnswerEnd(str, Enum):
    """How the conversation with a host ended."""

    DONE = "done"
    TIMEOUT = "timeout"
    LOST = "lost"
    FLOOD = "flood"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a host answered to one script, complete or cut off. Times are the controller's wall clock."""

    host: str
    stdout: bytes
    stderr: bytes
    rc: int | None
    end: AnswerEnd
    started: float
    ended: float


@dataclass(frozen=True, slots=True)
class Capture:
    """The output of one fact's command on one host. `rc` is None if it never finished."""

    fact: str
    rc: int | None
    stdout: str
    stderr: str = ""
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class MissingFact:
    """A fact that a host could not provide, and why. `absent`: the host has nothing to look at."""

    fact: str
    reason: str
    absent: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a fault, as exactly as it is known."""

    host: str | None = None
    rank: int | None = None
    device: int | None = None
    port: int | None = None
    peer: str | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was seen and where: `source` is a command or a file."""

    source: str
    text: str


@dataclass(frozen=True, slots=True)
class Problem:
    """What a check yields: one fault. In host scope the engine adds the host.

    `hosts` (cluster scope) are only the culprits. `values` fill the remedy's commands; a command with a tuple
    is repeated for each of its elements. `severity` overrides the check's own; `commands` are what to type if
    no remedy of a playbook fits.
    """

    summary: str
    expected: str = ""
    actual: str = ""
    evidence: tuple[Evidence, ...] = ()
    subject: str | None = None
    hosts: tuple[str, ...] = ()
    where: tuple[Place, ...] = ()
    severity: Severity | None = None
    confidence: Confidence = Confidence.CERTAIN
    remedy: str | None = None
    values: Values = field(default_factory=dict)
    commands: tuple[str, ...] = ()
    view: View | None = None
    """Whether the host or its container is at fault, if the check knows."""
    of_all: str = ""
    """The summary if every host has it alike: of a value that all were given, so that no host is blamed."""


@dataclass(frozen=True, slots=True)
class Waiver:
    """A fault that is known and accepted for a while."""

    check: str
    hosts: tuple[str, ...]
    reason: str
    owner: str
    until: str
    subject: str = ""
    place: str = ""
    status: Status = Status.FAIL
    """What the result would be without it: a fault or a warning."""


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of one check on one host (cluster scope: on the hosts compared)."""

    check: str
    hosts: tuple[str, ...]
    status: Status
    reason: str | None = None
    problem: Problem | None = None
    essential: bool = False
    """It is unknown, and the job cannot do without knowing it here."""
    waiver: Waiver | None = None
    """What waives it; unless it is waived, it has expired."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """What to type."""

    id: str
    commands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """Equal results of one check, folded over hosts, with their cause if it is known."""

    id: str
    check: str
    status: Status
    hosts: tuple[str, ...]
    nodeset: str
    subject: str | None
    where: tuple[Place, ...]
    view: View
    confidence: Confidence
    summary: str
    expected: str
    actual: str
    evidence: tuple[Evidence, ...]
    remedy: Remedy | None
    because: str | None
    seen_from: View = View.HOST
    """Where the observation was made; `view` says whose fault it is: the host's or the container's."""
    essential: bool = False
    """See Result."""
    waiver: Waiver | None = None
    """See Result."""

    @property
    def reason(self) -> str:
        """The summary without the name of the missing fact, with which that of an undecided one begins."""
        return _FACT.sub("", self.summary)

"""The nouns of cluster-doctor: frozen values that every other module passes around.

Nothing here does work, and nothing here imports another module of ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeVar

T = TypeVar("T")
Values = Mapping[str, "str | int | tuple[str, ...]"]
"""What fills a remedy's commands."""


class Status(str, Enum):
    """What became of one check on one host."""

    PASS = "pass"
    FAIL = "fail"
    WARN = "warn"
    UNKNOWN = "unknown"
    SKIP = "skip"
    CRASH = "crash"


class Severity(str, Enum):
    """How much a fault matters: FAIL decides the verdict, WARN only with --strict."""

    FAIL = "fail"
    WARN = "warn"


class Scope(str, Enum):
    """Whether a check judges each host alone or compares all of them."""

    HOST = "host"
    CLUSTER = "cluster"


class Confidence(str, Enum):
    CERTAIN = "certain"
    STRONG = "strong"
    SUSPECT = "suspect"


UNDECIDED = "; undecided which of them is at fault"
"""Ends the summary of a fault that names every suspect; it goes when a cause decides."""


class View(str, Enum):
    """Whose /dev/shm, limits and processes the facts show."""

    HOST = "host"
    CONTAINER = "container"


class Sphere(str, Enum):
    """What a check looks at, where a container may share it with its host."""

    HOST = "host"
    """The kernel and the machine: every container shows the host's."""
    NETWORK = "network"
    """Sockets, interfaces, net. settings: the host's where the container has no network of its own."""


class HostStatus(str, Enum):
    HEALTHY = "healthy"
    FAULTY = "faulty"
    UNEXAMINED = "unexamined"


class Verdict(str, Enum):
    HEALTHY = "healthy"
    FAULTY = "faulty"
    INCONCLUSIVE = "inconclusive"


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
    NODE = "node-out-of-slurm"
    STEP = "no-step"
    DEADLINE = "deadline"
    """The whole run had no time left for it."""
    CONTROLLER = "controller"
    """This machine was short of something, or stopped."""
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Host:
    """One machine as the person named it, and how to get there.

    `address` is what SSH dials; `data` is what ranks connect to, when the person said so.
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


@dataclass(frozen=True, slots=True)
class Sourced(Generic[T]):
    """A value together with where it came from."""

    value: T
    source: str


@dataclass(frozen=True, slots=True)
class TableFile:
    """A rank table as its file has it. `checksum` is what `cksum` says of the bytes of the file."""

    path: str
    text: str
    checksum: str


@dataclass(frozen=True, slots=True)
class Unreached:
    """A host that could not be asked, in words for a person."""

    host: str
    kind: UnreachedKind
    summary: str
    remedy: str
    commands: tuple[str, ...] = ()
    detail: str = ""
    ranks: tuple[int, ...] = ()
    """Of the job that examines itself: those that are not there."""


class AnswerEnd(str, Enum):
    """How the conversation with a host ended."""

    DONE = "done"
    TIMEOUT = "timeout"
    LOST = "lost"
    FLOOD = "flood"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a host said to one script, whole or cut off. Times are of the controller's wall clock."""

    host: str
    stdout: bytes
    stderr: bytes
    rc: int | None
    end: AnswerEnd
    started: float
    ended: float


@dataclass(frozen=True, slots=True)
class Capture:
    """The output of one fact's command on one host. `rc` is None when it never finished."""

    fact: str
    rc: int | None
    stdout: str
    stderr: str = ""
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Missing:
    """A fact that could not be had from a host, and why. `absent`: there is nothing to be looked at."""

    fact: str
    reason: str
    absent: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where a fault is, as exactly as it is known."""

    host: str | None = None
    rank: int | None = None
    device: int | None = None
    port: int | None = None
    peer: str | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was seen and where it was seen: `source` is a command or a file."""

    source: str
    text: str


@dataclass(frozen=True, slots=True)
class Problem:
    """What a check yields: one fault. The engine adds the host, in host scope.

    `hosts` (cluster scope) are the culprits only. `values` fill the remedy's commands; one that
    has a tuple is repeated for each of its elements.
    `severity` overrides the check's own; `commands` are what to type where no remedy of a playbook fits.
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
    """Whether the host or its container is at fault, where the check knows."""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one check on one host (cluster scope: on the hosts compared)."""

    check: str
    hosts: tuple[str, ...]
    status: Status
    reason: str | None = None
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class Remedy:
    """What to type."""

    id: str
    """That of the remedy; `by-hand` if it is none of `doctor list`."""
    commands: tuple[str, ...]
    """Ready to copy, with values filled in and quoted; what begins with # is for a person."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Equal results of one check, folded over hosts, with their cause when that is known."""

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
    """Where one looked from; `view` says whose it is that is at fault."""

"""What one smoke run saw: frozen values, stored in recordings as JSON and judged by `doctor.smoke.judge`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

import msgspec

from doctor.mesh import MeshResult
from doctor.model import Unreached
from doctor.smoke.onhost.shape import CellShape

Text = Annotated[str, msgspec.Meta(max_length=20_000)]
Hash = Annotated[str, msgspec.Meta(max_length=64)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e6)]
Phase = Literal["spawned", "start", "ready", "join", "collectives", "train", "audit", "bandwidth", "done"]


@dataclass(frozen=True, slots=True)
class SmokeSeat:
    """One rank. `rank` is its number in the whole run, `place` its number in its cell."""

    rank: int
    host: str
    local: int
    device: int | None
    cell: int
    place: int


@dataclass(frozen=True, slots=True)
class Injection:
    """A fault on purpose: `KIND@rank[:step]`."""

    kind: str
    rank: int
    step: int | None = None

    def __str__(self) -> str:
        return f"{self.kind}@{self.rank}" + ("" if self.step is None else f":{self.step}")


@dataclass(frozen=True, slots=True)
class SmokePlan:
    """Who takes part, how the ranks are grouped, and what is done."""

    backend: Literal["gloo", "nccl", "hccl"]
    hosts: tuple[str, ...]
    seats: tuple[SmokeSeat, ...]
    tp: int
    cells: tuple[tuple[int, ...], ...]
    """Ranks that train together, by their numbers over the whole run."""
    steps: int
    seed: int
    head: str
    addresses: Mapping[str, str]
    injected: tuple[Injection, ...] = ()

    def seat(self, rank: int) -> SmokeSeat:
        return self.seats[rank]

    def on(self, host: str) -> tuple[SmokeSeat, ...]:
        return tuple(seat for seat in self.seats if seat.host == host)

    def shape(self, cell: int) -> CellShape:
        """The cell as its ranks know it."""
        members = [self.seats[rank] for rank in self.cells[cell]]
        hosts = dict.fromkeys(seat.host for seat in members)
        return CellShape(
            dp=len(members) // self.tp,
            tp=self.tp,
            hosts=tuple(sum(seat.host == host for seat in members) for host in hosts),
            steps=self.steps,
            seed=self.seed + cell,
            backend=self.backend,
        )


# The events of a rank, in order. One JSON line each; "ev" is the kind.


class Started(msgspec.Struct, frozen=True, tag="start", tag_field="ev"):
    """The rank is alive and knows its libraries. `streams`: name -> hash of what a fixed seed gives."""

    versions: dict[str, Text]
    streams: dict[str, Hash]
    golden: tuple[Hash, ...]
    """Hashes of an integer matrix product, computed again each time."""
    product: Text = ""


class CollectiveWrong(msgspec.Struct, frozen=True):
    """One result that differs from its closed form."""

    name: Text
    group: Text
    index: Count
    got: Text
    expected: Text
    position: Count = 0


class Collectives(msgspec.Struct, frozen=True, tag="collectives", tag_field="ev"):
    done: Count
    wrong: tuple[CollectiveWrong, ...] = ()
    unsupported: tuple[Text, ...] = ()
    """What the backend refused, as "op dtype"."""


class BatchHashes(msgspec.Struct, frozen=True, tag="batch", tag_field="ev"):
    """Hashes of what a rank trains on at a step, and of what it drew there from the libraries' streams."""

    step: Count
    tokens: Hash
    mask: Hash
    labels: Hash
    streams: dict[str, Hash] = {}


class TrainStep(msgspec.Struct, frozen=True, tag="step", tag_field="ev"):
    """One training step. Floats that are not finite are None; `finite` is of the rank's own loss and
    gradient, before any of it was reduced over replicas.
    """

    step: Count
    loss: float | None
    finite: bool
    params: Hash
    """Of the rank's parameters after the step."""
    own: tuple[float, float] | None = None
    """Projection of the rank's own gradient onto a fixed vector of signs, and the sum of its magnitudes."""
    reduced: float | None = None
    """The same projection of the gradient as all-reduced over replicas (before the division)."""
    cpu: Seconds = 0.0
    compute: Seconds = 0.0
    wait: Seconds = 0.0


class Init(msgspec.Struct, frozen=True, tag="init", tag_field="ev"):
    """The parameters before the first step."""

    params: Hash


class Audit(msgspec.Struct, frozen=True, tag="audit", tag_field="ev"):
    """Hashes of gradients of one step: the one that was used, and those computed again.

    `votes` are of the batches of replicas d, d-1 and d-2 (if there are that many), where d is the rank's
    own; each with the rank's own parameters at that step.
    """

    step: Count
    used: Hash
    votes: tuple[Hash, ...]


class Solo(msgspec.Struct, frozen=True, tag="solo", tag_field="ev"):
    """Hashes of gradients that each rank computed alone, on a small whole model: of the batches of its own
    place in the cell, of the one before and of the one before that.
    """

    votes: tuple[Hash, ...]


class Transfer(msgspec.Struct, frozen=True, tag="pair", tag_field="ev"):
    """One transfer with a peer on another host, both directions at once. `peer` is a place in the cell."""

    peer: Count
    round: Count
    bytes: Count
    seconds: Seconds
    rtt: Seconds
    """Median round trip of one small message."""
    stage: Count = 1


class Entered(msgspec.Struct, frozen=True, tag="phase", tag_field="ev"):
    phase: Phase


class Error(msgspec.Struct, frozen=True, tag="error", tag_field="ev"):
    """An exception that ended the rank."""

    type: Text
    text: Text
    trace: Text = ""


class BackendEvidence(msgspec.Struct, frozen=True, tag="backend", tag_field="ev"):
    """What NCCL or HCCL themselves know of a hang."""

    text: Text


class Done(msgspec.Struct, frozen=True, tag="done", tag_field="ev"):
    pass


Event = (
    Started
    | Collectives
    | Init
    | BatchHashes
    | TrainStep
    | Audit
    | Solo
    | Transfer
    | Entered
    | Error
    | BackendEvidence
    | Done
)


@dataclass(frozen=True, slots=True)
class Sample:
    """A rank's page as its agent read it, with names for numbers. `still`: seconds without a change."""

    version: int
    phase: Phase
    step: int
    position: int
    group: str
    seq: int
    op: str
    dtype: str
    bytes: int
    inside: bool
    still: float


@dataclass(frozen=True, slots=True)
class Exit:
    """How a rank's process ended: `code` as a shell has it, or the number of the signal."""

    code: int | None
    signal: int | None
    after: float
    """Seconds since the run began, by the controller's clock."""
    words: str = ""
    """The end of what it wrote to stderr or stdout."""


@dataclass(frozen=True, slots=True)
class RankSeen:
    """All that is known of one rank at the end of the run.

    `samples` are the last two looks at its page, the older first. In a run that hung some time passed between
    them: a rank that moved did not hang. `state` is the letter of /proc, `cpu` the seconds used in between.
    """

    rank: int
    phase: Phase = "spawned"
    samples: tuple[Sample, ...] = ()
    state: str = ""
    cpu: float | None = None
    pid: int | None = None
    exit: Exit | None = None
    error: Error | None = None
    stack: str = ""
    backend: str = ""
    """What NCCL or HCCL themselves know of a hang."""
    started: Started | None = None
    collectives: Collectives | None = None
    init: Init | None = None
    batches: tuple[BatchHashes, ...] = ()
    steps: tuple[TrainStep, ...] = ()
    audits: tuple[Audit, ...] = ()
    solo: Solo | None = None
    pairs: tuple[Transfer, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Phase -> seconds spent in it."""
    done: bool = False
    disturbed: float | None = None
    """Seconds from a fault on purpose to the end of the run."""


@dataclass(frozen=True, slots=True)
class HostSeen:
    """What the agent of a host reported, or why there was none."""

    host: str
    python: str = ""
    imported: float | None = None
    """Seconds until torch was imported."""
    cores: int = 0
    load: float = 0.0
    reverse_dns: float | None = None
    """Seconds that looking up the name of the head's address took; torch does so for each connection."""
    peak_memory: int = 0
    """Bytes, of its largest rank."""
    trouble: str = ""
    """Why there was no agent, or why it could not start the ranks."""
    lost: Unreached | None = None


EndKind = Literal[
    "done", "exit", "stopped", "mismatch", "still", "lost", "trouble", "deadline", "interrupted"
]


@dataclass(frozen=True, slots=True)
class RunEnd:
    """Why the controller ended the run: `done`, or the first thing that went wrong.

    `still` is a hang: no rank of the cell moved for `limit` seconds. `seconds` since the run began.
    """

    kind: EndKind
    seconds: float
    cell: int | None = None
    limit: float | None = None
    latency: float | None = None
    """Seconds from a fault on purpose to the decision."""


@dataclass(frozen=True, slots=True)
class Hiccup:
    """A rank or a host stood still for long, and then went on."""

    rank: int
    phase: Phase
    seconds: float


@dataclass(frozen=True, slots=True)
class LeftOutOfSmoke:
    host: str
    reason: str


@dataclass(frozen=True, slots=True)
class SmokeResult:
    """One smoke run, whole or ended early."""

    plan: SmokePlan
    end: RunEnd
    ranks: tuple[RankSeen, ...]
    hosts: tuple[HostSeen, ...]
    hiccups: tuple[Hiccup, ...] = ()
    mesh: MeshResult | None = None
    """Which hosts reached each other while the ranks hung."""
    left_out: tuple[LeftOutOfSmoke, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Phase -> seconds, of the slowest rank."""
    total: float = 0.0

    def host(self, name: str) -> HostSeen | None:
        return next((seen for seen in self.hosts if seen.host == name), None)

    def cell_ranks(self, cell: int) -> tuple[RankSeen, ...]:
        return tuple(self.ranks[rank] for rank in self.plan.cells[cell])

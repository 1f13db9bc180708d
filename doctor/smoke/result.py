"""What one smoke run saw: frozen values, stored in recordings as JSON and judged by `doctor.smoke.judge`."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from doctor.mesh import MeshResult
from doctor.mesh.result import OmittedHost
from doctor.model import Framework, UnreachedHost
from doctor.smoke import events
from doctor.smoke.onhost.shape import ORDER, CellShape
from doctor.smoke.onhost.trainplan import MICRO_BATCHES, may_interleave
from doctor.text.interpreter import PLAIN, to_type

SmokeBackend = Literal["gloo", "nccl", "hccl", "mccl"]
"""`mccl` is what MindSpore has instead of gloo."""
ON_CPU = ("gloo", "mccl")
OfJob = Mapping[str, int]
"""How many ranks are the stages of a pipeline (pp), share a sequence (cp) or experts (ep), and `micro`: see
`CellShape`. Without it, the model is not cut in stages.
"""


@dataclass(frozen=True, slots=True)
class SmokeSeat:
    """`place` is its number in its cell; `index` is torch's number for its device, if that is different."""

    rank: int
    host: str
    local: int
    device: int | None
    cell: int
    place: int
    index: int | None = None


@dataclass(frozen=True, slots=True)
class Injection:
    """A fault that is injected on purpose: `KIND@rank[:step][/group]`."""

    kind: str
    rank: int
    step: int | None = None
    group: str = ""

    def __str__(self) -> str:
        step, group = "" if self.step is None else f":{self.step}", f"/{self.group}" if self.group else ""
        return f"{self.kind}@{self.rank}{step}{group}"


def divides(layout: OfJob, tp: int, cells: Iterable[Sequence[int]]) -> bool:
    """Whether every cell of ranks can be divided like the job."""
    pp, cp, ep, vpp = (layout.get(name, 1) for name in ("pp", "cp", "ep", "vpp"))
    micro = layout.get("micro", 0)
    if min(pp, cp, ep, vpp) < 1 or not {*layout} <= {"pp", "cp", "ep", "micro", "vpp", "zero", "ps"}:
        return False
    if layout.get("zero", 0) not in range(2 if micro else 4) or layout.get("ps", 0) not in range(2):
        return False
    if micro not in (0, *MICRO_BATCHES) or (vpp > 1 and not (micro and may_interleave(pp, vpp, micro))):
        return False
    return all(len(cell) % (tp * cp * pp) == 0 == len(cell) // (tp * pp) % ep for cell in cells)


@dataclass(frozen=True, slots=True)
class SmokePlan:
    """Who takes part, how the ranks are grouped, and what is done."""

    backend: SmokeBackend
    hosts: tuple[str, ...]
    seats: tuple[SmokeSeat, ...]
    tp: int
    cells: tuple[tuple[int, ...], ...]
    """Ranks that train together, by their numbers in the whole run."""
    steps: int
    seed: int
    head: str
    addresses: Mapping[str, str]
    injected: tuple[Injection, ...] = ()
    dtypes: tuple[str, ...] = ()
    dp_in_world: bool = False
    waver_tries: int = 0
    """See `CellShape.waver_tries`."""
    framework: Framework = "torch"
    turns: int = 0
    """See `CellShape.turns`."""
    layout: OfJob = field(default_factory=dict)
    sweep: float = 0.0
    """See `CellShape.sweep`."""
    order: str = ORDER
    paths: tuple[str, ...] = ()
    """See `CellShape.paths`."""
    pairs_at_once: int = 0
    """See `CellShape.pairs_at_once`."""

    @property
    def parts(self) -> int:
        """The number of ranks that hold one copy of the model together."""
        return self.tp * (self.layout.get("pp", 1) if self.layout.get("micro") else 1)

    def seat(self, rank: int) -> SmokeSeat:
        return self.seats[rank]

    def stage_of(self, rank: int) -> int:
        return self.shape(self.seat(rank).cell).stage_of(self.seat(rank).place)

    def on(self, host: str) -> tuple[SmokeSeat, ...]:
        return tuple(seat for seat in self.seats if seat.host == host)

    def shape(self, cell: int) -> CellShape:
        """The shape of a cell, as its ranks get it."""
        members = [self.seats[rank] for rank in self.cells[cell]]
        hosts = dict.fromkeys(seat.host for seat in members)
        own: dict[str, Any] = {
            "dp": len(members) // self.parts,
            "hosts": tuple(sum(seat.host == host for seat in members) for host in hosts),
            "seed": self.seed + cell,
        }
        alike = {name: getattr(self, name) for name in CellShape._fields if hasattr(self, name)}
        return CellShape(**{**alike, **own, **self.layout})


@dataclass(frozen=True, slots=True)
class Sample:
    """A rank's page as its agent read it, with names for numbers. `still`: seconds without a change."""

    version: int
    phase: events.Phase
    step: int
    position: int
    group: str
    seq: int
    op: str
    dtype: str
    bytes: int
    inside: bool
    still: float
    end: int = -1
    tag: int = 0
    """See `CollectiveCall`."""
    about: int = -1
    """See `RankPage.FIELDS`; -1 in older recordings."""


@dataclass(frozen=True, slots=True)
class Exit:
    """How a rank's process ended: `code` as a shell reports it, or the number of the signal."""

    code: int | None
    signal: int | None
    after: float
    """Seconds since the run began, by the controller's clock."""
    words: str = ""
    """The end of what it wrote to stderr or stdout."""


@dataclass(frozen=True, slots=True)
class RankOutcome:
    """All that is known about one rank at the end of the run.

    `samples` are the last two looks at its page, the older first. In a run that hung, some time passed
    between them: a rank that moved did not hang. `state` is the letter of the process in /proc, `cpu` the CPU
    seconds that it used between the two looks.
    """

    rank: int
    phase: events.Phase = "spawned"
    samples: tuple[Sample, ...] = ()
    state: str = ""
    cpu: float | None = None
    pid: int | None = None
    exit: Exit | None = None
    error: events.Error | None = None
    stack: str = ""
    backend: str = ""
    """What NCCL or HCCL itself reports about a hang."""
    started: events.RankStart | None = None
    collectives: events.Collectives | None = None
    bits: events.GradientBits | None = None
    init: events.InitialParameters | None = None
    batches: tuple[events.BatchHashes, ...] = ()
    steps: tuple[events.TrainStep, ...] = ()
    audits: tuple[events.Audit, ...] = ()
    solo: events.Solo | None = None
    pairs: tuple[events.Transfer, ...] = ()
    segments: events.Segments | None = None
    sweep: tuple[events.CollectiveTimes, ...] = ()
    alone: tuple[events.Alone, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Phase -> seconds spent in it."""
    done: bool = False
    disturbed: float | None = None
    """Seconds from an injected fault to the end of the run."""


@dataclass(frozen=True, slots=True)
class HostOutcome:
    """What the agent of a host reported, or why there was no agent."""

    host: str
    python: str = ""
    login: float | None = None
    """Seconds until a shell there had started the agent."""
    imported: float | None = None
    """Seconds until the framework was imported."""
    version: str = ""
    """The version of the framework."""
    cores: int = 0
    load: float = 0.0
    reverse_dns: float | None = None
    """Seconds that the reverse lookup of the head's address took; torch does one for each connection."""
    peak_memory: int = 0
    """The peak memory of its largest rank, in bytes."""
    trouble: str = ""
    """Why there was no agent, or why it could not start the ranks."""
    lost: UnreachedHost | None = None
    kept: tuple[str, ...] = ()
    """Connections that its ranks had from a phase's start until they hung: both ends, its own first."""
    broken: tuple[str, ...] = ()
    """Those that were gone by then."""
    asked: str = ""
    """The interpreter as the user gave it: perhaps a wrapper that starts `python`."""

    @property
    def to_type(self) -> str:
        """The interpreter to type in a command: as the user gave it, if it needs no quotes in a shell."""
        return self.asked if self.asked and shlex.quote(self.asked) == self.asked else to_type(self.python)


EndKind = Literal[
    "done", "exit", "stopped", "mismatch", "still", "lost", "trouble", "deadline", "interrupted"
]


@dataclass(frozen=True, slots=True)
class RunEnd:
    """Why the controller ended the run; `still`: no rank of the cell moved for `limit` seconds."""

    kind: EndKind
    seconds: float
    cell: int | None = None
    limit: float | None = None
    latency: float | None = None
    """Seconds from an injected fault to the decision."""


@dataclass(frozen=True, slots=True)
class Hiccup:
    """A cell stood still for long and then went on; `rank` is its first rank."""

    rank: int
    phase: events.Phase
    seconds: float


@dataclass(frozen=True, slots=True)
class SmokeResult:
    """One smoke run, complete or ended early."""

    plan: SmokePlan
    end: RunEnd
    ranks: tuple[RankOutcome, ...]
    hosts: tuple[HostOutcome, ...]
    hiccups: tuple[Hiccup, ...] = ()
    mesh: MeshResult | None = None
    """Which hosts reached each other while the ranks hung."""
    left_out: tuple[OmittedHost, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Phase -> seconds, of the slowest rank."""
    total: float = 0.0

    def host(self, name: str) -> HostOutcome | None:
        return next((seen for seen in self.hosts if seen.host == name), None)

    def python_on(self, host: str) -> str:
        """The interpreter of a host, as it can be typed in a command."""
        return next((seen.to_type for seen in self.hosts if seen.host == host), PLAIN)

    def cell_ranks(self, cell: int) -> tuple[RankOutcome, ...]:
        return tuple(self.ranks[rank] for rank in self.plan.cells[cell])

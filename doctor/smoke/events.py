"""What a rank reports, in order: JSON lines with a kind in "ev". All have bounds: a host may be hostile."""

from typing import Annotated, Literal

import msgspec

Text = Annotated[str, msgspec.Meta(max_length=20_000)]
Hash = Annotated[str, msgspec.Meta(max_length=64)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e6)]
Spent = Annotated[float, msgspec.Meta(ge=1e-9, le=1e6)]
Sums = tuple[float, float]
"""Projection of many numbers onto a fixed vector of signs, and the sum of their magnitudes."""
Phase = Literal["spawned", "start", "ready", "join", "collectives", "train", "audit", "bandwidth", "done"]


class RankStart(msgspec.Struct, frozen=True, tag="start", tag_field="ev"):
    """The rank is alive and has its libraries. `streams`: name -> hash of what a fixed seed gives."""

    versions: dict[str, Text]
    streams: dict[str, Hash]
    golden: tuple[Hash, ...]
    """Hashes of an integer matrix product, which is computed several times."""
    product: Text = ""


class CollectiveDeviation(msgspec.Struct, frozen=True):
    """One result that differs from its closed form."""

    name: Text
    group: Text
    index: Count
    got: Text
    expected: Text
    position: Count = 0


class Collectives(msgspec.Struct, frozen=True, tag="collectives", tag_field="ev"):
    done: Count
    wrong: tuple[CollectiveDeviation, ...] = ()
    unsupported: tuple[Text, ...] = ()
    """The calls that the backend refused, as "op dtype"."""
    forming: Seconds = 0.0
    """How long it took to make the groups."""
    network: Annotated[tuple[Text, ...], msgspec.Meta(max_length=64)] = ()
    """What NCCL said of the network that it takes, each line once, without channels."""


class BatchHashes(msgspec.Struct, frozen=True, tag="batch", tag_field="ev"):
    """Hashes of what a rank trains on at a step, and of what it drew from the libraries' random streams."""

    step: Count
    tokens: Hash
    mask: Hash
    labels: Hash
    streams: dict[str, Hash] = {}


class TrainStep(msgspec.Struct, frozen=True, tag="step", tag_field="ev"):
    """Floats that are not finite are None; `finite` is about the rank's own loss and gradient."""

    step: Count
    loss: float | None
    finite: bool
    params: Hash
    """The hash of the rank's parameters after the step."""
    own: Sums | None = None
    """The sums of the rank's own gradient."""
    reduced: float | None = None
    """The projection of the gradient as all-reduced over replicas (before the division)."""
    shards: Annotated[tuple[float, ...], msgspec.Meta(max_length=4096)] = ()
    """The projections of its own gradient by shards, if each replica sums one; `reduced` is of that one."""
    weights: Sums | None = None
    """The sums of the parameters after the step; only if equal bits cannot be expected."""
    cpu: Seconds = 0.0
    compute: Seconds = 0.0
    wait: Seconds = 0.0
    entered: dict[str, Count] = {}
    """Group -> collectives entered since the run began. Empty in recordings of earlier versions."""
    sizes: dict[str, Count] = {}
    """Group -> the bytes of its calls since the step before."""
    held: dict[str, tuple[Count, float, float, float]] = {}
    """What it holds after them, by group, or by peer ("to 5", "from 5"): see `Comm.held`."""
    queued: Seconds = 0.0
    """For how long in the whole step it could have run, but others had its processor; 0 if unknown."""
    idle: Seconds = 0.0
    """For how long it waited for other stages of the pipeline."""


class GradientBits(msgspec.Struct, frozen=True, tag="bits", tag_field="ev"):
    """The first gradient, hashed several times. `spread`: how far apart, as a share of magnitudes."""

    tries: tuple[Hash, ...]
    spread: Annotated[float, msgspec.Meta(ge=0, le=1e9)] = 0.0


class InitialParameters(msgspec.Struct, frozen=True, tag="init", tag_field="ev"):
    """The parameters before the first step."""

    params: Hash


class Audit(msgspec.Struct, frozen=True, tag="audit", tag_field="ev"):
    """Hashes of gradients of one step: the one that was used, and those computed again.

    `votes` belong to the batches of the rank's own replica and of two others (see `replicas_again`); each is
    computed with the rank's own parameters at that step.
    """

    step: Count
    used: Hash
    votes: tuple[Hash, ...]
    sums: tuple[Sums, ...] = ()
    """The sums of all these gradients; only if equal bits cannot be expected."""


class Solo(msgspec.Struct, frozen=True, tag="solo", tag_field="ev"):
    """Hashes of gradients that the rank computed alone, on a small whole model (see `places_again`)."""

    votes: tuple[Hash, ...]
    sums: tuple[Sums, ...] = ()
    """See `Audit.sums`."""


class Transfer(msgspec.Struct, frozen=True, tag="pair", tag_field="ev"):
    """One transfer with the peer at a place of the cell, both ways at once or only one `way`."""

    peer: Count
    round: Count
    bytes: Count
    seconds: Seconds
    rtt: Seconds
    """The quickest of several round trips of a small message."""
    stage: Count = 1
    way: Literal["both", "out", "in"] = "both"
    queued: Seconds = 0.0
    """For how long, at most, it waited meanwhile for a processor that others had; 0 if unknown."""


class CollectiveTimes(msgspec.Struct, frozen=True, tag="sweep", tag_field="ev"):
    """How long calls of a collective took, each by its slowest rank: the least, the median, the most."""

    scope: Literal["intra", "inter", "all"]
    op: Literal["all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "send_recv"]
    bytes: Annotated[int, msgspec.Meta(ge=1024, le=2**30)]
    ranks: Annotated[int, msgspec.Meta(ge=2, le=1_000_000)]
    calls: Count
    seconds: tuple[Spent, Spent, Spent]


class Alone(msgspec.Struct, frozen=True, tag="alone", tag_field="ev"):
    """What a host did alone in one pass: `rates` of its turns, in operations, bytes or appends a second.

    `stretch`: the time of a turn by its processor time. `on`: the kind of file system of the folder.
    `why`: why nothing was measured.
    """

    what: Literal["matmul", "copy", "to_device", "from_device", "write", "read", "fsync"]
    rates: Annotated[tuple[Annotated[float, msgspec.Meta(gt=0, le=1e18)], ...], msgspec.Meta(max_length=32)]
    folder: Text = ""
    on: Text = ""
    stretch: Seconds = 0.0
    why: Text = ""


class Segments(msgspec.Struct, frozen=True, tag="segments", tag_field="ev"):
    """Address of a peer -> TCP segments with data that the rank sent there, and how many it sent again."""

    peers: Annotated[dict[Hash, tuple[Count, Count]], msgspec.Meta(max_length=4096)]


class PhaseEvent(msgspec.Struct, frozen=True, tag="phase", tag_field="ev"):
    phase: Phase


class Error(msgspec.Struct, frozen=True, tag="error", tag_field="ev"):
    """An exception that ended the rank."""

    type: Text
    text: Text
    trace: Text = ""


class BackendEvidence(msgspec.Struct, frozen=True, tag="backend", tag_field="ev"):
    """What NCCL or HCCL itself reports about a hang."""

    text: Text


class RankEnd(msgspec.Struct, frozen=True, tag="done", tag_field="ev"):
    pass


Event = (
    RankStart
    | Collectives
    | GradientBits
    | InitialParameters
    | BatchHashes
    | TrainStep
    | Audit
    | Solo
    | Transfer
    | Segments
    | CollectiveTimes
    | Alone
    | PhaseEvent
    | Error
    | BackendEvidence
    | RankEnd
)

"""What a mesh run saw: frozen values, stored in recordings as JSON and judged by checks.

Nothing here connects to anything. `encode` and `decode` are the one way to JSON and back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import msgspec

Kind = Literal["master", "hccl", "ephemeral"]
MeshShape = Literal["full", "sparse", "ring", "none"]
Outcome = Literal[
    "ok", "refused", "no-route", "dropped", "reset", "silent", "wrong-answer", "error", "untested"
]
ListenError = Literal["in-use", "not-here", "denied", "cannot-listen", "no-agent", "error"]
TroubleKind = Literal["unreached", "no-agent", "no-python", "ended", "silent", "noise"]


@dataclass(frozen=True, slots=True)
class Listener:
    """One port that a host's agent was told to listen on. `asked` 0 lets the kernel choose.

    `in-use` means that another program holds the port: nobody was told to connect to it.
    """

    host: str
    kind: Kind
    asked: int
    port: int | None
    error: ListenError | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """One source that tried to reach one listener of ours.

    `untested` says that the attempt itself could not be made or lost its meaning: it proves nothing.
    `silent` connected and then heard nothing; `wrong-answer` was answered by something else than the
    target's agent. `tries` above 1 with `ok` is a link that lost packets or an overloaded machine.
    """

    source: str
    target: str
    address: str
    port: int
    kind: Kind
    outcome: Outcome
    ms: float | None = None
    tries: int = 0
    detail: str = ""

    @property
    def failed(self) -> bool:
        return self.outcome not in ("ok", "untested")

    @property
    def tested(self) -> bool:
        return self.outcome != "untested"


@dataclass(frozen=True, slots=True)
class MeshTrouble:
    """Why a host took no part, or not all of it."""

    host: str
    kind: TroubleKind
    detail: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A host that was never asked, and why."""

    host: str
    reason: str


@dataclass(frozen=True, slots=True)
class MeshResult:
    """Everything that one mesh run saw, failures of the tools included."""

    shape: MeshShape
    head: str | None
    listeners: tuple[Listener, ...]
    links: tuple[Link, ...]
    troubles: tuple[MeshTrouble, ...]
    left_out: tuple[LeftOut, ...]
    seconds: float


def encode(result: MeshResult) -> bytes:
    return msgspec.json.encode(result)


def decode(data: bytes) -> MeshResult:
    """The inverse of `encode`; raises msgspec.ValidationError or DecodeError on anything else."""
    return msgspec.json.decode(data, type=MeshResult)

"""What a mesh run saw: frozen values, stored in recordings as JSON and judged by checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["master", "hccl", "ephemeral"]
MeshShape = Literal["full", "sparse", "ring", "none"]
Outcome = Literal[
    "ok", "refused", "no-route", "dropped", "reset", "silent", "wrong-answer", "error", "untested"
]
ListenError = Literal["in-use", "not-here", "denied", "cannot-listen", "no-agent", "error"]
TroubleKind = Literal["unreached", "no-agent", "no-python", "ended", "silent", "noise"]


@dataclass(frozen=True, slots=True)
class Listener:
    """One port that the agent of a host was asked to listen on; with `asked` 0 the kernel chooses it.

    `in-use` means that another program holds the port: no host tries to connect to it.
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

    `untested` means that the attempt could not be made or lost its meaning: it proves nothing. `silent`
    connected and received nothing; `wrong-answer` was answered by something other than the target's agent.
    `ok` after more than one of `tries` is a link that lost packets, or an overloaded machine. `unresolved`
    are gateways of the source, or the address itself, for which it asked its network (ARP) without an answer.
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
    unresolved: tuple[str, ...] = ()

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
    """A host that took no part, and why."""

    host: str
    reason: str


@dataclass(frozen=True, slots=True)
class MeshResult:
    """Everything that one mesh run saw, including failures of the tools."""

    shape: MeshShape
    head: str | None
    listeners: tuple[Listener, ...]
    links: tuple[Link, ...]
    troubles: tuple[MeshTrouble, ...]
    left_out: tuple[LeftOut, ...]
    seconds: float

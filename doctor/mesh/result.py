"""The results of a mesh run: frozen values, stored in recordings as JSON and judged by checks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from doctor.text.grouped import grouped

Kind = Literal["master", "hccl", "mccl", "ephemeral"]
"""`mccl` is the first of the ports on which MindSpore's ranks of a host listen without devices."""
MeshShape = Literal["full", "sparse", "ring", "none"]
Outcome = Literal[
    "ok", "refused", "no-route", "dropped", "reset", "silent", "wrong-answer", "error", "lost", "untested"
]
Carried = Literal["", "out", "there", "back", "both"]
ListenError = Literal["in-use", "not-here", "denied", "cannot-listen", "no-agent", "error"]
TroubleKind = Literal["unreached", "no-agent", "no-python", "ended", "silent", "noise"]


@dataclass(frozen=True, slots=True)
class Listener:
    """A port to listen on (0: the kernel chooses). If another program holds it, no host connects to it."""

    host: str
    kind: Kind
    asked: int
    port: int | None
    error: ListenError | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """The attempt of one source to reach one of our listeners.

    `untested`: it could not be made or became meaningless, and proves nothing. `silent`: connected, but no
    answer. `unresolved` are addresses (a gateway of the source, or the target) for which the source's ARP
    requests had no answer. `carried` is what became of the load of an `ok` connection, first to the target
    and then back: "out" or "back" if it was lost on that way; "both" if it got through on both; "there" if
    it was too slow to be seen on its way back; empty if there was no load. `segments` counts those that the
    source sent, and sent again.
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
    carried: Carried = ""
    segments: tuple[int, int] = (0, 0)

    @property
    def failed(self) -> bool:
        return self.outcome not in ("ok", "untested")

    @property
    def tested(self) -> bool:
        return self.outcome != "untested"

    @property
    def lost(self) -> bool:
        """Whether it connected and then lost its load."""
        return self.outcome == "ok" and self.carried in ("out", "back")

    @property
    def repeats(self) -> str:
        """How much of its load the source had to send again, in words; empty if the kernel did not count."""
        sent, again = self.segments
        return f"{again} of {sent} segments were sent again" if sent else ""

    @property
    def ways(self) -> tuple[Link, ...]:
        """The ways that its load went, each as a link from the sender to the receiver: `ok` or `lost`."""
        if self.outcome != "ok" or not self.carried:
            return ()
        there = replace(self, outcome="lost" if self.carried == "out" else "ok")
        if self.carried in ("out", "there"):
            return (there,)
        outcome: Outcome = "lost" if self.carried == "back" else "ok"
        return there, replace(self, source=self.target, target=self.source, outcome=outcome, segments=(0, 0))


Pairs = Mapping[frozenset[str], Sequence[Link]]
"""The links between two hosts, in either direction."""


@dataclass(frozen=True, slots=True)
class MeshTrouble:
    """Why a host took no part, or only some of it."""

    host: str
    kind: TroubleKind
    detail: str


@dataclass(frozen=True, slots=True)
class OmittedHost:
    """A host that took no part, and why."""

    host: str
    reason: str


@dataclass(frozen=True)
class MeshResult:
    """Everything that one mesh run saw, including failures of the tools; the links are indexed once."""

    shape: MeshShape
    head: str | None
    listeners: tuple[Listener, ...]
    links: tuple[Link, ...]
    troubles: tuple[MeshTrouble, ...]
    left_out: tuple[OmittedHost, ...]
    seconds: float
    load: int = 0
    """Bytes that each connection to an ephemeral port had to carry, each way; 0 in older recordings."""

    @cached_property
    def ways(self) -> tuple[Link, ...]:
        """What became of the loads, as links from the sender to the receiver."""
        return tuple(way for link in self.links for way in link.ways)

    @cached_property
    def tested(self) -> tuple[Link, ...]:
        return tuple(link for link in self.links if link.tested)

    @cached_property
    def between(self) -> Pairs:
        return grouped((frozenset((link.source, link.target)), link) for link in self.tested)

    @cached_property
    def met(self) -> Mapping[str, Mapping[str, Sequence[Link]]]:
        """Host -> each other host -> the tested links between the two."""
        ends = ((pair, host) for pair in self.between for host in pair)
        met = grouped((host, (other, self.between[pair])) for pair, host in ends for other in pair - {host})
        return {host: dict(own) for host, own in met.items()}

    @cached_property
    def out_of(self) -> Mapping[str, Sequence[Link]]:
        """Host -> the tested links from it."""
        return grouped((link.source, link) for link in self.tested)

    @cached_property
    def into(self) -> Mapping[str, Sequence[Link]]:
        """Host -> the tested links to it."""
        return grouped((link.target, link) for link in self.tested)

    def touching(self, hosts: Iterable[str]) -> list[Link]:
        """The tested links to or from one of these hosts."""
        ways = (way.get(host, ()) for host in hosts for way in (self.out_of, self.into))
        return list({id(link): link for links in ways for link in links}.values())

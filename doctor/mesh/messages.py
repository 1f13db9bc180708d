"""The messages of a mesh agent, and their conversion to results."""

import math
from dataclasses import asdict
from typing import Annotated, get_args

import msgspec

from doctor.agents.session import Message, decoder_of, printable
from doctor.mesh.plan import Attempt
from doctor.mesh.result import Carried, Kind, Link, Listener, ListenError, Outcome
from doctor.text.nodeset import is_ip

MOST_UNRESOLVED = 16
"""The most addresses that are kept of one message: a host has few gateways."""

_LISTEN_ERRORS: dict[str, ListenError] = {word: word for word in get_args(ListenError) if word != "no-agent"}
_OUTCOMES: dict[str, Outcome] = {word: word for word in get_args(Outcome)}
_CARRIED: dict[str, Carried] = {word: word for word in get_args(Carried)}
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**32)]


class MeshAgentReady(Message, frozen=True, tag="ready"):
    agent: str = ""


class ListenerReport(Message, frozen=True, tag="listener"):
    id: int
    port: int | None = None
    error: str | None = None
    detail: str = ""


class LinkResult(Message, frozen=True, tag="link"):
    id: int
    outcome: str = "error"
    ms: float | None = None
    tries: int = 1
    detail: str = ""
    unresolved: tuple[str, ...] = ()
    carried: str = ""
    segments: tuple[_Count, _Count] = (0, 0)


MeshMessage = MeshAgentReady | ListenerReport | LinkResult
DECODER = decoder_of(MeshMessage)


def as_listener(said: ListenerReport, host: str, kind: Kind, asked: int) -> Listener:
    port = said.port if said.error is None and said.port and 0 < said.port < 65536 else None
    error = None if port else _LISTEN_ERRORS.get(said.error or "", "error")
    return Listener(host, kind, asked, port, error, printable(said.detail))


def as_link(attempt: Attempt, said: LinkResult) -> Link:
    return Link(
        **asdict(attempt),
        outcome=_OUTCOMES.get(said.outcome, "error"),
        ms=round(said.ms, 3) if said.ms is not None and math.isfinite(said.ms) else None,
        tries=said.tries,
        detail=printable(said.detail),
        unresolved=tuple(address for address in said.unresolved if is_ip(address))[:MOST_UNRESOLVED],
        carried=_CARRIED.get(said.carried, ""),
        segments=said.segments,
    )


def untested(attempt: Attempt, why: str) -> Link:
    return as_link(attempt, LinkResult(id=0, outcome="untested", detail=why, tries=0))

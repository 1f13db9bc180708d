"""The messages of a mesh agent, and their conversion to results."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import get_args

import msgspec

from doctor.agents.session import Bye, Message, NoInterpreter, printable
from doctor.mesh.plan import Attempt
from doctor.mesh.result import Kind, Link, Listener, ListenError, Outcome
from doctor.text.nodeset import is_ip

MOST_UNRESOLVED = 16
"""A host has few gateways."""

_LISTEN_ERRORS: dict[str, ListenError] = {word: word for word in get_args(ListenError) if word != "no-agent"}
_OUTCOMES: dict[str, Outcome] = {word: word for word in get_args(Outcome)}


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


MeshMessage = MeshAgentReady | ListenerReport | LinkResult
DECODER: msgspec.json.Decoder[MeshMessage | NoInterpreter | Bye] = msgspec.json.Decoder(
    MeshMessage | NoInterpreter | Bye
)


def as_listener(said: ListenerReport, host: str, kind: Kind, asked: int) -> Listener:
    port = said.port if said.error is None and said.port and 0 < said.port < 65536 else None
    error = None if port else _LISTEN_ERRORS.get(said.error or "", "error")
    return Listener(host, kind, asked, port, error, printable(said.detail))


def as_link(
    attempt: Attempt,
    outcome: str,
    detail: str = "",
    ms: float | None = None,
    tries: int = 0,
    unresolved: Iterable[str] = (),
) -> Link:
    return Link(
        source=attempt.source,
        target=attempt.target,
        address=attempt.address,
        port=attempt.port,
        kind=attempt.kind,
        outcome=_OUTCOMES.get(outcome, "error"),
        ms=round(ms, 3) if ms is not None and math.isfinite(ms) else None,
        tries=tries,
        detail=printable(detail),
        unresolved=tuple(address for address in unresolved if is_ip(address))[:MOST_UNRESOLVED],
    )

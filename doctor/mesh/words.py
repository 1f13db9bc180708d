"""What an agent may say, decoded with types and bounded: a host's output is hostile input."""

from __future__ import annotations

import math

import msgspec

from doctor.mesh.plan import Attempt
from doctor.mesh.result import Kind, Link, Listener, ListenError, Outcome

_LISTEN_ERRORS: dict[str, ListenError] = {
    "in-use": "in-use",
    "not-here": "not-here",
    "denied": "denied",
    "cannot-listen": "cannot-listen",
}
_OUTCOMES: dict[str, Outcome] = {
    "ok": "ok",
    "refused": "refused",
    "no-route": "no-route",
    "dropped": "dropped",
    "reset": "reset",
    "silent": "silent",
    "wrong-answer": "wrong-answer",
    "untested": "untested",
}


class Said(msgspec.Struct):
    """One line of an agent."""

    say: str
    id: int = -1
    agent: str = ""
    port: int | None = None
    error: str | None = None
    outcome: str = "error"
    ms: float | None = None
    tries: int = 1
    detail: str = ""


def parse(line: bytes) -> Said | None:
    """None for whatever is no line of an agent: a greeting of the host's shell, say."""
    try:
        return msgspec.json.decode(line, type=Said)
    except msgspec.DecodeError:
        return None


def as_listener(said: Said, host: str, kind: Kind, asked: int) -> Listener:
    port = said.port if said.error is None and said.port and 0 < said.port < 65536 else None
    error = None if port else _LISTEN_ERRORS.get(said.error or "", "error")
    return Listener(host, kind, asked, port, error, short(said.detail))


def as_link(
    attempt: Attempt, outcome: str, detail: str = "", ms: float | None = None, tries: int = 0
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
        detail=short(detail),
    )


def short(text: str) -> str:
    """One printable line, of bounded length."""
    return "".join(c if c.isprintable() else " " for c in text[:200]).strip()

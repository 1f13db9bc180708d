"""The ranks of a command that doctor ends which run on other hosts: not every launcher ends them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from doctor.around.apart import apart
from doctor.around.onhost.agent import DENIED, FOREIGN, ITSELF, KILL, LAST, STUCK, TERM
from doctor.run.request import Request

if TYPE_CHECKING:
    import psutil

    from doctor.transport import Script

HOME = "doctor.around.onhost"
NEEDS = "json, threading"
BY_THEMSELVES = 3.0
"""Seconds in which a launcher that was ended may end its own ranks."""
ASKS = 30.0
"""Seconds to reach a host, and to hear from it."""
WHY = {
    DENIED: "it belongs to another user",
    FOREIGN: "nothing shows that the command started it",
    STUCK: "KILL does not end it",
}
NO_ANSWER = "its host did not answer"
Became = dict[str, dict[int, str]]
"""What became of each PID, by host."""


@dataclass(frozen=True, slots=True)
class RankElsewhere:
    """`start` is in seconds since 1970, by the clock of its host. `own`: it is of the same job as ranks
    that the command started. `bound`: it is of the same job as all others that are.
    """

    host: str
    pid: int
    rank: int | None
    start: float
    own: bool
    bound: bool = False

    @property
    def name(self) -> str:
        return f"rank {self.rank} on {self.host}" if self.rank is not None else f"{self.host} pid {self.pid}"


def ssh_ports(processes: Iterable[psutil.Process]) -> frozenset[int]:
    """The ports here of the connections of these processes: what SSH starts knows the port it came from."""
    return frozenset(port for each in processes for port in _ports(each))


def _ports(process: psutil.Process) -> set[int]:
    import psutil

    try:
        return {one.laddr.port for one in process.connections("tcp") if one.raddr}
    except psutil.Error:
        return set()


def end_elsewhere(
    request: Request, ranks: Sequence[RankElsewhere], ports: frozenset[int], grace: float
) -> tuple[str, ...]:
    """End the ranks that still run; returns what became of them, each in a sentence."""
    return apart(partial(_end, request, ranks, ports, grace))


def _end(
    request: Request, ranks: Sequence[RankElsewhere], ports: frozenset[int], grace: float
) -> tuple[str, ...]:
    from doctor.model import UnreachedHost
    from doctor.probe import new_token, through
    from doctor.run.host_session import open_session

    quiet = replace(request, command="hang", outputs=replace(request.outputs, quiet=True))
    session = open_session(quiet, os.environ)

    def ask(asked: Sequence[RankElsewhere]) -> Became:
        token, became = new_token(), {}
        scripts = {
            host.name: through(_script(token, theirs, ports, grace, host.python, sudo=request.way.sudo), host)
            for host in session.hosts
            if (theirs := [each for each in asked if each.host == host.name])
        }
        seconds = BY_THEMSELVES + grace + LAST + ASKS
        for outcome in session.transport.run(scripts, seconds, session.until):
            if not isinstance(outcome, UnreachedHost):
                became[outcome.host] = read_answer(outcome.stdout, token)
        return became

    try:
        return tuple(sentences(ranks, ended_with_others(ranks, ask)))
    finally:
        session.close()


def ended_with_others(
    ranks: Sequence[RankElsewhere], ask: Callable[[Sequence[RankElsewhere]], Became]
) -> Became:
    """What became of each. A rank that came by a jump host or another connection is known by those of its job
    that came by ours.
    """
    became = ask(ranks)
    word = {each: became.get(each.host, {}).get(each.pid) for each in ranks}
    if any(each.bound and word[each] in (TERM, KILL) for each in ranks):
        left = [replace(each, own=True) for each in ranks if each.bound and word[each] == FOREIGN]
        for host, more in (ask(left) if left else {}).items():
            became[host] = {**became[host], **more}
    return became


def _script(
    token: str,
    ranks: Sequence[RankElsewhere],
    ports: frozenset[int],
    grace: float,
    python: str | None,
    *,
    sudo: bool,
) -> Script:
    from doctor.agents.bootstrap import agent_script, by_sudo, module_texts

    script = agent_script(module_texts(HOME), f"{HOME}.agent", needs=NEEDS, python=python)
    asked = {
        "token": token,
        "ranks": [{"pid": each.pid, "start": each.start, "own": each.own} for each in ranks],
        "ports": sorted(ports),
        "itself": BY_THEMSELVES,
        "grace": grace,
    }
    stdin = script.stdin + json.dumps(asked).encode() + b"\n"
    script = replace(script, stdin=stdin, last_line=f"{token} done".encode())
    return by_sudo(script) if sudo else script


def read_answer(text: bytes, token: str) -> dict[int, str]:
    """What became of each PID. The host may be hostile: only known words count."""
    head = f"{token} ".encode()
    line = next((each for each in text.splitlines() if each.startswith(head + b"{")), head + b"{}")
    try:
        said = json.loads(line[len(head) :])
    except (ValueError, RecursionError):
        return {}
    words = (ITSELF, TERM, KILL, *WHY)
    return {
        int(pid): word for pid, word in said.items() if pid.isdecimal() and len(pid) < 12 and word in words
    }


def sentences(ranks: Sequence[RankElsewhere], became: Became) -> Iterator[str]:
    for each in ranks:
        word = became.get(each.host, {}).get(each.pid, "")
        if word in (TERM, KILL):
            yield f"{each.name} was ended too, by {word}."
        elif word != ITSELF:
            yield f"{each.name} may still run: {WHY.get(word, NO_ANSWER)}."

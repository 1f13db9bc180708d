"""One run of `doctor hang`: look at the ranks of all hosts twice and return the evidence, unjudged."""

import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace

from doctor.live.agents import LookAgents, LookHost, LookPatience, look_script
from doctor.live.evidence import LiveEvidence
from doctor.model import Host, UnreachedHost
from doctor.probe import through
from doctor.stage import Stage, Tell
from doctor.transport import Script, Transport
from doctor.transport.way import Way

PATIENCE = LookPatience()
Choose = Callable[[LiveEvidence], Mapping[str, Collection[int]] | None]
A = TypeVar("A", bound=LookAgents[Any])


@dataclass(slots=True)
class Sight:
    """What a run saw, even if it was interrupted."""

    evidence: LiveEvidence
    reasons: dict[str, UnreachedHost] = field(default_factory=dict)
    """More about the reason for each host that was not reached, and what to do."""


@dataclass(frozen=True, slots=True)
class HostsToSee:
    """Whose ranks are looked at, and how the hosts are reached."""

    hosts: Sequence[Host]
    transport: Transport
    sudo: bool = False
    way: Way | None = None
    until: float = math.inf
    patience: LookPatience = PATIENCE
    progress: Tell = lambda _: None
    choose: Choose = lambda _: None
    """Once the ranks are found, it returns the PIDs of those to look at, by host. None means all of them; if
    it returns no PID, no look is made.
    """
    pyspy: Sequence[Path] = ()
    """The files of --pyspy."""
    command: Callable[[str], Any] = lambda _: None
    """What each host is told of the command whose ranks are to be marked."""


def see(asked: HostsToSee, apart: float = 2.0) -> Sight:
    """Look at the ranks of all hosts at the same time."""
    with agents_on(asked, LookAgents[LookHost], look_script) as agents:
        if find(asked, agents):
            looking = partial(_tell_look, asked, agents, apart)
            agents.look(apart, looking)
            agents.ask_ends(looking)
    return Sight(evidence_of(agents, asked), agents.reasons)


@contextmanager
def agents_on(asked: HostsToSee, kind: type[A], script: Callable[..., Script]) -> Iterator[A]:
    """The agents on these hosts. They are always ended."""
    scripts = {host.name: through(script(host.python, sudo=asked.sudo), host) for host in asked.hosts}
    session = asked.transport.open(scripts, asked.until)
    agents = kind(session, [host.name for host in asked.hosts], asked.patience, asked.until, asked.pyspy)
    try:
        yield agents
    finally:
        try:
            agents.stop()
        finally:
            session.close()


def find(asked: HostsToSee, agents: LookAgents[Any]) -> bool:
    """Find the ranks, and keep those that are chosen. Returns whether there are any to look at."""
    agents.find(partial(_tell_search, asked, agents), asked.command)
    chosen = asked.choose(evidence_of(agents))
    if chosen:
        agents.narrow(chosen)
    return chosen is None or bool(chosen)


def _tell_search(asked: HostsToSee, agents: LookAgents[Any]) -> None:
    """Show how far the search for ranks is."""
    names = agents.agents
    answered = sum(agent.found is not None for agent in names.values())
    waiting = [a.host for a in agents.live() if a.found is None or not a.armed]
    doing, limit = f"{answered}/{len(names)} answered", agents.patience.search
    asked.progress(Stage("ranks", doing, answered, len(names), waiting=waiting, limit=limit))


def _tell_look(asked: HostsToSee, agents: LookAgents[Any], apart: float) -> None:
    waiting = [a.host for a in agents.live() if a.looking and a.seen is None]
    ranks = sum(m.helps is None for a in agents.agents.values() for m in a.members.values())
    doing, limit = f"looks at {ranks} ranks, for {apart:g} s", apart + asked.patience.whole
    asked.progress(Stage("looks", doing, waiting=waiting, limit=limit))


def evidence_of(agents: LookAgents[Any], asked: HostsToSee | None = None) -> LiveEvidence:
    """What the agents have seen so far; with how the hosts were reached, if that is `asked`."""
    seen = LiveEvidence(
        started=agents.started,
        hosts=tuple(
            agent.evidence()
            for agent in agents.agents.values()
            if agent.found is not None and agent.host not in agents.unreached
        ),
        unreached={name: agents.unreached[name] for name in agents.agents if name in agents.unreached},
        asked=tuple(agents.agents),
    )
    if asked is None:
        return seen
    name, seconds = asked.transport.name, round(time.monotonic() - agents.began, 3)
    return replace(seen, local=name == "local", transport=name, seconds=seconds, way=asked.way)

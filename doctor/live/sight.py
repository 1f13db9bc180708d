"""One run of `doctor hang`: look at the ranks of all hosts twice and return the evidence, unjudged."""

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from doctor.live.agents import LookAgents, LookPatience, look_script
from doctor.live.evidence import HostEvidence, LiveEvidence
from doctor.live.jobs.nameless import own_jobs
from doctor.model import Host, UnreachedHost
from doctor.probe import through
from doctor.stage import Stage, Tell
from doctor.transport import Transport
from doctor.transport.way import Way

PATIENCE = LookPatience()
Choose = Callable[[LiveEvidence], Mapping[str, Collection[int]] | None]


@dataclass(slots=True)
class Sight:
    """What a run saw, even if it was interrupted."""

    evidence: LiveEvidence
    reasons: dict[str, UnreachedHost] = field(default_factory=dict)
    """More about the reason for each host that was not reached, and what to do."""


def see(
    hosts: Sequence[Host],
    transport: Transport,
    apart: float = 2.0,
    *,
    sudo: bool = False,
    way: Way | None = None,
    until: float = math.inf,
    patience: LookPatience = PATIENCE,
    progress: Tell = lambda _: None,
    choose: Choose = lambda _: None,
    pyspy: Sequence[Path] = (),
    command: Callable[[str], Any] = lambda _: None,
) -> Sight:
    """Look at the ranks of all hosts at the same time. The agents are always ended.

    Once the ranks are found, `choose` returns the PIDs of those to look at, by host. None means all of them;
    if it returns no PID, no look is made. `pyspy`: the files of --pyspy.
    `command`: what each host is told of the command whose ranks are to be marked.
    """
    began = time.monotonic()
    started = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    names = [host.name for host in hosts]
    scripts = {host.name: through(look_script(host.python, sudo=sudo), host) for host in hosts}
    session = transport.open(scripts, until)
    agents = LookAgents(session, names, patience, until, pyspy)

    def looking_at() -> None:
        waiting = [a.host for a in agents.live() if a.looking and a.seen is None]
        ranks = sum(m.helps is None for a in agents.agents.values() for m in a.members.values())
        doing = f"looks at {ranks} ranks, for {apart:g} s"
        progress(Stage("looks", doing, waiting=waiting, limit=apart + patience.whole))

    try:
        agents.find(partial(tell_search, agents, progress), command)
        chosen = choose(evidence_of(started, names, agents))
        if chosen:
            agents.narrow(chosen)
        if chosen is None or chosen:
            agents.look(apart, looking_at)
            agents.ask_ends(looking_at)
    finally:
        try:
            agents.stop()
        finally:
            session.close()
    evidence = replace(
        evidence_of(started, names, agents),
        local=transport.name == "local",
        transport=transport.name,
        seconds=round(time.monotonic() - began, 3),
        way=way,
    )
    return Sight(evidence, agents.reasons)


def tell_search(agents: LookAgents, progress: Tell) -> None:
    """Show how far the search for ranks is."""
    names = agents.agents
    answered = sum(agent.found is not None for agent in names.values())
    waiting = [a.host for a in agents.live() if a.found is None or not a.armed]
    doing = f"{answered}/{len(names)} answered"
    progress(Stage("ranks", doing, answered, len(names), waiting=waiting, limit=agents.patience.search))


def evidence_of(started: str, names: Sequence[str], agents: LookAgents) -> LiveEvidence:
    seen: list[HostEvidence] = [
        agent.evidence()
        for agent in agents.agents.values()
        if agent.found is not None and agent.host not in agents.unreached
    ]
    unreached = {name: agents.unreached[name] for name in names if name in agents.unreached}
    return LiveEvidence(
        started=started, hosts=tuple(map(own_jobs, seen)), unreached=unreached, asked=tuple(names)
    )

"""One run of `doctor slow`: samples of the ranks of all hosts, in rounds, until it is clear who is late."""

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial
from pathlib import Path

from msgspec.structs import asdict, replace

from doctor.live.agents import LookPatience
from doctor.live.evidence import JobChoice, LiveEvidence
from doctor.live.sight import evidence_of, tell_search
from doctor.model import Host, UnreachedHost
from doctor.probe import through
from doctor.slow.agents import RoundPlan, SlowAgents, slow_script
from doctor.slow.evidence import MOST_ROUNDS, SlowEvidence
from doctor.stage import Stage, Tell
from doctor.transport import Transport
from doctor.transport.way import Way

Choose = Callable[[LiveEvidence], Mapping[str, Collection[int]] | None]
Next = Callable[[SlowEvidence], RoundPlan | None]


@dataclass(slots=True)
class SlowSight:
    """What a run saw, even if it was interrupted."""

    evidence: SlowEvidence
    reasons: dict[str, UnreachedHost] = field(default_factory=dict)


def see(
    hosts: Sequence[Host],
    transport: Transport,
    following: Next,
    *,
    sudo: bool = False,
    way: Way | None = None,
    choice: JobChoice,
    until: float = math.inf,
    patience: LookPatience,
    progress: Tell = lambda _: None,
    choose: Choose = lambda _: None,
    pyspy: Sequence[Path] = (),
) -> SlowSight:
    """Find the ranks of all hosts and take samples of those that `choose` returns, as in `doctor hang`.
    `following` returns the next round, or None. An interrupt ends the samples; the agents are always ended.
    """
    began = time.monotonic()
    started = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    names = [host.name for host in hosts]
    session = transport.open(
        {host.name: through(slow_script(host.python, sudo=sudo), host) for host in hosts}, until
    )
    agents = SlowAgents(session, names, patience, until, pyspy)

    def evidence() -> SlowEvidence:
        return replace(
            _evidence(started, names, agents),
            local=transport.name == "local",
            transport=transport.name,
            seconds=round(time.monotonic() - began, 3),
            way=way,
            choice=choice,
        )

    try:
        agents.find(lambda: tell_search(agents, progress))
        chosen = choose(evidence_of(started, names, agents))
        if chosen:
            agents.narrow(chosen)
        if chosen is None or chosen:
            _rounds(agents, evidence, following, progress)
    finally:
        try:
            agents.stop()
        finally:
            session.close()
    return SlowSight(evidence(), agents.reasons)


def _rounds(
    agents: SlowAgents, evidence: Callable[[], SlowEvidence], following: Next, progress: Tell
) -> None:
    agents.await_all(time.monotonic() + agents.patience.search, lambda host: host.armed, lambda: None)
    sampled = 0.0
    try:
        for number in range(MOST_ROUNDS):
            plan = following(evidence())
            if plan is None or time.monotonic() + plan.seconds >= agents.until:
                return
            agents.ping()
            words = f"looks often, for {plan.seconds:.0f} s" + (f" after {sampled:.0f} s" if sampled else "")
            agents.sample(number, plan, partial(_tell, progress, Stage("samples", words, limit=plan.seconds)))
            sampled += plan.seconds
    except KeyboardInterrupt:
        if not sampled:
            raise


def _tell(progress: Tell, stage: Stage) -> None:
    progress(stage)


def _evidence(started: str, names: Sequence[str], agents: SlowAgents) -> SlowEvidence:
    looks = evidence_of(started, names, agents)
    seen = {host.host for host in looks.hosts}
    samples = tuple(host.samples() for host in agents.slow_hosts() if host.host in seen)
    return SlowEvidence(**asdict(looks), samples=samples)

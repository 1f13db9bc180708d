"""One run of `doctor slow`: samples of the ranks of all hosts, in rounds, until it is clear who is late."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from msgspec.structs import asdict

from doctor.live.evidence import JobChoice
from doctor.live.sight import HostsToSee, Sight, agents_on, evidence_of, find
from doctor.slow.agents import RoundPlan, SlowAgents, slow_script
from doctor.slow.evidence import MOST_ROUNDS, SlowEvidence
from doctor.stage import Stage, Tell

Next = Callable[[SlowEvidence], RoundPlan | None]


@dataclass(slots=True)
class SlowSight(Sight):
    evidence: SlowEvidence


def see(asked: HostsToSee, following: Next, choice: JobChoice) -> SlowSight:
    """Find the ranks of all hosts and take samples of those that are chosen. `following` returns the next
    round, or None. An interrupt ends the samples.
    """
    with agents_on(asked, SlowAgents, slow_script) as agents:
        if find(asked, agents):
            _rounds(agents, lambda: _evidence(agents, asked, choice), following, asked.progress)
    return SlowSight(_evidence(agents, asked, choice), agents.reasons)


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
            agents.sample(number, plan, partial(progress, Stage("samples", words, limit=plan.seconds)))
            sampled += plan.seconds
    except KeyboardInterrupt:
        if not sampled:
            raise


def _evidence(agents: SlowAgents, asked: HostsToSee, choice: JobChoice) -> SlowEvidence:
    looks = evidence_of(agents, asked)
    seen = {host.host for host in looks.hosts}
    samples = tuple(host.samples() for host in agents.agents.values() if host.host in seen)
    return SlowEvidence(**{**asdict(looks), "choice": choice}, samples=samples)

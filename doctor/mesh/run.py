"""Let the agents of a session find out which hosts reach each other, and stop them in any case.

Rounds: all agents listen; they try the plan's links at once; links that failed or lost their load are tried
once more, when everything else is quiet and with more patience, so that an overloaded machine is not mistaken
for a firewall; on a sparse plan the pairs around undecided suspects are tried too. A message that was not
requested from an agent is ignored.
"""

import math
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files

from doctor.agents.bootstrap import agent_script, module_texts
from doctor.agents.session import AgentPatience, AgentSession, Loss, RemoteAgent, printable
from doctor.mesh.culprits import widen
from doctor.mesh.messages import (
    DECODER,
    LinkResult,
    ListenerReport,
    MeshAgentReady,
    MeshMessage,
    as_link,
    as_listener,
    untested,
)
from doctor.mesh.plan import Attempt, MeshNode, MeshPlan, attempts, master_attempts, wanted_ports
from doctor.mesh.result import Kind, Link, Listener, MeshResult, MeshTrouble, TroubleKind
from doctor.model import UnreachedHost
from doctor.stage import Stage, Tell
from doctor.transport import Script, Session
from doctor.transport.question import MeshQuestion

AGENT = "doctor.mesh.agent"
WIDENINGS = 2
IN_FLIGHT = 256  # equal to MOST in agent.py
LOAD = 65536
"""Bytes that a connection carries each way, to try packets of full size: a handshake has small ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeshPatience(AgentPatience):
    """Seconds. The kernel repeats a lost SYN after one second: every limit leaves time for one repeat."""

    connect: float = 1.5
    answer: float = 3.0
    tries: int = 2
    again: float = 2.0
    answer_again: float = 6.0
    slack: float = 10.0


QUICK = MeshPatience(
    start=5.0, connect=0.7, answer=1.5, tries=1, again=1.3, answer_again=2.0, slack=2.0, stop=1.0
)
"""For a mesh among hosts whose agents have just answered."""


@dataclass(slots=True)
class _MeshAgent(RemoteAgent):
    """`ports` and `calls` are the requests that it has not answered yet."""

    node: MeshNode = field(kw_only=True)
    ports: dict[int, tuple[Kind, int]] = field(default_factory=dict)
    calls: dict[int, Attempt] = field(default_factory=dict)


def mesh_script(python: str | None = None) -> Script:
    """Start the agent; `python` is the preferred interpreter. Keep the session's stdin open after this."""
    agent = {AGENT: module_texts("doctor.mesh")[AGENT]}
    bash = files("doctor.mesh").joinpath("bash_agent.sh").read_bytes()
    script = agent_script(agent, AGENT, needs="selectors, socket", python=python, bash=bash)
    return replace(script, question=MeshQuestion())


def run_mesh(
    session: Session,
    plan: MeshPlan,
    patience: MeshPatience = MeshPatience(),
    progress: Tell = lambda _: None,
    until: float = math.inf,
) -> MeshResult:
    """Run the plan, and always close the session. Links that were not tried before `until` stay untested."""
    run = _Run(session, plan, patience, progress, until)
    try:
        return run.all_rounds()
    finally:
        try:
            run.stop()
        finally:
            session.close()


class _Run(AgentSession[_MeshAgent, MeshMessage]):
    decoder, beat, last = DECODER, b"beat", b"stop"

    def __init__(
        self, session: Session, plan: MeshPlan, patience: MeshPatience, progress: Tell, until: float
    ) -> None:
        agents = {node.host: _MeshAgent(node.host, node=node) for node in plan.nodes}
        super().__init__(session, agents, patience, until)
        self.plan = plan
        self.patience = patience
        self.progress = progress
        self.listeners: list[Listener] = []
        self.links: list[Link] = []
        self.troubles: dict[tuple[str, TroubleKind], MeshTrouble] = {}
        self.serial = 0
        self.round = Stage("network", "")

    def all_rounds(self) -> MeshResult:
        began = time.monotonic()
        plan, patience = self.plan, self.patience
        self._listen()
        todo = (*attempts(plan, plan.pairs, self.listeners), *master_attempts(plan, self.listeners))
        links = self._connect(
            f"connections between {len(plan.nodes)} hosts", todo, patience.connect, patience.answer
        )
        failed = [link for link in links if link.failed or link.lost]
        if failed and time.monotonic() >= self.until:
            # One failure is not enough to blame a host.
            late = "the deadline came before it could be tried again"
            links = [_drop_failure(link, late) if link.failed or link.lost else link for link in links]
        elif failed:
            second = self._connect(
                "failed connections once more",
                [*map(_attempt, failed)],
                patience.again,
                patience.answer_again,
            )
            links = _merge(links, second)
        for _ in range(WIDENINGS if plan.shape in ("sparse", "ring") else 0):
            more = attempts(plan, widen([n.host for n in plan.nodes], self._sound(links)), self.listeners)
            if not more:
                break
            links += self._connect(
                "connections around the suspects", more, patience.again, patience.answer_again
            )
        return MeshResult(
            shape=plan.shape,
            head=plan.head,
            listeners=tuple(self.listeners),
            links=tuple(self._sound(links)),
            troubles=tuple(self.troubles.values()),
            left_out=plan.left_out,
            seconds=round(time.monotonic() - began, 3),
            load=LOAD,
        )

    def _listen(self) -> None:
        token = secrets.token_hex(16)
        for host, agent in self.agents.items():
            self._send(host, "hello", token, agent.node.number, self.patience.lease)
            for kind, port in wanted_ports(self.plan, agent.node):
                agent.ports[self._next()] = (kind, port)
                self._send(host, "listen", self.serial, port, agent.node.address)
        began = time.monotonic()
        deadline = min(began + self.patience.start, self.until)
        self.hear_until(deadline, lambda: all(agent.ready and not agent.ports for agent in self.live()))
        waited = time.monotonic() - began
        for host, agent in self.agents.items():
            if not agent.ready and not agent.gone:
                heard = f"; it printed: {' | '.join(agent.noise[:3])}" if agent.noise else ""
                self._trouble(host, "no-agent", f"no agent within {round(waited, 1):g} s{heard}")
            for kind, port in agent.ports.values():
                self.listeners.append(Listener(host, kind, port, None, "no-agent"))
            agent.ports.clear()
            if not agent.ready:
                self.ignore(agent)

    def _connect(self, what: str, todo: Sequence[Attempt], limit: float, answer: float) -> list[Link]:
        """Try all of these at once. A host that does not report a result leaves an untested link."""
        self.links = []
        tries = self.patience.tries
        most = 0
        for attempt in todo:
            agent = self.agents[attempt.source]
            if agent.gone:
                self.links.append(untested(attempt, f"no agent runs on {attempt.source}"))
                continue
            agent.calls[self._next()] = attempt
            most = max(most, len(agent.calls))
            number = self.agents[attempt.target].node.number
            load = LOAD if attempt.kind == "ephemeral" else 0
            call = (self.serial, limit, answer, tries, number, attempt.port, attempt.address, load)
            self._send(attempt.source, "connect", *call)
        longest = math.ceil(most / IN_FLIGHT) * (limit * tries + answer) + self.patience.slack
        self.round = Stage("network", what, of=len(todo), part=what, limit=longest)
        self._show()
        deadline = min(time.monotonic() + longest, self.until)
        self.hear_until(deadline, lambda: not any(agent.calls for agent in self.live()))
        for host, agent in self.agents.items():
            if agent.calls and not agent.gone:
                self._trouble(host, "silent", f"{len(agent.calls)} connections were never reported")
            for attempt in agent.calls.values():
                self.links.append(untested(attempt, f"{host} did not report the result"))
            agent.calls.clear()
        return self.links

    def _sound(self, links: Sequence[Link]) -> list[Link]:
        """The links; failed connections to a lost agent are untested, because they prove nothing."""
        return [
            _drop_failure(link, f"the agent on {link.target} ended during the run")
            if (link.failed or link.lost) and self.agents[link.target].gone
            else link
            for link in links
        ]

    def _show(self) -> None:
        """Show the progress at most a hundred times per round, because listing the waiting hosts is slow."""
        tried, of = len(self.links), self.round.of
        if (tried * 100) // max(1, of) > self.round.moves or not tried:
            waiting = [host for host, agent in self.agents.items() if agent.calls and not agent.gone]
            self.round = replace(self.round, done=tried, moves=(tried * 100) // max(1, of), waiting=waiting)
            self.progress(replace(self.round, doing=f"{tried}/{of} {self.round.doing}"))

    def _next(self) -> int:
        self.serial += 1
        return self.serial

    def _send(self, host: str, *words: str | int | float) -> None:
        self.session.send(host, " ".join(map(str, words)).encode("ascii"))

    def _trouble(self, host: str, kind: TroubleKind, detail: str) -> None:
        self.troubles.setdefault((host, kind), MeshTrouble(host, kind, detail))

    def lose(self, agent: _MeshAgent, how: Loss, detail: str, _: UnreachedHost | None) -> None:
        if self.excused:
            detail = "this program was stopped for longer than an agent waits"
        self._trouble(agent.host, "no-agent" if how == "ended" and not agent.ready else how, detail)

    def take(self, agent: _MeshAgent, message: MeshMessage, _size: int) -> bool:
        if isinstance(message, MeshAgentReady) and not agent.ready:
            agent.ready = True
            if not message.agent.startswith("python"):
                only = printable(message.agent)
                why = f"only {only}: it connects, but cannot listen, so no host tried to reach it"
                self._trouble(agent.host, "no-python", why)
        elif isinstance(message, ListenerReport) and message.id in agent.ports:
            self.listeners.append(as_listener(message, agent.host, *agent.ports.pop(message.id)))
        elif isinstance(message, LinkResult) and message.id in agent.calls:
            self.links.append(as_link(agent.calls.pop(message.id), message))
            self._show()
        else:
            return False
        return True


def _attempt(link: Link) -> Attempt:
    return Attempt(link.source, link.target, link.address, link.port, link.kind)


def _drop_failure(link: Link, why: str) -> Link:
    """The link without the part that proves nothing: its failure, or the fate of its load."""
    return replace(link, outcome="untested", detail=why) if link.failed else replace(link, carried="")


def _merge(first: Sequence[Link], second: Sequence[Link]) -> list[Link]:
    """The second result replaces the first if there is one; the tries add up."""
    again = {_attempt(link): link for link in second if link.tested}
    return [
        replace(newer, tries=link.tries + newer.tries) if (newer := again.get(_attempt(link))) else link
        for link in first
    ]

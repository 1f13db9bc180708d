"""Lets the agents of a session find out who reaches whom, and stops them whatever happens.

Rounds: all listen; all try the plan's links at once; what failed is tried once more, when everything else is
quiet and with more patience, so that an overloaded machine is not taken for a firewall; on a sparse plan the
pairs around undecided suspects are tried too. What an agent says is decoded with types and believed only
where it was asked.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from doctor.mesh.culprits import widen
from doctor.mesh.plan import Attempt, MeshPlan, Node, attempts, master_attempts, wanted_ports
from doctor.mesh.result import Kind, Link, Listener, MeshResult, Trouble, TroubleKind
from doctor.mesh.words import Said, as_link, as_listener, parse, short
from doctor.transport import Ended, Session

WIDENINGS = 2
IN_FLIGHT = 256  # MOST in agent.py
MOST_NOISE = 200


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds. A lost SYN is repeated by the kernel after one second: every limit lets one repeat through."""

    start: float = 25.0
    connect: float = 1.5
    answer: float = 3.0
    tries: int = 2
    again: float = 2.0
    answer_again: float = 6.0
    beat: float = 2.0
    lease: float = 10.0
    stop: float = 2.0
    slack: float = 10.0


@dataclass(slots=True)
class _Peer:
    """The controller's view of one host's agent."""

    node: Node
    ready: bool = False
    gone: bool = False
    noise: list[str] = field(default_factory=list)
    ports: dict[int, tuple[Kind, int]] = field(default_factory=dict)
    calls: dict[int, Attempt] = field(default_factory=dict)


def run_mesh(
    session: Session,
    plan: MeshPlan,
    patience: Patience = Patience(),
    progress: Callable[[str], None] | None = None,
    until: float = math.inf,
) -> MeshResult:
    """Run the plan over a session whose hosts were started with `mesh_script`. Always closes the session.

    What was not tried by `until` (of time.monotonic) stays untested.
    """
    run = _Run(session, plan, patience, progress or (lambda _: None), until)
    try:
        return run.all_rounds()
    finally:
        try:
            run.stop()
        finally:
            session.close()


class _Run:
    def __init__(
        self,
        session: Session,
        plan: MeshPlan,
        patience: Patience,
        progress: Callable[[str], None],
        until: float,
    ) -> None:
        self.until = until
        self.session = session
        self.plan = plan
        self.patience = patience
        self.progress = progress
        self.peers = {node.host: _Peer(node) for node in plan.nodes}
        self.listeners: list[Listener] = []
        self.links: list[Link] = []
        self.troubles: dict[tuple[str, TroubleKind], Trouble] = {}
        self.serial = 0
        self.beat_at = 0.0

    def all_rounds(self) -> MeshResult:
        began = time.monotonic()
        plan, patience = self.plan, self.patience
        self._listen()
        todo = (*attempts(plan, plan.pairs, self.listeners), *master_attempts(plan, self.listeners))
        self.progress(f"{len(todo)} connections between {len(plan.nodes)} hosts")
        links = self._connect(todo, patience.connect, patience.answer)
        failed = [link for link in links if link.failed]
        if failed and time.monotonic() >= self.until:
            links = [_undone(link) if link.failed else link for link in links]
        elif failed:
            self.progress(f"{len(failed)} failed; trying those once more")
            second = self._connect(map(_attempt, failed), patience.again, patience.answer_again)
            links = _merge(links, second)
        for _ in range(WIDENINGS if plan.shape in ("sparse", "ring") else 0):
            more = attempts(plan, widen([n.host for n in plan.nodes], self._sound(links)), self.listeners)
            if not more:
                break
            self.progress(f"{len(more)} more connections around the suspects")
            links += self._connect(more, patience.again, patience.answer_again)
        return MeshResult(
            shape=plan.shape,
            head=plan.head,
            listeners=tuple(self.listeners),
            links=tuple(self._sound(links)),
            troubles=tuple(self.troubles.values()),
            left_out=plan.left_out,
            seconds=round(time.monotonic() - began, 3),
        )

    def stop(self) -> None:
        """Tell every agent to stop and hear that it did: only then are the job's ports surely free again."""
        for peer in self._live():
            self.session.send(peer.node.host, b"stop")
        deadline = time.monotonic() + self.patience.stop
        while any(self._live()) and time.monotonic() < deadline:
            self._hear(deadline, stopping=True)

    def _listen(self) -> None:
        token = secrets.token_hex(16)
        for host, peer in self.peers.items():
            self._send(host, "hello", token, peer.node.number, self.patience.lease)
            for kind, port in wanted_ports(self.plan, peer.node):
                peer.ports[self._next()] = (kind, port)
                self._send(host, "listen", self.serial, port, peer.node.address)
        began = time.monotonic()
        deadline = min(began + self.patience.start, self.until)
        while any(peer.ports or not peer.ready for peer in self._live()) and time.monotonic() < deadline:
            self._hear(deadline)
        waited = time.monotonic() - began
        for host, peer in self.peers.items():
            if not peer.ready and not peer.gone:
                heard = f"; it printed: {' | '.join(peer.noise[:3])}" if peer.noise else ""
                self._trouble(host, "no-agent", f"no agent within {round(waited, 1):g} s{heard}")
            for kind, port in peer.ports.values():
                self.listeners.append(Listener(host, kind, port, None, "no-agent"))
            peer.ports.clear()
            if not peer.ready:
                peer.gone = True

    def _connect(self, todo: Iterable[Attempt], limit: float, answer: float) -> list[Link]:
        """Try all of these at once. Whoever cannot say how it went leaves an untested link."""
        before = len(self.links)
        tries = self.patience.tries
        most = 0
        for attempt in todo:
            peer = self.peers[attempt.source]
            if peer.gone:
                self.links.append(as_link(attempt, "untested", f"no agent runs on {attempt.source}"))
                continue
            peer.calls[self._next()] = attempt
            most = max(most, len(peer.calls))
            number = self.peers[attempt.target].node.number
            call = (self.serial, limit, answer, tries, number, attempt.port, attempt.address)
            self._send(attempt.source, "connect", *call)
        batches = math.ceil(most / IN_FLIGHT)
        deadline = min(
            time.monotonic() + batches * (limit * tries + answer) + self.patience.slack, self.until
        )
        while any(peer.calls for peer in self._live()) and time.monotonic() < deadline:
            self._hear(deadline)
        for host, peer in self.peers.items():
            if peer.calls and not peer.gone:
                self._trouble(host, "silent", f"{len(peer.calls)} connections were never reported")
            for attempt in peer.calls.values():
                self.links.append(as_link(attempt, "untested", f"no word from {host} on how it went"))
            peer.calls.clear()
        new = self.links[before:]
        del self.links[before:]
        return new

    def _sound(self, links: Sequence[Link]) -> list[Link]:
        """Failures towards an agent that is gone say nothing about the network."""
        return [
            replace(link, outcome="untested", detail=f"the agent on {link.target} ended during the run")
            if link.failed and self.peers[link.target].gone
            else link
            for link in links
        ]

    def _live(self) -> list[_Peer]:
        return [peer for peer in self.peers.values() if not peer.gone]

    def _next(self) -> int:
        self.serial += 1
        return self.serial

    def _send(self, host: str, *words: str | int | float) -> None:
        self.session.send(host, " ".join(map(str, words)).encode("ascii"))

    def _trouble(self, host: str, kind: TroubleKind, detail: str) -> None:
        self.troubles.setdefault((host, kind), Trouble(host, kind, detail))

    def _hear(self, deadline: float, stopping: bool = False) -> None:
        """Keep the leases alive and take in the next thing that is said."""
        now = time.monotonic()
        if now >= self.beat_at:
            self.beat_at = now + self.patience.beat
            for peer in self._live():
                self.session.send(peer.node.host, b"beat")
        event = self.session.receive(max(0.0, min(deadline, self.beat_at) - now))
        peer_of = self.peers.get(event.host) if event else None
        if event is None or peer_of is None or peer_of.gone:
            return
        if isinstance(event, Ended):
            peer_of.gone = True
            if not stopping:
                self._ended(event, peer_of)
            return
        said = parse(event.text)
        if said is None or not self._said(peer_of, said):
            self._noise(peer_of, event.text)

    def _ended(self, event: Ended, peer: _Peer) -> None:
        if event.unreached is not None:
            self._trouble(event.host, "unreached", event.unreached.summary)
            return
        last = event.stderr.decode("utf-8", "replace").strip().splitlines()[-3:]
        said = short(" | ".join(last or peer.noise[-3:]))
        self._trouble(
            event.host,
            "ended" if peer.ready else "no-agent",
            f"the agent ended early (exit status {event.rc}){': ' + said if said else ''}",
        )

    def _said(self, peer: _Peer, said: Said) -> bool:
        """Take in what an agent says. False when it says what it was not asked."""
        host = peer.node.host
        if said.say == "ready":
            peer.ready = True
            if not said.agent.startswith("python"):
                why = f"only {short(said.agent)}: it can connect but not listen, so nobody tried to reach it"
                self._trouble(host, "no-python", why)
        elif said.say == "none":
            self._trouble(host, "no-agent", short(said.detail))
            peer.gone = True
        elif said.say == "bye":
            peer.gone = True
        elif said.say == "listener" and said.id in peer.ports:
            self.listeners.append(as_listener(said, host, *peer.ports.pop(said.id)))
        elif said.say == "link" and said.id in peer.calls:
            call = peer.calls.pop(said.id)
            self.links.append(as_link(call, said.outcome, said.detail, said.ms, said.tries))
        else:
            return False
        return True

    def _noise(self, peer: _Peer, text: bytes) -> None:
        """A greeting printed by the host's shell is ignored; a flood of lines is not."""
        if not text.strip():
            return
        peer.noise.append(short(text.decode("utf-8", "replace")))
        if len(peer.noise) > MOST_NOISE:
            self._trouble(
                peer.node.host, "noise", f"it printed more than {MOST_NOISE} lines that are no answer"
            )
            peer.gone = True


def _undone(link: Link) -> Link:
    """One failure is not enough to blame anybody."""
    return replace(link, outcome="untested", detail="the deadline came before it could be tried again")


def _attempt(link: Link) -> Attempt:
    return Attempt(link.source, link.target, link.address, link.port, link.kind)


def _merge(first: Sequence[Link], second: Sequence[Link]) -> list[Link]:
    """The second verdict replaces the first, unless it is none; the tries add up."""
    again = {_attempt(link): link for link in second if link.tested}
    merged: list[Link] = []
    for link in first:
        newer = again.get(_attempt(link))
        merged.append(replace(newer, tries=link.tries + newer.tries) if newer else link)
    return merged

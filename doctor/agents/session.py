"""The conversation with an agent on each of several hosts, which may be hostile: leases, messages, noise."""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Literal, TypeVar

import msgspec

from doctor.model import UnreachedHost
from doctor.text.redact import redact
from doctor.transport import Line, Session, SessionEnd

MOST_NOISE = 200
MOST_SHOWN = 200
MOST_READ = 4000
LAST_PATIENCE = 0.5
"""Agents get at least this many seconds to end, even if the run has no time left."""
ALONE = 0.8
"""If the controller was silent for this share of a lease, it excuses agents that have ended."""


class Message(msgspec.Struct, frozen=True, tag_field="say"):
    """A message of an agent: one JSON line."""


class NoInterpreter(Message, frozen=True, tag="none"):
    """The bootstrap found nothing that could run the agent."""

    detail: str = ""


class Bye(Message, frozen=True, tag="bye"):
    """The last message of an agent."""


def decoder_of(messages: Any) -> msgspec.json.Decoder[Any]:
    """Decodes these messages of an agent, and those that every agent may send."""
    return msgspec.json.Decoder(messages | NoInterpreter | Bye)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPatience:
    """Time limits in seconds. An agent ends `lease` after the last line to it; one is sent every `beat`."""

    start: float = 25.0
    beat: float = 2.0
    lease: float = 10.0
    stop: float = 2.0


@dataclass(slots=True)
class RemoteAgent:
    """The controller's view of one host's agent."""

    host: str
    ready: bool = False
    gone: bool = False
    mute: bool = False
    """Whether it is no longer expected to answer."""
    spoke: bool = False
    unasked: int = 0
    """The number of lines that are not answers, empty ones included."""
    noise: list[str] = field(default_factory=list)
    """The text of these lines."""


Loss = Literal["unreached", "ended", "noise"]
A = TypeVar("A", bound=RemoteAgent)
M = TypeVar("M")


class AgentSession(ABC, Generic[A, M]):
    """The conversation with all agents. Subclasses handle their messages and the loss of an agent."""

    decoder: ClassVar[msgspec.json.Decoder[Any]]
    """Decodes M, NoInterpreter and Bye."""
    beat: ClassVar[bytes]
    last: ClassVar[bytes]
    """The line that ends an agent."""

    def __init__(
        self, session: Session, agents: Mapping[str, A], lease: AgentPatience, until: float = math.inf
    ) -> None:
        """`until`: when the whole run ends, by time.monotonic()."""
        self.session = session
        self.until = until
        self.agents = agents
        self.stopping = False
        self._lease = lease
        self._beat_at = self._excused_until = 0.0
        self._beaten = time.monotonic()

    @abstractmethod
    def take(self, agent: A, message: M, size: int) -> bool:
        """Handle a message of `size` bytes. False if the agent was not asked for it."""

    @abstractmethod
    def lose(self, agent: A, how: Loss, detail: str, unreached: UnreachedHost | None) -> None:
        """Handle the loss of an agent that was not asked to stop."""

    @property
    def excused(self) -> bool:
        """Whether agents may have ended because the controller was silent, for example suspended."""
        return time.monotonic() < self._excused_until

    def live(self) -> list[A]:
        return [agent for agent in self.agents.values() if not agent.gone]

    def expected(self) -> list[A]:
        return [agent for agent in self.live() if not agent.mute]

    def tell_all(self, line: bytes) -> None:
        for agent in self.live():
            self.session.send(agent.host, line)

    def stop(self) -> None:
        """Ask every agent to stop, and wait until all have stopped: only then is nothing of the run left."""
        self.stopping = True
        self.tell_all(self.last)
        now = time.monotonic()
        patience = max(LAST_PATIENCE, min(self._lease.stop, self.until - now))
        self.hear_until(now + patience, lambda: not self.expected())

    def hear_until(self, deadline: float, over: Callable[[], bool]) -> None:
        while not over() and time.monotonic() < deadline:
            self.hear(deadline)

    def hear(self, deadline: float) -> bool:
        """Keep the leases alive and handle the next event before `deadline`; False if there was none."""
        now = time.monotonic()
        self._note_absence(now)
        if now >= self._beat_at:
            self._beat_at, self._beaten = now + self._lease.beat, now
            self.tell_all(self.beat)
        event = self.session.receive(max(0.0, min(deadline, self._beat_at) - now))
        if event is None:
            return False
        self._note_absence(time.monotonic())
        agent = self.agents.get(event.host)
        if agent is not None and not agent.gone:
            agent.spoke = True
            if isinstance(event, SessionEnd):
                self._ended(agent, event)
            else:
                self._line(agent, event)
        return True

    def _note_absence(self, now: float) -> None:
        if now - self._beaten >= ALONE * self._lease.lease:
            self._excused_until = now + self._lease.lease

    def _line(self, agent: A, line: Line) -> None:
        try:
            message = self.decoder.decode(line.text)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            message = None
        if isinstance(message, NoInterpreter | Bye):
            why = printable(message.detail) if isinstance(message, NoInterpreter) else "its agent ended early"
            self._drop(agent, "ended", why)
        elif message is None or not self.take(agent, message, len(line.text)):
            agent.unasked += 1
            if words := printable(line.text[:MOST_READ].decode("utf-8", "replace")):
                agent.noise.append(words)
            if agent.unasked > MOST_NOISE:
                self._drop(agent, "noise", f"it printed more than {MOST_NOISE} lines that are not answers")

    def _ended(self, agent: A, event: SessionEnd) -> None:
        if event.unreached is not None:
            self._drop(agent, "unreached", event.unreached.summary, event.unreached)
            return
        last = event.stderr.decode("utf-8", "replace").strip().splitlines()[-3:] or agent.noise[-3:]
        words = f": {' | '.join(map(printable, last))}" if last else ""
        self._drop(agent, "ended", f"its agent ended early (exit status {event.rc}){words}")

    def _drop(self, agent: A, how: Loss, detail: str, unreached: UnreachedHost | None = None) -> None:
        self.ignore(agent)
        if not self.stopping:
            self.lose(agent, how, detail, unreached)

    def ignore(self, agent: A) -> None:
        """Stop listening to the agent and end it: it may still send a lot."""
        agent.gone = True
        self.session.end(agent.host)


def printable(text: str) -> str:
    """The text as one printable line of bounded length, without what looks like a secret."""
    text = redact(text[:MOST_READ])[:MOST_SHOWN]
    return "".join(c if c.isprintable() else " " for c in text).strip()

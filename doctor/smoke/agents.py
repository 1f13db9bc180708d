"""The agents of a smoke run: how they get to hosts, their commands, and the handling of their messages."""

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

import msgspec

from doctor.agents.bootstrap import agent_script, module_texts
from doctor.agents.session import AgentSession, Loss
from doctor.model import UnreachedHost, UnreachedKind
from doctor.smoke import messages
from doctor.smoke.events import BackendEvidence
from doctor.smoke.live import LiveHost
from doctor.smoke.result import ON_CPU, Exit, SmokePlan
from doctor.smoke.watch import Watch
from doctor.transport import Script, Session
from doctor.transport.question import SmokeQuestion

BEFORE_BACKEND = ("spawned", "start", "ready", "join")
SLICE = 0.25
"""Seconds of listening at a time."""
MOST_SILENCE = 2 * SLICE
"""The most seconds of silence that one turn counts: a controller that did not listen heard no silence."""
PAGE = 4096
"""Bytes. A longer message counts as several."""
LINES_OF_A_HOST, LINES_OF_A_RANK, LINES_A_STEP, LOOKS_A_SECOND = 100, 200, 8, 200
OUR_OWN = (UnreachedKind.CONTROLLER, UnreachedKind.DEADLINE)
HOME = "doctor.smoke.onhost"
NEEDS = "ctypes, fcntl, mmap, resource, select"


def smoke_script(python: str | None = None, modules: Mapping[str, str] | None = None) -> Script:
    """Start the agent, if possible with `python`. Keep the session's stdin open after this."""
    changed = {f"{HOME}.{name}": text for name, text in (modules or {}).items()}
    script = agent_script({**module_texts(HOME), **changed}, f"{HOME}.agent", needs=NEEDS, python=python)
    return replace(script, question=SmokeQuestion())


class SmokeAgents(AgentSession[LiveHost, messages.SmokeMessage]):
    """Passes what hosts report on to `watch`."""

    decoder, beat, last = messages.DECODER, b'{"do":"beat"}', b'{"do":"stop"}'

    def __init__(self, session: Session, watch: Watch, began: float, until: float = math.inf) -> None:
        super().__init__(session, watch.hosts, watch.patience, until)
        self.watch = watch
        self.plan: SmokePlan = watch.plan
        self.patience = watch.patience
        self.began = began
        self.ports: dict[int | None, int] = {}
        """Cell -> the port at which its ranks meet; None stands for all cells."""
        self.looks = 0
        self._ranks_on = Counter(seat.host for seat in self.plan.seats)
        self._stacks_of: set[str] = set()
        self._listened = time.monotonic()

    def send(self, host: str, what: messages.AgentCommand) -> None:
        self.session.send(host, msgspec.json.encode(what))

    def port(self, cell: int) -> int | None:
        """Where the ranks of a cell meet; None while it is not known."""
        return self.ports.get(cell, self.ports.get(None))

    # Asking.

    def look(self) -> list[LiveHost]:
        """Ask for fresh pages of all ranks; returns the agents that did not answer."""
        self.looks += 1
        wanted = self.looks
        self._ask(messages.LookCommand(wanted), lambda host: host.looked >= wanted)
        missing = [host for host in self.live() if host.looked < wanted]
        for host in self.live():
            host.unanswered = host.unanswered + 1 if host in missing else 0
        return missing

    def take_stacks(self) -> None:
        self._ask(messages.StacksCommand(), self._has_evidence)

    def _has_evidence(self, host: LiveHost) -> bool:
        """Whether its stacks have arrived, and the backend's own report of each rank that has joined."""
        joined = [
            rank
            for rank in (self.watch.ranks[seat.rank] for seat in self.plan.on(host.host))
            if self.plan.backend not in ON_CPU and rank.exit is None and rank.phase not in BEFORE_BACKEND
        ]
        return host.host in self._stacks_of and all(rank.reports[BackendEvidence] for rank in joined)

    def _ask(self, what: messages.AgentCommand, answered: Callable[[LiveHost], bool]) -> None:
        self.tell_all(msgspec.json.encode(what))
        deadline = min(time.monotonic() + self.patience.look, self.until)
        self.hear_until(deadline, lambda: all(map(answered, self.expected())))

    # Listening.

    def hear(self, deadline: float) -> bool:
        """Listen until `deadline` or a silence; returns if all was handled: only then may it be judged."""
        now = time.monotonic()
        more, enough = super().hear(min(deadline, now + SLICE)), time.monotonic() + SLICE
        while more:
            if time.monotonic() >= enough:
                return False
            more = super().hear(0.0)
        self._count_silence()
        return True

    def _count_silence(self) -> None:
        now = time.monotonic()
        passed, self._listened = min(now - self._listened, MOST_SILENCE), now
        for host in self.live():
            host.silence = 0.0 if host.spoke else host.silence + passed
            host.spoke = False

    def lose(self, host: LiveHost, _: Loss, detail: str, unreached: UnreachedHost | None) -> None:
        if self.excused or (unreached and unreached.kind in OUR_OWN):
            self.watch.abandoned = True
        elif unreached is not None:
            host.lost = unreached
        else:
            host.trouble = host.trouble or detail

    def take(self, host: LiveHost, said: messages.SmokeMessage, size: int) -> bool:
        now = time.monotonic()
        host.said += 1 + size // PAGE
        if host.said > self._most(host, now):
            return False
        said = messages.redacted(said)
        if isinstance(said, messages.AgentLine | messages.RankExit):
            self._take_from_rank(said, host, now, size)
        elif isinstance(said, messages.Pages):
            self.watch.pages(host, said, now)
        elif isinstance(said, messages.SmokeAgentReady):
            host.ready_at = host.ready_at if host.ready else now
            host.ready, host.heard["cores"], host.heard["load"] = True, said.cores, said.load
        elif isinstance(said, messages.FrameworkImport):
            host.imported_at, host.heard["python"], host.heard["version"] = now, said.path, said.version
        elif isinstance(said, messages.Store):
            if host.host == self.plan.head:
                self.ports[said.cell] = said.port
        elif isinstance(said, messages.RankPids):
            for seat in self.plan.on(host.host):
                self.watch.ranks[seat.rank].pid = said.pids.get(str(seat.rank))
        elif isinstance(said, messages.StackTexts):
            self._stacks_of.add(host.host)
            host.heard |= {"kept": said.kept, "broken": said.broken}
            for seat in self.plan.on(host.host):
                self.watch.ranks[seat.rank].stack = said.stacks.get(str(seat.rank), "")
        elif isinstance(said, messages.Dns):
            host.heard["reverse_dns"] = said.seconds
        elif isinstance(said, messages.RankMemory):
            host.heard["peak_memory"] = said.peak
        elif isinstance(said, messages.AgentTrouble) and not (self.stopping and host.trouble):
            host.trouble = said.text
        return True

    def _most(self, host: LiveHost, now: float) -> float:
        """How many messages an agent may have sent by now: several times as many as a well-behaved one."""
        ranks = self._ranks_on[host.host]
        of_ranks = ranks * (LINES_OF_A_RANK + LINES_A_STEP * self.plan.steps)
        return LINES_OF_A_HOST + of_ranks + (LOOKS_A_SECOND + ranks) * (now - self.began)

    def _take_from_rank(
        self, said: messages.AgentLine | messages.RankExit, host: LiveHost, now: float, size: int
    ) -> None:
        rank = self.watch.rank_on(host, said.rank)
        if rank is None:
            return
        if isinstance(said, messages.AgentLine):
            rank.take(said.event, now, size)
        elif rank.exit is None and not self.stopping:
            if said.last is not None and said.last.rank == said.rank:
                rank.look(said.last, now, self.patience.again)
            rank.exit = Exit(said.code, said.signal, round(now - self.began, 3), said.words)
            self.watch.ended(rank)

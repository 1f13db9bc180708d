"""A thread for each host: what SSH and local programs share. They differ in how a program starts."""

import math
import threading
import time
from abc import ABC, abstractmethod
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from queue import Empty, SimpleQueue

from doctor.errors import UsageError
from doctor.model import Answer, AnswerEnd, UnreachedHost, UnreachedKind
from doctor.text.trace import trace
from doctor.transport import Script, Session, errors
from doctor.transport.descriptors import Descriptors
from doctor.transport.program import Program, converse
from doctor.transport.session import Sessions

# Seconds that a thread gets to notice that its time is over, before we answer for it.
GRACE = 1.0
# The same, if the time of the whole run is over.
LAST_GRACE = 0.2
# A session has no deadline of its own; only starting it has this one.
START_SECONDS = 60.0
# Hosts that wait for their turn have no deadline yet: check again after this many seconds.
LOOK_AGAIN = 1.0
# Hosts that wait for their turn in a thread: more than are ever dialled at once, the rest need none yet.
MOST_WAITING = 256

Outcome = Answer | UnreachedHost


class Turn:
    """It begins when the host is dialled, not while it waits for its turn; the whole run ends at `until`."""

    def __init__(self, seconds: float, until: float, begun: Callable[[], None] = lambda: None) -> None:
        self.seconds = seconds
        self._until = until
        self._begun = begun
        self.deadline: float | None = None

    def begin(self) -> float:
        """Start the host's time, if not yet begun; returns its end. Raises CannotReach if it is too late."""
        if self.deadline is None:
            now = time.monotonic()
            if now >= self._until:
                raise errors.cannot("no turn")
            self.deadline = min(now + self.seconds, self._until)
            self._begun()
        return self.deadline

    def left(self) -> float:
        return self.begin() - time.monotonic()

    def overdue_at(self) -> float:
        """When its thread should have answered."""
        last = self._until + LAST_GRACE
        return last if self.deadline is None else min(self.deadline + GRACE, last)


class ThreadedTransport(ABC):
    """`run` and `open` of `Transport`, given a way to start a program and to give up on one."""

    name: str
    descriptors_each = 1
    """The files that are open for a host, at most."""
    before = "it waited for its turn"
    """What a host does that has no program yet."""

    def __init__(self, hosts: int = 1, fanout: int = MOST_WAITING) -> None:
        self._warnings: list[str] = []
        self._stops: defaultdict[str, list[Callable[[], None]]] = defaultdict(list)
        """What makes the threads of the programs of a host see their end."""
        self.descriptors = Descriptors(hosts, self.descriptors_each, min(hosts, fanout), self.give_up)

    @property
    def warnings(self) -> list[str]:
        """What went wrong without making a host fail, in sentences."""
        return self._warnings

    def warn(self, warning: str) -> None:
        if warning not in self._warnings:
            self._warnings.append(warning)

    @abstractmethod
    def program(self, host: str, command: str, turn: Turn) -> Program:
        """A running program. Called in the host's own thread; raises CannotReach."""

    def descriptors_of(self, host: str) -> int:  # noqa: ARG002
        """The files that are open for this host. Called in the host's own thread; raises CannotReach."""
        return self.descriptors_each

    def give_up(self, host: str) -> str:
        """Drop everything of a host, from another thread. Returns what it was doing."""
        stops = list(self._stops[host])
        for stop in stops:
            stop()
        return "it ran" if stops else self.before

    def close(self) -> None:
        for host in list(self._stops):
            self.give_up(host)

    def run(
        self, scripts: Mapping[str, Script], timeout: float, until: float = math.inf
    ) -> Iterator[Outcome]:
        asking = _Round(self, scripts, timeout, until)
        try:
            yield from asking.outcomes()
        finally:
            # Interrupted, or the caller does not want the rest.
            for host in asking.turns:
                self.give_up(host)

    def open(self, scripts: Mapping[str, Script], until: float = math.inf) -> Session:
        def start(host: str, script: Script) -> Program:
            self.descriptors.take(host, self.descriptors_of(host), waits=False)
            try:
                return self.program(host, script.command, Turn(START_SECONDS, until))
            except BaseException:
                self.descriptors.leave(host)
                raise

        return Sessions(scripts, start, self.descriptors.leave)

    def ask(self, host: str, script: Script, turn: Turn) -> Outcome:
        try:
            self.descriptors.take(host, self.descriptors_of(host), waits=True)
            try:
                program = self.program(host, script.command, turn)
                trace(host, "its script runs")
                answer = converse(host, program, script, turn.begin())
                trace(host, "it has answered")
                if answer.end is AnswerEnd.FLOOD:
                    # The program may keep printing, even if nobody reads.
                    self.give_up(host)
                return answer
            finally:
                self.descriptors.leave(host)
        except Exception as error:
            why = errors.explained(error)
            if isinstance(error, UsageError) and why.kind is not UnreachedKind.CONTROLLER:
                raise
            trace(host, why.summary)
            # A thread that died silently would leave its host without an outcome.
            return why.of(host)


class _Round:
    """One script on each host. `turns` holds the hosts that have a thread but no outcome yet."""

    def __init__(
        self, transport: ThreadedTransport, scripts: Mapping[str, Script], timeout: float, until: float
    ) -> None:
        self._transport = transport
        self._scripts = scripts
        self._timeout = timeout
        self._until = until
        self._rest = deque(scripts)
        self._waiting: set[str] = set()
        self.turns: dict[str, Turn] = {}
        # A host without an outcome means that its turn has begun.
        self._news: SimpleQueue[tuple[str, Outcome | UsageError | None]] = SimpleQueue()

    def outcomes(self) -> Iterator[Outcome]:
        while self._rest or self.turns:
            self._start_some()
            first = min((turn.overdue_at() for turn in self.turns.values()), default=self._until)
            try:
                host, outcome = self._news.get(timeout=max(0.0, min(LOOK_AGAIN, first - time.monotonic())))
            except Empty:
                yield from self._overdue()
                continue
            self._waiting.discard(host)
            if isinstance(outcome, UsageError):
                raise outcome
            if outcome is not None and self.turns.pop(host, None) is not None:
                yield outcome

    def _start_some(self) -> None:
        """Start threads for the next hosts; hosts beyond the few that wait for their turn cost no thread."""
        while self._rest and len(self._waiting) < MOST_WAITING and time.monotonic() < self._until:
            host = self._rest.popleft()
            turn = Turn(self._timeout, self._until, partial(self._news.put, (host, None)))
            self.turns[host] = turn
            self._waiting.add(host)
            job = (host, self._scripts[host], turn)
            name = f"{self._transport.name} {host}"
            try:
                threading.Thread(target=self._ask, args=job, name=name, daemon=True).start()
            except RuntimeError as error:
                self._waiting.discard(host)
                if len(self.turns) > 1:  # one of the others will make room
                    del self.turns[host]
                    self._rest.appendleft(host)
                    return
                self._news.put((host, errors.explained(error).of(host)))

    def _ask(self, host: str, script: Script, turn: Turn) -> None:
        try:
            self._news.put((host, self._transport.ask(host, script, turn)))
        except UsageError as mistake:
            self._news.put((host, mistake))

    def _overdue(self) -> Iterator[UnreachedHost]:
        """Answer for threads that nothing can wake, mainly those waiting for a silent name server."""
        now = time.monotonic()
        for host, turn in [(host, turn) for host, turn in self.turns.items() if now >= turn.overdue_at()]:
            del self.turns[host]
            self._waiting.discard(host)
            doing = self._transport.give_up(host)
            never = turn.deadline is None
            yield (errors.cannot("no turn") if never else errors.too_slow(self._timeout, doing)).of(host)
        if now >= self._until:
            yield from (errors.cannot("no turn").of(host) for host in self._rest)
            self._rest.clear()

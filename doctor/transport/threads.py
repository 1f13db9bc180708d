"""A thread for each host: what SSH and local programs share. They differ in how a program starts."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from queue import Empty, SimpleQueue

from doctor.model import Answer, AnswerEnd, Unreached
from doctor.transport import Script, Session, errors
from doctor.transport.errors import CannotReach
from doctor.transport.program import Program, converse
from doctor.transport.session import Sessions

# How long a thread may take to notice that its time is over, before we answer for it.
GRACE = 1.0
# A session has no deadline of its own; starting it has this one.
START_SECONDS = 60.0
# Hosts that wait for their turn have no deadline yet: look again this often.
LOOK_AGAIN = 1.0

Outcome = Answer | Unreached


class Turn:
    """A host's time. It begins when the host is dialled, not while it waits for others to be."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.deadline: float | None = None

    def begin(self) -> float:
        if self.deadline is None:
            self.deadline = time.monotonic() + self._seconds
        return self.deadline

    def left(self) -> float:
        return self.begin() - time.monotonic()


class ThreadedTransport(ABC):
    """`run` and `open` of `Transport`, given a way to begin a program and to give up on one."""

    name: str

    def __init__(self, output_cap: int) -> None:
        self._cap = output_cap
        self._warnings: list[str] = []

    @property
    def warnings(self) -> list[str]:
        """What went wrong without a host failing for it, in sentences."""
        return self._warnings

    @abstractmethod
    def program(self, host: str, command: str, turn: Turn) -> Program:
        """A running program. Called in the host's own thread; raises CannotReach."""

    @abstractmethod
    def give_up(self, host: str) -> str:
        """Drop what there is of a host, from another thread. Returns what it was doing."""

    @abstractmethod
    def close(self) -> None: ...

    def run(self, scripts: Mapping[str, Script], timeout: float) -> Iterator[Outcome]:
        done: SimpleQueue[tuple[str, Outcome]] = SimpleQueue()
        turns = {host: Turn(timeout) for host in scripts}
        for host, script in scripts.items():
            job = (host, script, turns[host], done)
            threading.Thread(target=self._run_one, args=job, name=f"{self.name} {host}", daemon=True).start()
        try:
            while turns:
                try:
                    host, outcome = done.get(timeout=_until_overdue(turns))
                except Empty:
                    yield from self._overdue(turns, timeout)
                    continue
                if turns.pop(host, None) is not None:
                    yield outcome
        finally:
            # Interrupted, or the caller does not want the rest.
            for host in turns:
                self.give_up(host)

    def open(self, scripts: Mapping[str, Script]) -> Session:
        def start(host: str, script: Script) -> Program:
            return self.program(host, script.command, Turn(START_SECONDS))

        return Sessions(scripts, start, self._cap)

    def _run_one(self, host: str, script: Script, turn: Turn, done: SimpleQueue[tuple[str, Outcome]]) -> None:
        outcome: Outcome
        try:
            program = self.program(host, script.command, turn)
            outcome = converse(host, program, script, turn.begin(), self._cap)
            if outcome.end is AnswerEnd.FLOOD:
                # It may print on, even if it is not read.
                self.give_up(host)
        except CannotReach as why:
            outcome = why.of(host)
        except Exception as error:
            # A thread that died silently would leave its host without an outcome.
            outcome = errors.broken_tool(error).of(host)
        done.put((host, outcome))

    def _overdue(self, turns: dict[str, Turn], timeout: float) -> Iterator[Unreached]:
        """Answer for threads that nothing can wake: a name server that does not answer, above all."""
        now = time.monotonic()
        for host, turn in list(turns.items()):
            if turn.deadline is not None and now >= turn.deadline + GRACE:
                del turns[host]
                yield errors.too_slow(timeout, self.give_up(host)).of(host)


def _until_overdue(turns: Mapping[str, Turn]) -> float:
    first = min((t.deadline for t in turns.values() if t.deadline is not None), default=None)
    return LOOK_AGAIN if first is None else min(LOOK_AGAIN, max(0.0, first + GRACE - time.monotonic()))

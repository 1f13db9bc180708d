"""Every rank but rank 0: comes to it, does on this host what it asks, and waits for the verdict.

It waits neither endlessly for rank 0 to be found, nor for a rank 0 that has become silent.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from doctor.run.in_job import messages, proc
from doctor.run.in_job.messages import BEAT, SILENT, SLEPT
from doctor.run.in_job.programs import MOST_PROGRAMS, ServedProgram
from doctor.run.in_job.rank_env import JobRank
from doctor.run.in_job.wire import CONTROL, STDIN, Loop, RankLink, Stranger, introduce

CONNECT_SECONDS = 2.0
PAUSE = 0.25
LOST = 1
"""The exit code where rank 0 is not there: no job can start without it."""


@dataclass(frozen=True, slots=True)
class MemberOutcome:
    """`words` are for the terminal; none where rank 0 says it all."""

    code: int
    words: tuple[str, ...] = ()


class Membership:
    """Call `follow`."""

    def __init__(
        self, seat: JobRank, me: messages.Hello, joined: Callable[[messages.Welcome], None] = lambda _: None
    ) -> None:
        self.seat, self.me, self._joined = seat, me, joined
        self.loop = Loop(self._heard, self._lost, self._drained, self._tick)
        self.link: RankLink | None = None
        self.head: messages.Welcome | None = None
        self._served: dict[int, ServedProgram] = {}
        self._outcome: MemberOutcome | None = None
        self._decided = threading.Event()
        self._beat_at = 0.0
        self._lock = threading.Lock()

    def follow(self, seconds: float) -> MemberOutcome:
        """The verdict. `seconds` are for finding rank 0."""
        connection, why = _find(self.seat, time.monotonic() + seconds)
        if connection is None:
            place = " or ".join(self.seat.heads[:3])
            what = f"rank 0 was not found at {place} within {seconds:.0f} s: {why}"
            return MemberOutcome(LOST, (f"rank {self.seat.rank}: {what}.",))
        self.loop.start()
        self.link = self.loop.adopt(connection)
        self.link.tell(self.me)
        try:
            self._decided.wait()
        finally:
            self._end_programs()
        assert self._outcome is not None
        if self.link is not None and not self.link.closed:
            self.link.tell(messages.Taken())
            self._wait_until_flushed(self.link)
        self.loop.stop()
        return self._outcome

    def _wait_until_flushed(self, link: RankLink) -> None:
        """Rank 0 hangs up when everybody has the verdict; until then a launcher may end those without it."""
        until = time.monotonic() + SILENT / 2
        while not link.closed and time.monotonic() < until:
            time.sleep(0.02)

    def _end_programs(self) -> None:
        served = list(self._served.values())
        for each in served:
            each.end()
        until = time.monotonic() + 2.0
        for each in served:
            each.thread.join(max(0.0, until - time.monotonic()))

    def _decide(self, outcome: MemberOutcome) -> None:
        with self._lock:
            self._outcome = self._outcome or outcome
        self._decided.set()

    # In the thread of the loop.

    def _heard(self, link: RankLink, kind: int, number: int, payload: bytes) -> None:
        if kind == STDIN:
            if number in self._served:
                self._served[number].give(payload)
            return
        if kind != CONTROL:
            return
        message = messages.HEAD.decode(payload)
        if isinstance(message, messages.Welcome):
            self.head = message
            self._joined(message)
        elif isinstance(message, messages.RunVerdict):
            self._decide(MemberOutcome(message.code, tuple(message.words)))
        elif isinstance(message, messages.RollCall):
            link.tell(messages.StillHere(message.serial))
        elif isinstance(message, messages.Look):
            link.tell(
                messages.ProcessState(message.serial, message.pid, proc.state(message.pid, message.began))
            )
        elif isinstance(message, messages.Find):
            pid, state = proc.find_rank(self.seat.variable, message.rank, self.seat.same) or (0, proc.GONE)
            link.tell(messages.ProcessState(message.serial, pid, state))
        else:
            self._program(link, message)

    def _program(self, link: RankLink, message: object) -> None:
        if isinstance(message, messages.StartProgram):
            live = {number: each for number, each in self._served.items() if each.thread.is_alive()}
            if len(live) >= MOST_PROGRAMS:
                raise ConnectionAbortedError
            self._served = {**live, message.number: ServedProgram(message.number, message.command, link)}
        elif isinstance(message, messages.HangUp | messages.EndProgram):
            served = self._served.get(message.number)
            if served is not None:
                (served.hang_up if isinstance(message, messages.HangUp) else served.end)()

    def _lost(self, link: RankLink) -> None:
        del link
        self._decide(MemberOutcome(LOST, (self._no_head("its connection ended before the verdict"),)))

    def _drained(self, link: RankLink) -> None:
        del link
        for served in list(self._served.values()):
            served.ring()

    def _tick(self, now: float, since: float) -> None:
        link = self.link
        if link is None:
            return
        if since > SLEPT:
            link.heard_at = now
        if now - link.heard_at > SILENT:
            self._decide(MemberOutcome(LOST, (self._no_head(f"it has said nothing for {SILENT:.0f} s"),)))
        if now >= self._beat_at:
            self._beat_at = now + BEAT
            link.tell(messages.Beat())

    def _no_head(self, what: str) -> str:
        mine = f"rank {self.seat.rank}: no verdict from rank 0"
        head = self.head
        if head is None:
            return f"{mine}: {what}."
        if head.machine == self.me.machine:
            state = proc.WORDS.get(proc.state(head.pid, head.began))
            what = f"it is {state}" if state else what
        return f"{mine} ({head.host}, pid {head.pid}): {what}."


def _find(seat: JobRank, until: float) -> tuple[socket.socket | None, str]:
    """Try all its places until a rank of this job answers."""
    why = "no answer"
    while True:
        for head in seat.heads:
            for port in seat.ports:
                left = until - time.monotonic()
                if left <= 0:
                    return None, why
                try:
                    connection = socket.create_connection((head, port), min(CONNECT_SECONDS, left))
                except OSError as error:
                    why = _words(error, head)
                    if isinstance(error, socket.gaierror | TimeoutError):
                        break
                    continue
                try:
                    introduce(connection, seat.token)
                except (OSError, Stranger):
                    connection.close()
                    why = f"port {port} is somebody else's"
                    continue
                return connection, ""
        time.sleep(min(PAUSE, max(0.0, until - time.monotonic())))


def _words(error: OSError, head: str) -> str:
    if isinstance(error, socket.gaierror):
        return f"the name {head} cannot be resolved"
    if isinstance(error, TimeoutError):
        return "no answer, as when a firewall drops the connection"
    if isinstance(error, ConnectionRefusedError):
        return "nobody listens there"
    return error.strerror or "no connection"

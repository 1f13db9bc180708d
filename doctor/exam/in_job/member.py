"""Every rank but rank 0: connects to it, answers its questions on this host, and waits for the verdict.

It does not wait forever: not for rank 0 to be found, not for one that has become silent, and not for one that
only gives signs of life.
"""

import threading
import time
from collections.abc import Callable
from functools import partial

import msgspec

from doctor.errors import EXIT_INCONCLUSIVE
from doctor.exam.in_job import messages, proc
from doctor.exam.in_job.find_head import FoundHead, NoHead, another_head, find_head
from doctor.exam.in_job.job_key import VARIABLE
from doctor.exam.in_job.messages import BEAT, SILENT, SLEPT, RunVerdict
from doctor.exam.in_job.own_programs import Makers, OwnPrograms
from doctor.exam.in_job.programs import MOST_PROGRAMS, ServedProgram
from doctor.exam.in_job.rank_env import JobRank
from doctor.exam.in_job.wire import CONTROL, STDIN, Loop, RankLink
from doctor.exam.request import Request
from doctor.smoke.limits import WHOLE

RIVAL = 0.7
"""Seconds to look for another rank 0 at each of its places."""
LOST = 1
"""The exit code if rank 0 is missing: no job can start without it."""
SLACK = 30.0
"""Seconds after the deadline of the run for the report and the verdict."""
LONGEST = 3600.0
"""Seconds for a run without a deadline; more if its parts may last longer."""
QUESTIONS, TRAININGS = 10, 3
"""More questions than a run asks one host in sequence, and the most smoke runs that it makes."""


def patience(request: Request) -> float:
    """Seconds from finding rank 0 within which it must give its verdict."""
    way = request.way
    if way.deadline is not None:
        return way.deadline + SLACK
    training = request.smoke.timeout or max(WHOLE.values())
    return max(LONGEST, QUESTIONS * way.timeout + TRAININGS * training + SLACK)


class Membership:
    """The part of this rank in the run; call `follow`."""

    def __init__(
        self,
        seat: JobRank,
        me: messages.Hello,
        request: Request,
        own: Makers,
        joined: Callable[[messages.Welcome], None] = lambda _: None,
    ) -> None:
        self.seat, self.me, self._joined = seat, me, joined
        self._patience = patience(request)
        self._own = OwnPrograms(request, me.env, own)
        self.loop = Loop(self._heard, self._lost, self._drained, self._tick)
        self.link: RankLink | None = None
        self.head: messages.Welcome | None = None
        self._served: dict[int, ServedProgram] = {}
        self._outcome: RunVerdict | None = None
        self._decided = threading.Event()
        self._beat_at = 0.0
        self._lock = threading.Lock()

    def follow(self, seconds: float) -> RunVerdict:
        """The verdict. `seconds` is the limit for finding rank 0."""
        found = find_head(self.seat, time.monotonic() + seconds)
        if isinstance(found, NoHead):
            place = " or ".join(self.seat.heads[:3])
            what = f"rank 0 was not found at {place} within {seconds:.0f} s: {found.why}"
            code = EXIT_INCONCLUSIVE if found.strangers else LOST
            return RunVerdict(code, [f"rank {self.seat.rank}: {what}."])
        self.link = self.loop.link(found.connection, found.seals)
        self.link.tell(msgspec.structs.replace(self.me, sure=found.sure))
        self.loop.adopt(self.link)
        self.loop.start()
        try:
            if not self._decided.wait(self._patience):
                what = f"it gave none within {self._patience:.0f} s of being found, though it still responds"
                self._decide(RunVerdict(LOST, [self._no_head(what)]))
        finally:
            self._end_programs()
        assert self._outcome is not None
        if not found.sure:
            self._outcome = self._unless_two(found)
        if self.link is not None and not self.link.closed:
            self.link.tell(messages.VerdictReceipt())
            # Rank 0 hangs up once everybody has the verdict; until then a launcher may end those without it.
            until = time.monotonic() + SILENT / 2
            while not self.link.closed and time.monotonic() < until:
                time.sleep(0.02)
        self.loop.stop()
        return self._outcome

    def _unless_two(self, found: FoundHead) -> RunVerdict:
        """The outcome for the verdict, or the loss, of a rank 0 that nothing vouches for."""
        assert self._outcome is not None
        other = another_head(self.seat, found, RIVAL)
        if other is None:
            return self._outcome
        what = f"two processes claim to be rank 0, at {found.place} and at {other}"
        return RunVerdict(EXIT_INCONCLUSIVE, [f"rank {self.seat.rank}: {what}. Give all ranks a {VARIABLE}."])

    def _end_programs(self) -> None:
        served = list(self._served.values())
        for each in served:
            each.end()
        until = time.monotonic() + 2.0
        for each in served:
            each.thread.join(max(0.0, until - time.monotonic()))

    def _decide(self, outcome: RunVerdict) -> None:
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
        elif isinstance(message, RunVerdict):
            self._decide(message)
        elif isinstance(message, messages.RollCall):
            link.tell(messages.BeatAnswer(message.serial))
        elif isinstance(message, messages.StateQuestion):
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
            make = partial(self._own.make, message.question)
            self._served = {**live, message.number: ServedProgram(message.number, make, link)}
        elif isinstance(message, messages.HangUp | messages.EndProgram):
            served = self._served.get(message.number)
            if served is not None:
                (served.hang_up if isinstance(message, messages.HangUp) else served.end)()

    def _lost(self, _link: RankLink) -> None:
        self._decide(RunVerdict(LOST, [self._no_head("its connection ended before the verdict")]))

    def _drained(self, _link: RankLink) -> None:
        for served in list(self._served.values()):
            served.ring()

    def _tick(self, now: float, since: float) -> None:
        link = self.link
        if link is None:
            return
        if since > SLEPT:
            link.heard_at = now
        if now - link.heard_at > SILENT:
            self._decide(RunVerdict(LOST, [self._no_head(f"it has been silent for {SILENT:.0f} s")]))
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

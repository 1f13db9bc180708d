"""One start of the command: it is watched until it ends, or until doctor ends it."""

import contextlib
import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from doctor.errors import DoctorError
from doctor.exam.request import Request
from doctor.run.apart import Apart, reap_orphans
from doctor.run.command import ENDS, Command, SentSignal
from doctor.run.ended import Ending
from doctor.run.look import LONGEST, JobLook, RankElsewhere, Watcher, left_elsewhere, look
from doctor.run.news import Newsroom
from doctor.run.options import END, RunWishes
from doctor.run.output import Output
from doctor.run.pauses import FACTOR, OutputPauses, Passing
from doctor.run.reason import LossLook
from doctor.text.announce import announce

TICK = 1.0
"""Seconds between looks at what was printed."""
LOSSES = 60.0
"""Seconds to the first look at the losses, and between looks at losses that are not finite. If all is well,
the time between two looks grows with the time that the job runs.
"""
ODD_LOSSES = 5.0
"""Seconds from a loss that is not finite to a look, so that what follows is seen too."""
LASTS = 20.0
"""Seconds that a bad loss lasts at least before the job is ended for it."""
GRACE = 30.0
"""Seconds from TERM to KILL."""
TAKES_TO_END = 600.0
"""Seconds from a signal to the end that it causes: a job may save a checkpoint first."""
UNDECIDED = "nothing moves, and doctor hang could not decide why"
ABSENT = "nothing new was printed for a while"


@dataclass(slots=True)
class JobAttempt:
    """How it went."""

    output: Output
    began: float
    seconds: float = 0.0
    status: int = 0
    why_not: int = 0
    signals: list[SentSignal] = field(default_factory=list)
    """Those to end that somebody sent or typed shortly before its end."""
    late: list[int] = field(default_factory=list)
    """Those to end that came after its end."""
    looks: list[JobLook] = field(default_factory=list)
    """What was told about standstills."""
    losses: list[str] = field(default_factory=list)
    """What was told about losses."""
    parts: list[bytes] = field(default_factory=list)
    """The reports of what was told, in JSON."""
    ended: str = ""
    """Why doctor ended the command; empty if it did not."""
    elsewhere: tuple[str, ...] = ()
    """What still runs then, each in a sentence."""

    @property
    def by_signal(self) -> int:
        """The signal with which somebody ended the command; 0 if nobody did."""
        own = os.WTERMSIG(self.status) if os.WIFSIGNALED(self.status) else 0
        passed_up = os.WEXITSTATUS(self.status) - 128 if self.late and os.WIFEXITED(self.status) else 0
        sent = [*(each.number for each in self.signals), *(each for each in (own, passed_up) if each in ENDS)]
        return sent[0] if sent and self.status else 0

    def tell_losses(self, found: LossLook, news: Newsroom) -> None:
        new = [each for each in found.says if each not in self.losses]
        if new and found.why:
            self.losses += new
            self.parts += filter(None, (found.why.files.get(".json"),))
            news.publish(f"loss-{len(self.losses)}", new[0], found.why.text, found.why.files)


class Watched:
    """The command while it runs. `news` is told what is found."""

    def __init__(self, command: Command, request: Request, wishes: RunWishes, news: Newsroom) -> None:
        self._command, self._wishes, self._news = command, wishes, news
        now = time.monotonic()
        self._pauses = OutputPauses(now, wishes.least)
        self._passing = Passing(command.output)
        self._request, self._look = request, partial(look, request, command.pid, command.output)
        self._watcher = Watcher(self._pauses, self._look)
        self._stops = command.stopped
        self._curves: Apart[LossLook] | None = None
        self._began, self._curves_at, self._losses, self._odd = now, now + LOSSES, 0, 0
        self._read_losses = partial(losses, request, command.output)
        self._loss_pauses, self._numbers = OutputPauses(now, LASTS), 0
        """The pauses between losses that are numbers."""
        self._bad_since: Mapping[str, int] | None = None
        """How much the streams had printed when bad losses were found; None if there are none."""
        self._bad_until = 0.0
        """By then a job whose losses are sound has printed one."""
        self._ending: Ending | None = None
        self._kill_at = 0.0
        self._elsewhere: tuple[RankElsewhere, ...] = ()
        self.attempt = JobAttempt(command.output, time.time())

    def run(self, *, watches: bool) -> JobAttempt:
        """Wait for its end, or end it."""
        attempt, command, began = self.attempt, self._command, time.monotonic()
        try:
            while not command.over:
                command.wait(TICK)
                self._news.reap()
                reap_orphans()
                if command.status is None and watches:
                    self._tick(time.monotonic())
            if self._ending is not None:
                self._say_what_is_left(self._ending, self._kill_at)
        finally:
            self._watcher.close()
            if self._curves is not None:
                self._curves.end()
        attempt.seconds = time.monotonic() - began
        attempt.status, attempt.why_not, attempt.late = command.status or 0, command.why_not, command.late
        now = time.monotonic()
        attempt.signals = [
            each for each in command.signals if each.number in ENDS and now - each.at < TAKES_TO_END
        ]
        return attempt

    def _tick(self, now: float) -> None:
        if self._ending is not None:
            if now > self._kill_at:
                self._ending.kill()
            return
        if self._command.stopped != self._stops:
            self._stops = self._command.stopped
            self._pauses.forget(now)
        if self._passing.moved():
            self._watcher.moved(now)
        elif found := self._watcher.found(now):
            self._standstill(found, now)
        self._look_at_losses(now)

    def _standstill(self, found: JobLook, now: float) -> None:
        self.attempt.looks.append(found)
        self.attempt.parts += filter(None, (found.files.get(".json"),))
        silent = f"{self._pauses.silent(now):.0f} s without a step or a new line"
        if found.hangs:
            headline = found.sentence
        else:
            headline = f"{ABSENT if found.is_absent else UNDECIDED}: {silent}. {found.sentence}"
            if found.printed:
                headline += f" By what it printed: {found.printed.rstrip('.')}."
        self._news.publish(f"hang-{len(self.attempt.looks)}", headline, found.text, found.files)
        if self._wishes.on_hang != END:
            return
        if found.hangs:
            self._end(found.sentence, now, found.elsewhere)
        else:
            announce(
                "the command is not ended, because nothing proves a hang; Ctrl-C ends it.", self._news.tell
            )

    def _look_at_losses(self, now: float) -> None:
        if self._curves is not None:
            if self._curves.poll():
                child, self._curves = self._curves, None
                with contextlib.suppress(DoctorError):  # it told what broke
                    self._bad_losses(child.result(), now)
            return
        if self._passing.numbers != self._numbers:
            self._numbers = self._passing.numbers
            self._loss_pauses.moved(now)
        if self._passing.odd_losses and not self._odd:
            self._curves_at = now + ODD_LOSSES
        self._odd = self._passing.odd_losses
        if now > self._curves_at and self._passing.losses > self._losses:
            self._losses = self._passing.losses
            self._curves_at = now + (LOSSES if self._odd else max(LOSSES, (now - self._began) / 10))
            since = self._bad_since if now > self._bad_until else None
            self._curves = Apart(partial(self._read_losses, tuple(self.attempt.losses), since))

    def _bad_losses(self, found: LossLook, now: float) -> None:
        self.attempt.tell_losses(found, self._news)
        if not found.says:
            self._bad_since = None
        elif found.lasts and self._wishes.on_loss == END:
            self._end(found.says[0], now, self._ranks_elsewhere())
        elif self._bad_since is None or now > self._bad_until:  # the data of the job may quote losses
            silent = self._loss_pauses.silent(now)
            self._bad_since = dict(self._command.output.totals)
            self._bad_until = now + max(self._loss_pauses.limit, FACTOR * silent)
            self._curves_at = min(self._curves_at, self._bad_until)

    def _ranks_elsewhere(self) -> tuple[RankElsewhere, ...]:
        if self._request.who.local:
            return ()
        child = self._look(self._pauses.limit)
        if not child.poll(LONGEST):
            child.end()
            return ()
        try:
            return child.result().elsewhere
        except DoctorError:  # it told what broke
            return ()

    def _end(self, why: str, now: float, elsewhere: tuple[RankElsewhere, ...]) -> None:
        """Ask the command to end; later it and all below it are killed."""
        self.attempt.ended, self._elsewhere = why, elsewhere
        self._ending = Ending(self._command.pid, self._command.adopt())
        announce(f"the command is ended: TERM, and KILL after {GRACE:.0f} s.", self._news.tell)
        self._command.send(signal.SIGTERM)
        self._command.send(signal.SIGCONT)
        self._kill_at = now + GRACE

    def _say_what_is_left(self, ending: Ending, over: float) -> None:
        """End what the command has left, and name what still runs, here and on other hosts."""
        left = (*ending.until(over), *left_elsewhere(self._request, self._elsewhere))
        for each in left:
            announce(f"{each}.", self._news.tell)
        self.attempt.elsewhere = left


def losses(
    request: Request, output: Output, told: Sequence[str], since: Mapping[str, int] | None = None
) -> LossLook:
    """What is wrong with the losses; `told` is known."""
    from doctor.run.why import losses_of  # it loads much

    return losses_of(request, output, told, since)

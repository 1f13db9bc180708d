"""The end of one attempt: who ended it, such as Slurm, or why it ended badly."""

import contextlib
import os
import re
import signal
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from doctor.errors import DoctorError
from doctor.exam.request import Request
from doctor.logs.steps import says_step
from doctor.run.apart import StoppedPart, apart
from doctor.run.attempt import JobAttempt, losses
from doctor.run.before import BeforeStart
from doctor.run.command import exit_code
from doctor.run.envelope import AttemptEntry, JobLookEntry
from doctor.run.folder import RunFolder, both_ends
from doctor.run.news import Newsroom
from doctor.run.output import Output
from doctor.run.reason import EndReason, PastCommand
from doctor.text.announce import announce
from doctor.text.hostprogram import sections

_SAID = sections(__file__, "end.txt")
COMPLETING = "COMPLETING"
PATIENCE = 5
"""Seconds: a job that is cancelled is killed soon."""


def why_ended(environ: Mapping[str, str] = os.environ) -> str:
    """What Slurm says about the end of this job; empty if it did not end it."""
    job = environ.get("SLURM_JOB_ID", "")
    if not re.fullmatch(r"[0-9]{1,10}", job):
        return ""
    from doctor.transport.slurm.squeue import scontrol  # seldom needed

    return read_end(scontrol("job", job, environ, PATIENCE))


def read_end(said: str) -> str:
    """What a line of `scontrol show job` says about the end of a job whose script still runs."""
    state = re.search(r"\bJobState=([A-Z_]+)(?: Reason=(\w+))?", said)
    if state is None:
        return ""
    if state[1] == COMPLETING:
        return _SAID["reasons"].get(state[2] or "", "it was cancelled, or its hosts were taken")
    return _SAID["states"].get(state[1], "")


BEFORE = "it had failed before that:"
HIDDEN = "a launcher lost a rank, but the exit code is 0 (as behind a pipe without pipefail):"
CRASHES = (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT)
LOST_A_RANK = re.compile(
    rb"ChildFailedError|noticed that process rank|processes exited with non-zero status|srun: error: "
)
"""What launchers print at their end if they lost a rank: torchrun, mpirun and srun."""


class AttemptEnd:
    """`folder` takes what is found, and `news` tells it. `request` is that for the hosts that took part."""

    def __init__(
        self, request: Request, before: BeforeStart, attempt: JobAttempt, folder: RunFolder, news: Newsroom
    ) -> None:
        self._request, self._before, self._news = request, before, news
        self.attempt, self.folder = attempt, folder
        self.code = exit_code(attempt.status)
        self.why_not = ""
        """Why it could not be started."""
        self.by_others = ""
        """Who ended it, if it was neither itself nor doctor."""
        self._scheduled = ""
        self.reason: EndReason | None = None
        """Why it ended badly by itself."""
        self.earlier: EndReason | None = None
        """What it had printed of a failure, although its exit code does not tell of it."""

    @property
    def says(self) -> str:
        reason = self.reason or self.earlier
        return reason.says if reason else self.why_not

    @property
    def parts(self) -> list[bytes]:
        """The reports that were made, in JSON."""
        reasons = filter(None, (self.earlier, self.reason))
        return [*self.attempt.parts, *(each.files[".json"] for each in reasons if ".json" in each.files)]

    def entry(self) -> AttemptEntry:
        attempt, left_out = self.attempt, self._before.left_out
        return AttemptEntry(
            hosts=tuple(host for host in self._before.hosts if host not in left_out),
            left_out=left_out,
            seconds=attempt.seconds,
            exit_code=None if attempt.why_not else self.code,
            looks=tuple(JobLookEntry(each.state, each.sentence) for each in attempt.looks),
            losses=tuple(attempt.losses),
            ended=attempt.ended or None,
            elsewhere=attempt.elsewhere,
            by_others=self.by_others or None,
            why=self.says or None,
            folder=str(self.folder.path) if self.folder.path else None,
        )

    def told_of_others(self) -> bool:
        """Tell who else ended it; False if nobody did."""
        attempt = self.attempt
        if not self.code or attempt.ended:
            return False
        why = self._scheduled = why_ended()
        if attempt.by_signal:
            name = signal.Signals(attempt.by_signal).name
            self.by_others = f"somebody ended the job by {name}{f': {why}' if why else ''}"
        elif why:
            self.by_others = f"Slurm ended the job: {why}"
        if self.by_others:
            announce(f"{self.by_others}.", self._news.tell)
        return bool(self.by_others)

    def look_before(self) -> None:
        """Tell what had failed before it ended well, or before it was told to end: a script that fails may
        end all that it started by a signal, itself and doctor included.
        """
        if not self.code:
            if lost_a_rank(self.attempt.output):
                self.earlier = self._printed(self.attempt.output, HIDDEN)
        elif self.attempt.by_signal and not self._scheduled:
            output, sent = self.attempt.output, self.attempt.signals
            self.earlier = self._printed(output.when(sent[0].printed) if sent else output, BEFORE)
        self._look_back(self.earlier.text if self.earlier else "")

    def _look_back(self, said: str) -> None:
        """Tell again who kept it waiting if it ended badly, and what is wrong with its losses that neither a
        look while it ran nor this text told.
        """
        attempt = self.attempt
        seen = [each.seen for each in attempt.looks if each.seen]
        if seen and self.code:
            announce(f"before that it hung: {seen[-1]}.", self._news.tell)
        if not any(b"oss" in both_ends(stream) for stream in attempt.output.streams.values()):
            return
        with contextlib.suppress(DoctorError):  # it told what broke
            found = apart(partial(losses, self._request, attempt.output, tuple(attempt.losses)))
            attempt.tell_losses(
                replace(found, says=tuple(each for each in found.says if each not in said)), self._news
            )

    def _printed(self, output: Output, headline: str) -> EndReason | None:
        """What ended the command by what it printed alone, if that is sure."""
        try:
            reason = apart(partial(_reason, self._request, output))
        except DoctorError as error:
            self._unexplained(error)
            return None
        if not reason.named or not (reason.failed or headline is HIDDEN):
            return None
        self.folder.keep(self.attempt.output)
        announce(headline, self._news.tell)
        self._news.publish("why", reason.says, reason.text, reason.files)
        return reason

    def explain(self, printed_into: Sequence[str], parts: Path | None) -> None:
        """Say why it ended, unless doctor ended it."""
        attempt = self.attempt
        self.folder.keep(attempt.output)
        if attempt.ended:
            return
        killed = self.code == 128 + signal.SIGKILL
        past = PastCommand(attempt.began, attempt.seconds, killed, tuple(printed_into), parts)
        try:
            reason = _explained(self._request, attempt.output, past)
        except DoctorError as error:  # the exit code stays the job's
            self._unexplained(error)
            return
        if not reason.named and os.WIFSIGNALED(attempt.status):
            by = signal.Signals(os.WTERMSIG(attempt.status))
            who = ": it crashed, or somebody sent it" if by in CRASHES else "; nothing says who sent it"
            reason = replace(reason, says=f"{by.name} ended the command{who}.")
        self.reason = reason
        self._news.publish("why", reason.says, reason.text if reason.named else "", reason.files)
        self._look_back(reason.text)

    def _unexplained(self, error: DoctorError) -> None:
        announce(f"the end could not be explained: {error.message}", self._news.tell)


def lost_a_rank(output: Output) -> bool:
    """Whether a launcher says that it lost a rank, and the training does not go on below that."""
    ends = (LOST_A_RANK.split(both_ends(stream))[1:] for stream in output.streams.values())
    return any(end and not any(map(says_step, end[-1].decode(errors="replace").splitlines())) for end in ends)


def _explained(request: Request, output: Output, past: PastCommand) -> EndReason:
    """Why the command ended. A signal that ends doctor ends the questions to the hosts; what the command
    printed is read all the same.
    """
    try:
        return apart(partial(_reason, request, output, past))
    except StoppedPart as stop:
        name = signal.Signals(stop.number).name
        announce(f"{name} came while the end was being explained: only what was printed here is explained.")
        return apart(partial(_reason, request, output))


def _reason(request: Request, output: Output, past: PastCommand | None = None) -> EndReason:
    from doctor.run.why import reason_of  # it loads much

    return reason_of(request, output, past)

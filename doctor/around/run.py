"""`doctor run`: from the words of the command to its exit code."""

from __future__ import annotations

import errno
import os
import shlex
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone

from doctor.around.after import EndReason, explained
from doctor.around.attempt import JobAttempt, Watched
from doctor.around.before import BeforeStart, examined, unexamined, with_hosts
from doctor.around.command import Command, end_as, exit_code
from doctor.around.folder import RunFolder
from doctor.around.launcher import agent_of, leads, line_to_type, named_hosts
from doctor.around.news import Newsroom
from doctor.around.options import AroundWishes
from doctor.around.placeholders import OF_HOSTS, filled, named_in
from doctor.around.relay.command import NOT_FOUND, NOT_STARTED
from doctor.errors import EXIT_FAULT
from doctor.job.launch.forms import Go
from doctor.report.launch_line import job_id
from doctor.run.request import Request
from doctor.text.announce import announce
from doctor.text.nodeset import fold, unfold
from doctor.text.printable import clean_line
from doctor.text.terminal import tell

JOB, PREFLIGHT, ENDED = "the job's", "the pre-flight's", "doctor's, which ended the job"
"""Whose exit code it is."""
EXIT_ENDED = 75
NOTHING = BeforeStart(0, None)


@dataclass(slots=True)
class AroundRun:
    """One call of `doctor run`."""

    words: tuple[str, ...]
    request: Request
    wishes: AroundWishes
    before: BeforeStart = NOTHING
    hostfile: str = ""
    number: int = 1
    causes: set[tuple[str, str]] = field(default_factory=set)
    """What ended earlier attempts, each with its host."""
    leads: bool = True
    """Whether this is the instance that examines; on the other nodes of a job they only pass on."""

    def __call__(self) -> int:
        self.leads = leads(agent_of(self.words), os.environ)
        self.request = with_hosts(self.request, self.words)
        while (code := self._once()) is None:
            self.number += 1
        return code

    def _once(self) -> int | None:
        """The exit code; None if the command is to be started again."""
        places = named_in(self.words)
        if self.leads and not self.wishes.no_preflight:
            self.before = examined(self.request, self.words)
            if self.before.code:
                return self._ends(self.before.code, PREFLIGHT)
            if self._drops() and not places & OF_HOSTS:
                return self._refuse()
        elif places:
            self.before = unexamined(self.request, self.words)
        words = list(self.words)
        if places and self.before.going:
            words = filled(self.words, self.before.going, self._write_hostfile)
        return self._command(words)

    def _drops(self) -> tuple[str, ...]:
        """The hosts that were left out, unless the command itself names others only."""
        listed, _ = named_hosts(agent_of(self.words))
        own = {host for names in listed for host in unfold(names)}
        return tuple(host for host in self.before.left_out if not own or host in own)

    def _refuse(self) -> int:
        typed = sys.argv[: sys.argv.index("--")] if "--" in sys.argv else ["doctor", "run"]
        line = line_to_type(self.words, agent_of(self.words), ["doctor", *typed[1:]])
        announce(
            f"{fold(self._drops())} must not take part, but the command does not say where the hosts belong, "
            "so it was not started. Type:"
        )
        tell(f"        {clean_line(line)}\n")
        return self._ends(EXIT_FAULT, PREFLIGHT)

    def _write_hostfile(self, going: Go) -> str:
        """A file that goes when the command has ended."""
        number, name = tempfile.mkstemp(prefix="doctor-hosts-")
        with open(number, "w", encoding="utf-8") as file:
            file.write("".join(f"{host} slots={going.ranks[host]}\n" for host in going.hosts))
        self.hostfile = name
        return name

    def _command(self, words: Sequence[str]) -> int | None:
        started = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        parent = self.request.outputs.report_dir
        folder = RunFolder(parent, started, job_id(os.environ), os.getpid(), self.number)
        with Command(words, self.hostfile, holds=self.wishes.restarts > 0) as command:
            news = Newsroom(folder, self.wishes.notify, raw=command.has_terminal)
            port = self.before.going.port if self.before.going else None
            watched = Watched(command, self._of_job(), self.wishes, news, port)
            attempt = watched.run() if self.leads else watched.run_unwatched()
        news.cooked()
        if attempt.why_not:
            return self._not_started(words[0], attempt.why_not)
        code = exit_code(attempt.status)
        reason = self._explain(attempt, folder, news) if code else None
        news.close()
        if reason is not None and self._again(reason):
            return None
        if attempt.ended:
            return self._ends(EXIT_ENDED, ENDED, attempt.seconds)
        self._ends(code, JOB, attempt.seconds)
        end_as(attempt.status)
        return code

    def _of_job(self) -> Request:
        """The request for the hosts that take part."""
        who = self.request.who
        left_out = tuple(host for host in self.before.left_out if host in self.before.hosts)
        return replace(self.request, who=replace(who, exclude=(*who.exclude, *left_out)))

    def _again(self, reason: EndReason) -> bool:
        """Whether the command is started again: only if hosts caused its end, without these, and not twice
        for the same cause on the same host.
        """
        causes = {(reason.cause, host) for host in reason.blamed}
        left = [host for host in self.before.hosts if host not in (*self.before.left_out, *reason.blamed)]
        enough = len(left) >= (self.request.what.need_hosts or 1) and bool(named_in(self.words) & OF_HOSTS)
        if not causes or causes & self.causes or not enough or self.number > self.wishes.restarts:
            return False
        self.causes |= causes
        who = self.request.who
        self.request = replace(self.request, who=replace(who, exclude=(*who.exclude, *reason.blamed)))
        announce(f"the command is started again without {fold(reason.blamed)}.")
        return True

    def _explain(self, attempt: JobAttempt, folder: RunFolder, news: Newsroom) -> EndReason | None:
        """Say why the command ended, unless somebody ended it."""
        if attempt.by_signal:
            from doctor.around.scheduler import why_ended

            name = signal.Signals(attempt.by_signal).name
            why = why_ended()
            announce(f"somebody ended the job by {name}{f': {why}' if why else ''}.", news.tell)
            return None
        folder.keep(attempt.output)
        if attempt.ended or not self.leads:
            return None
        reason = explained(self._of_job(), attempt.output, attempt.began, attempt.seconds, asks=True)
        news.publish("why", reason.says, reason.text if reason.named else "", reason.files)
        return reason

    def _not_started(self, program: str, why: int) -> int:
        code = NOT_FOUND if why == errno.ENOENT else NOT_STARTED
        announce(f"{shlex.quote(program)} could not be started: {os.strerror(why)}.")
        return self._ends(code, JOB)

    def _ends(self, code: int, whose: str, seconds: float | None = None) -> int:
        if code or not self.request.outputs.quiet:
            after = f", after {_duration(seconds)}" if seconds is not None else ""
            announce(f"the exit code {code} is {whose}{after}.")
        return code


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "min"), (rest, "s"))
    shown = [f"{number} {unit}" for number, unit in parts if number]
    return " ".join(shown) or f"{seconds:.1f} s"


def run_around(words: Sequence[str], request: Request, wishes: AroundWishes) -> int:
    """The exit code. `words` are what follows `--`."""
    _ = wishes.least  # a mistake is reported before anything else
    return AroundRun(tuple(words), request, wishes)()

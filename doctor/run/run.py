"""`doctor run`: from the words of the command to its exit code."""

from __future__ import annotations

import errno
import os
import shlex
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from doctor.errors import EXIT_FAULT, DoctorError, UsageError
from doctor.exam.request import Request
from doctor.job.launch.forms import Go
from doctor.report.file_names import job_id
from doctor.report.formats import STDOUT
from doctor.run.after import explained, lost_a_rank, printed_cause
from doctor.run.apart import StoppedPart
from doctor.run.attempt import JobAttempt, Watched
from doctor.run.before import BeforeStart, examined, unexamined, with_hosts
from doctor.run.command import Command, end_as, exit_code
from doctor.run.folder import PART, RunFolder
from doctor.run.launcher import (
    agent_of,
    is_first,
    line_to_type,
    named_hosts,
    own_logs,
    runs_on_each_host,
)
from doctor.run.news import Newsroom
from doctor.run.options import RunWishes
from doctor.run.output import Output
from doctor.run.placeholders import OF_HOSTS, filled, named_in
from doctor.run.reason import EndReason, PastCommand
from doctor.run.relay.command import NOT_FOUND, NOT_STARTED
from doctor.run.scheduler import why_ended
from doctor.run.whose import Whose
from doctor.text.announce import announce
from doctor.text.durations import duration
from doctor.text.nodeset import fold, unfold
from doctor.text.printable import clean_line
from doctor.text.redact import redact
from doctor.text.terminal import tell

if TYPE_CHECKING:
    from doctor.run.envelope import AttemptEntry

EXIT_ENDED = 75
BEFORE = "it had failed before that:"
HIDDEN = "a launcher lost a rank, but the exit code is 0 (as behind a pipe without pipefail):"
NOTHING = BeforeStart(0, None)


@dataclass(frozen=True, slots=True)
class EndedAttempt:
    """An attempt that is over, and what was said about it."""

    hosts: tuple[str, ...]
    left_out: tuple[str, ...]
    attempt: JobAttempt
    code: int
    by_others: str
    why: str
    folder: str

    def entry(self) -> AttemptEntry:
        from doctor.run.envelope import AttemptEntry, JobLookEntry

        return AttemptEntry(
            hosts=self.hosts,
            left_out=self.left_out,
            seconds=self.attempt.seconds,
            exit_code=None if self.attempt.why_not else self.code,
            looks=tuple(JobLookEntry(each.state, each.sentence) for each in self.attempt.looks),
            losses=tuple(self.attempt.losses),
            ended=self.attempt.ended or None,
            elsewhere=self.attempt.elsewhere,
            by_others=self.by_others or None,
            why=self.why or None,
            folder=self.folder or None,
        )


@dataclass(slots=True)
class CommandRun:
    """One call of `doctor run`."""

    words: tuple[str, ...]
    request: Request
    wishes: RunWishes
    before: BeforeStart = NOTHING
    hostfile: str = ""
    number: int = 1
    causes: set[tuple[str, str]] = field(default_factory=set)
    """What ended earlier attempts, each with its host."""
    on_each: bool = False
    """Whether `doctor run` is started on every host of the job."""
    leads: bool = True
    """Whether this is the instance that examines; on the other hosts they only pass on."""
    attempts: list[EndedAttempt] = field(default_factory=list)
    parts: list[bytes] = field(default_factory=list)
    """The reports of the pre-flight, of looks and of logs, in JSON."""
    began: float = field(default_factory=time.time)

    def __call__(self) -> int:
        agent = agent_of(self.words)
        self.request = with_hosts(self.request, self.words)
        self.on_each = runs_on_each_host(agent, os.environ)
        if self.on_each:
            self.leads = is_first(agent, os.environ, lambda: unexamined(self.request, self.words).hosts)
        while (code := self._once()) is None:
            self.number += 1
        return code

    def _once(self) -> int | None:
        """The exit code; None if the command is to be started again."""
        places = named_in(self.words)
        examines = self.leads and not self.wishes.no_preflight
        if examines:
            try:
                self.before = examined(self.request, self.words)
            except StoppedPart as stop:
                announce(f"{signal.Signals(stop.number).name} came before the command was started.")
                return self._ends(128 + stop.number, Whose.PREFLIGHT)
            self.parts += filter(None, (self.before.report,))
            if self.before.code:
                return self._ends(self.before.code, Whose.PREFLIGHT)
            if self._drops() and (self.on_each or not places & OF_HOSTS):
                return self._refuse()
        decides = examines and not self.request.outputs.shadow
        if places and (self.on_each or not decides):  # each instance must fill in the same
            listed = unexamined(self.request, self.words)
            self.before = replace(self.before, going=listed.going, hosts=listed.hosts)
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
        left_out = clean_line(fold(self._drops()))
        if self.on_each:
            line = shlex.join(["doctor", *typed[1:], "--exclude", left_out, "--", *self.words])
            announce(
                f"{left_out} must not take part, but the other hosts would wait for it, so the command was"
                " not started. Type on each of the others:"
            )
        else:
            line = line_to_type(self.words, agent_of(self.words), ["doctor", *typed[1:]])
            announce(
                f"{left_out} must not take part, but the command does not say where the hosts belong, so it"
                " was not started. Type:"
            )
        tell(f"        {clean_line(redact(line))}\n")
        return self._ends(EXIT_FAULT, Whose.PREFLIGHT)

    def _write_hostfile(self, going: Go) -> str:
        """A file that goes when the command has ended."""
        number, name = tempfile.mkstemp(prefix="doctor-hosts-")
        with open(number, "w", encoding="utf-8") as file:
            file.write("".join(f"{host} slots={going.ranks[host]}\n" for host in going.hosts))
        self.hostfile = name
        return name

    def _command(self, words: Sequence[str]) -> int | None:
        folder = self._folder()
        with Command(words, self.hostfile, holds=self.wishes.restarts > 0) as command:
            news = Newsroom(folder, self.wishes.notify, command.output, raw=command.has_terminal)
            watched = Watched(command, self._of_job(), self.wishes, news)
            attempt = watched.run() if self.leads else watched.run_unwatched()
        news.cooked()
        if attempt.why_not:
            code = NOT_FOUND if attempt.why_not == errno.ENOENT else NOT_STARTED
            why = f"{clean_line(shlex.quote(words[0]))} could not be started: {os.strerror(attempt.why_not)}."
            announce(why)
            self._keep(attempt, code, "", why, folder)
            return self._ends(code, Whose.NOT_STARTED)
        code = exit_code(attempt.status)
        if code or not self.request.outputs.quiet:
            news.begin_line()
        self.parts += attempt.parts
        scheduled = why_ended() if code and not attempt.ended else ""
        by_others = self._by_others(attempt, scheduled) if code else ""
        reason = None
        before = ""
        if by_others:
            announce(f"{by_others}.", news.tell)
            before = "" if scheduled else self._cause_before(attempt, folder, news)
        elif code:
            reason = self._explain(attempt, folder, news)
        elif self.leads and lost_a_rank(attempt.output):
            before = self._printed(attempt, attempt.output, HIDDEN, folder, news)
        news.close()
        self._keep(attempt, code, by_others, reason.says if reason else before, folder)
        if reason is not None:
            self.parts += [reason.files[".json"]] if ".json" in reason.files else []
            if not command.late and self._again(reason):
                return None
        if attempt.ended:
            return self._ends(EXIT_ENDED, Whose.ENDED, attempt.seconds)
        self._ends(code, Whose.JOB, attempt.seconds)
        end_as(attempt.status)
        return code

    def _folder(self, *, whole: bool = False) -> RunFolder:
        """That of this attempt, or of the whole run."""
        parent = self.request.outputs.report_dir
        attempt = self.number if self.wishes.restarts and not (whole or self.on_each) else 0
        return RunFolder(parent, _stamp(self.began), job_id(os.environ), os.getpid(), attempt)

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
        if self.on_each:  # the other instances would not follow
            return False
        self.causes |= causes
        who = self.request.who
        self.request = replace(self.request, who=replace(who, exclude=(*who.exclude, *reason.blamed)))
        announce(f"the command is started again without {fold(reason.blamed)}.")
        return True

    def _by_others(self, attempt: JobAttempt, why: str) -> str:
        """Who ended the command, if it was neither itself nor doctor. `why` is what its scheduler says."""
        if attempt.ended:
            return ""
        if attempt.by_signal:
            name = signal.Signals(attempt.by_signal).name
            return f"somebody ended the job by {name}{f': {why}' if why else ''}"
        return f"Slurm ended the job: {why}" if why else ""

    def _cause_before(self, attempt: JobAttempt, folder: RunFolder, news: Newsroom) -> str:
        """What ended the command before it was told to end: a script that fails may end all it started by a
        signal, itself and doctor included.
        """
        if not (attempt.by_signal and self.leads):
            return ""
        return self._printed(attempt, attempt.before_signal, BEFORE, folder, news)

    def _printed(
        self, attempt: JobAttempt, output: Output, headline: str, folder: RunFolder, news: Newsroom
    ) -> str:
        """What ended the command by what it printed alone, if that is sure."""
        try:
            reason = printed_cause(self._of_job(), output, lost=headline is HIDDEN)
        except DoctorError as error:
            announce(f"the end could not be explained: {error.message}", news.tell)
            return ""
        if reason is None:
            return ""
        folder.keep(attempt.output)
        self.parts += filter(None, (reason.files.get(".json"),))
        announce(headline, news.tell)
        news.publish("why", reason.says, reason.text, reason.files)
        return reason.says

    def _explain(self, attempt: JobAttempt, folder: RunFolder, news: Newsroom) -> EndReason | None:
        """Say why the command ended, unless doctor ended it."""
        if not self.leads:
            folder.keep(attempt.output, PART)
            return None
        folder.keep(attempt.output)
        if attempt.ended:
            return None
        killed = exit_code(attempt.status) == 128 + signal.SIGKILL
        printed_into = own_logs(agent_of(self.words))
        parts = folder.parent if self.on_each else None
        past = PastCommand(attempt.lives, attempt.began, attempt.seconds, killed, printed_into, parts)
        try:
            reason = explained(self._of_job(), attempt.output, past)
        except DoctorError as error:  # the exit code stays the job's
            announce(f"the end could not be explained: {error.message}", news.tell)
            return None
        if not reason.named and os.WIFSIGNALED(attempt.status):
            name = signal.Signals(os.WTERMSIG(attempt.status)).name
            reason = replace(reason, says=f"{name} ended the command; nothing says who sent it.")
        news.publish("why", reason.says, reason.text if reason.named else "", reason.files)
        return reason

    def _keep(self, attempt: JobAttempt, code: int, by_others: str, why: str, folder: RunFolder) -> None:
        hosts, left_out = self.before.hosts, self.before.left_out
        part = tuple(host for host in hosts if host not in left_out)
        where = str(folder.path or "")
        self.attempts.append(EndedAttempt(part, left_out, attempt, code, by_others, why, where))

    def _ends(self, code: int, whose: Whose, seconds: float | None = None) -> int:
        if len(self.attempts) > 1:
            self._index()
        self._write(code, whose)
        if code or not self.request.outputs.quiet:
            after = f", after {duration(seconds)}" if seconds is not None else ""
            announce(f"the exit code {code} is {whose.words}{after}.")
        return code

    def _index(self) -> None:
        """One page about all attempts, beside their folders."""
        from doctor.run.attempts_page import attempts_page
        from doctor.run.page_files import in_files

        folder = self._folder(whole=True)
        page = attempts_page([each.entry() for each in self.attempts], _stamp(self.began))
        if folder.write({f"attempts{suffix}": data for suffix, data in in_files(page)[1].items()}):
            announce(f"all attempts are in {folder.path}/attempts.txt")

    def _write(self, code: int, whose: Whose) -> None:
        """Write the reports that were asked for. The exit code stays what it is if that fails."""
        if not any(self.request.outputs.files()):
            return
        from doctor.report.envelope import EnvelopeRun
        from doctor.report.outputs import write_formats
        from doctor.run.report import around_report

        entries = [each.entry() for each in self.attempts]
        run = EnvelopeRun(command="run", started=_stamp(self.began), seconds=time.time() - self.began)
        try:
            write_formats(self.request.outputs, around_report(run, code, whose, entries, self.parts))
        except DoctorError as error:
            announce(error.message)


def _stamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def run_watched(words: Sequence[str], request: Request, wishes: RunWishes) -> int:
    """The exit code. `words` are what follows `--`."""
    _ = wishes.least  # a mistake is reported before anything else
    for form, path in request.outputs.files():
        if path == STDOUT:
            raise UsageError(f"{form.option} -: stdout belongs to the command.", "Name a file.")
    if any(request.outputs.files()) or request.outputs.report_dir or request.outputs.shadow:
        from doctor.report.outputs import refuse_unwritable

        refuse_unwritable(request.outputs, {})
    return CommandRun(tuple(words), request, wishes)()

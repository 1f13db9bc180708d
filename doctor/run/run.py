"""`doctor run`: from the words of the command to its exit code."""

import errno
import os
import shlex
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace

from doctor.errors import EXIT_FAULT, UsageError
from doctor.exam.request import Request
from doctor.job.launch.forms import Go
from doctor.report.out.formats import STDOUT
from doctor.run import launcher
from doctor.run.apart import StoppedPart
from doctor.run.attempt import Watched
from doctor.run.before import BeforeStart, examined, unexamined, with_hosts
from doctor.run.command import Command, end_as
from doctor.run.end import AttemptEnd
from doctor.run.envelope import Whose
from doctor.run.folder import PART
from doctor.run.news import Newsroom
from doctor.run.options import RunWishes
from doctor.run.placeholders import OF_HOSTS, filled, named_in
from doctor.run.reason import EndReason
from doctor.run.record import RunRecord
from doctor.run.relay.command import NOT_FOUND, NOT_STARTED
from doctor.text.announce import announce
from doctor.text.nodeset import fold, unfold
from doctor.text.printable import clean_line
from doctor.text.redact import redact
from doctor.text.terminal import tell

EXIT_ENDED = 75


class CommandRun:
    """One call of `doctor run`. As it is, it is an instance beside the one that leads, on another host of the
    job: it passes everything on.
    """

    _restarts = False
    """Whether the command may be started again."""

    def __init__(self, words: Sequence[str], request: Request, wishes: RunWishes) -> None:
        self._words, self._wishes = tuple(words), wishes
        self._request = with_hosts(request, self._words)
        self._agent = launcher.agent_of(self._words)
        self._places = named_in(self._words)
        self._before = BeforeStart(0, None)
        self._hostfile = ""
        self._record = RunRecord(request.outputs, several=self._restarts)

    def __call__(self) -> int:
        """The exit code."""
        self._list()
        return self._ends(self._started(watches=False))

    def _list(self) -> None:
        """Find out the hosts without an examination, if the command names them by placeholders: each
        instance on the hosts of a job must fill in the same.
        """
        if self._places:
            listed = unexamined(self._request, self._words)
            self._before = replace(self._before, going=listed.going, hosts=listed.hosts)

    def _filled(self) -> Sequence[str]:
        going = self._before.going
        return filled(self._words, going, self._write_hostfile) if self._places and going else self._words

    def _write_hostfile(self, going: Go) -> str:
        """A file that goes when the command has ended."""
        number, name = tempfile.mkstemp(prefix="doctor-hosts-")
        with open(number, "w", encoding="utf-8") as file:
            file.write("".join(f"{host} slots={going.ranks[host]}\n" for host in going.hosts))
        self._hostfile = name
        return name

    def _of_job(self) -> Request:
        """The request for the hosts that take part."""
        who, left_out = self._request.who, self._before.left_out
        return replace(self._request, who=replace(who, exclude=(*who.exclude, *left_out)))

    def _started(self, *, watches: bool) -> AttemptEnd:
        """Start the command, and wait for its end."""
        words, folder = self._filled(), self._record.next_folder()
        with Command(words, self._hostfile, holds=self._restarts) as self._command:
            output, raw = self._command.output, self._command.has_terminal
            news = Newsroom(folder, self._wishes.notify, output, raw=raw)
            attempt = Watched(self._command, self._of_job(), self._wishes, news).run(watches=watches)
        news.raw = False
        end = AttemptEnd(self._of_job(), self._before, attempt, folder, news)
        if attempt.why_not:
            end.code = NOT_FOUND if attempt.why_not == errno.ENOENT else NOT_STARTED
            word = clean_line(shlex.quote(words[0]))
            end.why_not = f"{word} could not be started: {os.strerror(attempt.why_not)}."
            announce(end.why_not)
        else:
            if end.code or not self._request.outputs.quiet:
                news.begin_line()
            self._explain(end)
            news.close()
        self._record.add(end)
        return end

    def _explain(self, end: AttemptEnd) -> None:
        """Leave that to the instance that leads, with what was printed here."""
        if not end.told_of_others() and end.code:
            end.folder.keep(end.attempt.output, PART)

    def _ends(self, end: AttemptEnd) -> int:
        """End as the command did."""
        attempt = end.attempt
        if attempt.why_not:
            return self._record.end(end.code, Whose.NOT_STARTED)
        if attempt.ended:
            return self._record.end(EXIT_ENDED, Whose.ENDED, attempt.seconds)
        self._record.end(end.code, Whose.JOB, attempt.seconds)
        end_as(attempt.status)
        return end.code


class LeadingRun(CommandRun):
    """The instance that examines the hosts, watches the command, and explains its end."""

    _among_others = False
    """Whether instances on other hosts do the same."""

    def __call__(self) -> int:
        code = self._examine()
        return self._ends(self._start()) if code is None else self._record.end(code, Whose.PREFLIGHT)

    def _start(self) -> AttemptEnd:
        if self._among_others or self._wishes.no_preflight or self._request.outputs.shadow:
            self._list()
        return self._started(watches=True)

    def _examine(self) -> int | None:
        """The exit code if the command must not be started."""
        if self._wishes.no_preflight:
            return None
        try:
            self._before = examined(self._request, self._words)
        except StoppedPart as stop:
            announce(f"{signal.Signals(stop.number).name} came before the command was started.")
            return 128 + stop.number
        self._record.parts += filter(None, (self._before.report,))
        if self._before.page:
            self._record.keep_preflight(self._before.page)
        left_out = self._left_out()
        if self._before.code or not left_out or self._goes_without():
            return self._before.code or None
        why, line = self._refusal(left_out)
        announce(why)
        tell(f"        {clean_line(redact(line))}\n")
        return EXIT_FAULT

    def _left_out(self) -> str:
        """The hosts that were left out, unless the command itself names others only."""
        listed, _ = launcher.named_hosts(self._agent)
        own = {host for names in listed for host in unfold(names)}
        return clean_line(fold(host for host in self._before.left_out if not own or host in own))

    def _goes_without(self) -> bool:
        """Whether the command can be started without some hosts."""
        return bool(self._places & OF_HOSTS)

    def _refusal(self, left_out: str) -> tuple[str, str]:
        """Why it cannot, and what to type."""
        why = (
            f"{left_out} must not take part, but the command does not say where the hosts belong, so it was"
            " not started. Type:"
        )
        return why, launcher.line_to_type(self._words, self._agent, ["doctor", *_typed()])

    def _explain(self, end: AttemptEnd) -> None:
        if end.told_of_others() or not end.code:
            end.look_before()
        else:
            end.explain(launcher.own_logs(self._agent), end.folder.parent if self._among_others else None)


class FirstRun(LeadingRun):
    """The leading one of those that run on each host of the job. All fill in the same hosts."""

    _among_others = True

    def _goes_without(self) -> bool:
        return False

    def _refusal(self, left_out: str) -> tuple[str, str]:
        why = (
            f"{left_out} must not take part, but the other hosts would wait for it, so the command was not"
            " started. Type on each of the others:"
        )
        return why, shlex.join(["doctor", *_typed(), "--exclude", left_out, "--", *self._words])


class RestartingRun(LeadingRun):
    """Starts the command again, without the hosts that ended it."""

    _restarts = True
    _causes: frozenset[tuple[str, str]] = frozenset()
    """What ended earlier attempts, each with its host."""
    _number = 0
    """How often it was started again."""

    def __call__(self) -> int:
        while (code := self._examine()) is None:
            end = self._start()
            if end.reason is None or self._command.late or not self._again(end.reason):
                return self._ends(end)
        return self._record.end(code, Whose.PREFLIGHT)

    def _again(self, reason: EndReason) -> bool:
        """Whether the command is started again: only if hosts caused its end, without these, and not twice
        for the same cause on the same host.
        """
        causes = {(reason.cause, host) for host in reason.blamed}
        left = [host for host in self._before.hosts if host not in (*self._before.left_out, *reason.blamed)]
        enough = len(left) >= (self._request.what.need_hosts or 1) and self._goes_without()
        if not causes or causes & self._causes or not enough or (self._number >= self._wishes.restarts):
            return False
        self._causes |= causes
        self._number += 1
        who = self._request.who
        self._request = replace(self._request, who=replace(who, exclude=(*who.exclude, *reason.blamed)))
        announce(f"the command is started again without {fold(reason.blamed)}.")
        return True


def _typed() -> list[str]:
    """The words of doctor's own command line."""
    return sys.argv[1 : sys.argv.index("--")] if "--" in sys.argv else ["run"]


def _mode(words: Sequence[str], request: Request, *, restarts: bool) -> type[CommandRun]:
    agent = launcher.agent_of(words)
    if not launcher.runs_on_each_host(agent, os.environ):
        return RestartingRun if restarts else LeadingRun
    first = launcher.is_first(agent, os.environ, lambda: unexamined(with_hosts(request, words), words).hosts)
    return FirstRun if first else CommandRun


def run_watched(words: Sequence[str], request: Request, wishes: RunWishes) -> int:
    """The exit code. `words` are what follows `--`."""
    _ = wishes.least  # a mistake is reported before anything else
    for form, path in request.outputs.files():
        if path == STDOUT:
            raise UsageError(f"{form.option} -: stdout belongs to the command.", "Name a file.")
    if any(request.outputs.files()) or request.outputs.report_dir or request.outputs.shadow:
        from doctor.report.out.outputs import refuse_unwritable

        refuse_unwritable(request.outputs, {})
    return _mode(words, request, restarts=wishes.restarts > 0)(words, request, wishes)()

"""`doctor run`: from the words of the command to its exit code."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass

from doctor.around.before import BeforeStart, examined, unexamined, with_hosts
from doctor.around.command import Command, end_as, exit_code
from doctor.around.launcher import agent_of, line_to_type, named_hosts
from doctor.around.options import AroundWishes
from doctor.around.placeholders import OF_HOSTS, filled, named_in
from doctor.around.relay.command import NOT_FOUND, NOT_STARTED
from doctor.errors import EXIT_FAULT
from doctor.job.launch.forms import Go
from doctor.run.request import Request
from doctor.text.nodeset import fold, unfold
from doctor.text.printable import clean_line
from doctor.text.terminal import tell

JOB, PREFLIGHT, ENDED = "the job's", "the pre-flight's", "doctor's, which ended the job"
"""Whose exit code it is."""
NOTHING = BeforeStart(0, None)
LOOKS = 1.0
"""Seconds between looks at what was printed."""


@dataclass(slots=True)
class AroundRun:
    """One call of `doctor run`."""

    words: tuple[str, ...]
    request: Request
    wishes: AroundWishes
    before: BeforeStart = NOTHING
    hostfile: str = ""

    def __call__(self) -> int:
        self.request = with_hosts(self.request, self.words)
        places = named_in(self.words)
        if not self.wishes.no_preflight:
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
        left_out = clean_line(fold(self._drops()))
        tell(
            f"doctor: {left_out} must not take part, but the command does not say where the hosts belong,"
            " so it was not started. Type:\n"
            f"        {clean_line(line)}\n"
        )
        return self._ends(EXIT_FAULT, PREFLIGHT)

    def _write_hostfile(self, going: Go) -> str:
        """A file that goes when the command has ended."""
        number, name = tempfile.mkstemp(prefix="doctor-hosts-")
        with open(number, "w", encoding="utf-8") as file:
            file.write("".join(f"{host} slots={going.ranks[host]}\n" for host in going.hosts))
        self.hostfile = name
        return name

    def _command(self, words: Sequence[str]) -> int:
        began = time.monotonic()
        with Command(words, self.hostfile) as command:
            while not command.over:
                command.wait(LOOKS)
        if command.why_not:
            return self._not_started(words[0], command.why_not)
        status = command.status or 0
        code = exit_code(status)
        self._ends(code, JOB, time.monotonic() - began)
        end_as(status)
        return code

    def _not_started(self, program: str, why: int) -> int:
        code = NOT_FOUND if why == 2 else NOT_STARTED
        tell(f"doctor: {clean_line(shlex.quote(program))} could not be started: {os.strerror(why)}.\n")
        return self._ends(code, JOB)

    def _ends(self, code: int, whose: str, seconds: float | None = None) -> int:
        if code or not self.request.outputs.quiet:
            after = f", after {_duration(seconds)}" if seconds is not None else ""
            tell(f"doctor: the exit code {code} is {whose}{after}.\n")
        return code


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "min"), (rest, "s"))
    shown = [f"{number} {unit}" for number, unit in parts if number]
    return " ".join(shown) or f"{seconds:.1f} s"


def run_around(words: Sequence[str], request: Request, wishes: AroundWishes) -> int:
    """The exit code. `words` are what follows `--`."""
    return AroundRun(tuple(words), request, wishes)()

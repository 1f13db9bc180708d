"""The command as doctor sees it: it starts the relay, passes signals on, and learns how the command ended."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from doctor.errors import DoctorError
from doctor.run.output import NAMES, Output
from doctor.run.relay.kept import SIZE, nameless_file
from doctor.run.relay.main import FORWARDED
from doctor.run.relay.order import PASS, PIPE, TERMINAL, CommandOrder

ROOT = Path(__file__).parents[2]
_PROGRAM = "import sys; sys.path.append(sys.argv[1]); from doctor.run.relay.main import main; main({})"
MOST = 100
"""The signals that are remembered, the last ones."""
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


@dataclass(frozen=True, slots=True)
class SentSignal:
    number: int
    at: float
    """In time.monotonic()."""
    printed: dict[str, int]
    """How much the streams had printed by then. The relay knows of more than has arrived."""


class Command:
    """One start of the command. A context manager: signals are ours only inside of it. Those to end are noted
    after it, too: what is said about the end takes seconds.
    """

    def __init__(self, words: Sequence[str], remove: str = "", *, holds: bool = False) -> None:
        """`remove` is a file that goes when the command has ended. `holds`: doctor keeps its own stdin and
        stdout, for a next start.
        """
        self._holds = holds
        kinds, together = _kinds()
        self._order = CommandOrder(
            words=tuple(map(os.fsencode, words)),
            environment=own_environment(),
            streams=kinds,
            together=together,
            reaps=os.getpid() == 1,
            front=_in_front(),
            remove=os.fsencode(remove),
        )
        self.has_terminal = TERMINAL in kinds
        self.pid = 0
        self.status: int | None = None
        """As waitpid returns it."""
        self.why_not = 0
        """The error with which the command could not be started."""
        self.signals: list[SentSignal] = []
        """The signals that doctor got meanwhile, and those that somebody typed."""
        self.late: list[int] = []
        """The signals to end that came after its end: schedulers repeat them. They take no last word away."""
        self.stopped = 0
        """How often doctor was stopped, so that pauses meanwhile say nothing."""
        self._drained = False
        self._asked: list[dict[str, int]] = []
        """What was printed before each signal that the relay was given, until it says so."""
        self._told = bytearray()
        self._before: dict[int, object] = {}
        copied = [at for at, _ in self._order.copied()]
        self._copied = [NAMES[at] for at in copied]
        self._file = nameless_file(SIZE * max(1, len(copied)))
        self.output = Output(self._file, copied, kinds)

    def __enter__(self) -> Command:
        orders, self._orders = os.pipe()
        self._reports, reports = os.pipe()
        passed = (orders, reports, self._file)
        for each in passed:
            os.set_inheritable(each, True)
        program = _PROGRAM.format(", ".join(map(str, passed)))
        self._catch()
        try:
            self._relay = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", program, str(ROOT)], close_fds=False
            )
        finally:
            for each in passed:
                os.close(each)
        self._say(self._order.sent())
        while not self.pid and not self.over:
            self.wait(None)
        if not self._holds:
            _let_go(self._order.streams)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            after = (lambda late, _: self.late.append(late)) if number in ENDS else handler
            signal.signal(number, after)  # type: ignore[arg-type]
        os.close(self._orders)
        os.close(self._reports)

    @property
    def over(self) -> bool:
        """Whether it has ended, and its output has arrived."""
        return self._drained or bool(self.why_not)

    def wait(self, seconds: float | None) -> None:
        """Wait for news at most so long."""
        if not select.select([self._reports], [], [], seconds)[0]:
            return
        more = os.read(self._reports, 4096)
        if not more:
            if not self.over:
                raise DoctorError(
                    "The relay of the command's output was killed.", "The command lost its output."
                )
            return
        *lines, rest = (bytes(self._told) + more).split(b"\n")
        self._told = bytearray(rest)
        for line in lines:
            self._heard(*line.decode().partition(" ")[::2])

    def adopt(self) -> int:
        """Keep what the command sets free from now on below the relay. Returns the PID of the relay."""
        self._say(b"adopt\n")
        return self._relay.pid

    def send(self, number: int, printed: dict[str, int] | None = None) -> None:
        """Send a signal to the command, and note later what it had `printed` by then."""
        self._asked.append({} if printed is None else printed)
        self._say(b"signal %d\n" % number)

    def _heard(self, what: str, value: str) -> None:
        if what == "started":
            self.pid = int(value)
        elif what == "failed":
            self.why_not = int(value)
        elif what == "stopped":
            self._stop()
        elif what == "ended":
            self.status = int(value)
        elif what == "drained":
            self._drained = True
        elif what == "typed":
            self._note(int(value))
        elif what == "printed":
            self._asked.pop(0).update(zip(self._copied, map(int, value.split()), strict=True))

    def _catch(self) -> None:
        for number in FORWARDED:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._pass_on)
        self._before[signal.SIGWINCH] = signal.signal(signal.SIGWINCH, lambda *_: self._say(b"resize\n"))

    def _note(self, number: int) -> None:
        sent = SentSignal(number, time.monotonic(), dict(self.output.totals))
        self.signals = [*self.signals, sent][-MOST:]

    def _pass_on(self, number: int, _frame: object) -> None:
        self._note(number)
        if number in ENDS and self.status is not None:  # it has ended, but nobody takes its output
            self._drained = True
            return
        self.send(number, self.signals[-1].printed)
        if number == signal.SIGTSTP:
            self._stop()
        elif number == signal.SIGCONT:
            self.stopped += 1
            self._say(b"front %d\n" % _in_front())

    def _stop(self) -> None:
        """Stop as the command did, so that the shell has its terminal."""
        os.kill(os.getpid(), signal.SIGSTOP)

    def _say(self, data: bytes) -> None:
        with contextlib.suppress(OSError):
            while data:
                data = data[os.write(self._orders, data) :]


def own_environment() -> tuple[bytes, ...]:
    """The variables that doctor was given: Python may have added one about the locale."""
    try:
        said = Path("/proc/self/environ").read_bytes().split(b"\0")
    except OSError:
        said = [b"=".join(each) for each in os.environb.items()]
    return tuple(each for each in said if each)


def _kinds() -> tuple[tuple[str, str, str], bool]:
    """How each stream of the command is made, and whether stdout and stderr are one.

    A regular file is passed on as it is, and read by its name. So nothing stands between it and the command.
    """
    kinds = tuple(TERMINAL if os.isatty(at) else _kind(at) for at in (0, 1, 2))
    about = [os.fstat(at) for at in (1, 2)]
    return kinds, (os.path.samestat(*about) and kinds[1] == kinds[2] == PIPE)  # type: ignore[return-value]


def _kind(at: int) -> str:
    if at == 0:
        return PASS
    if not stat.S_ISREG(os.fstat(at).st_mode):
        return PIPE
    try:
        os.close(os.open(f"/proc/self/fd/{at}", os.O_RDONLY))
    except OSError:
        return PIPE
    return PASS


def _in_front() -> bool:
    """Whether doctor is in the foreground of its terminal."""
    for at in (0, 1, 2):
        with contextlib.suppress(OSError):
            return os.tcgetpgrp(at) == os.getpgrp()
    return False


def _let_go(streams: Sequence[str]) -> None:
    """Leave stdin and stdout to the command: whoever is at their other end must see when it closes them."""
    sys.stdout.flush()
    null = os.open(os.devnull, os.O_RDWR)
    for at in (0, 1):
        if streams[at] != TERMINAL:
            os.dup2(null, at)
    os.close(null)


def exit_code(status: int) -> int:
    """As a shell says it."""
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def end_as(status: int) -> None:
    """End as the command did, if a signal ended it; returns if that cannot be."""
    if not os.WIFSIGNALED(status):
        return
    import resource

    number = os.WTERMSIG(status)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError, ValueError):
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

"""A terminal: the command has one too, of the same size, with job control, and shows what it would show."""

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Iterator, Sequence

from tests.support.cases import cases
from tests.support.command import AT_ONCE, PYTHON, SECONDS
from tests.support.commands import DOCTOR

BASH = ("bash", "--norc", "--noprofile", "-i")


class Screen:
    """A terminal with a program in it."""

    def __init__(self, words: Sequence[str]) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(PS1="$ ", TERM="xterm", HISTFILE="")
            os.execvp(words[0], list(words))
        self.resize(33, 77)
        self.shown = self.before = b""

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def awaits(self, text: str) -> None:
        """Wait until the text appears after everything that was awaited before."""
        until = time.monotonic() + SECONDS
        while text.encode() not in self.shown:
            left = until - time.monotonic()
            assert left > 0, f"{text!r} did not come: {self.shown!r}"
            if select.select([self.fd], [], [], left)[0]:
                self.shown += os.read(self.fd, 4096)
        before, found, self.shown = self.shown.partition(text.encode())
        self.before += before + found

    def rest(self) -> bytes:
        with contextlib.suppress(OSError):
            while more := os.read(self.fd, 4096):
                self.shown += more
        return self.shown

    def close(self) -> None:
        os.close(self.fd)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


@contextlib.contextmanager
def screen(*words: str) -> Iterator[Screen]:
    made = Screen(words)
    try:
        yield made
    finally:
        made.close()


def test_what_is_shown_is_equal() -> None:
    code = r"import os; print('a\tb\n\x1b[31mred\x1b[0m', [os.isatty(n) for n in (0, 1, 2)])"
    shown = []
    for before in ((), AT_ONCE):
        with screen(*before, PYTHON, "-c", code) as terminal:
            shown.append(terminal.rest())
    assert shown[0] == shown[1]
    assert b"[True, True, True]\r\n" in shown[0]


def test_the_size_and_its_changes() -> None:
    code = (
        "import os, signal\n"
        "signal.signal(signal.SIGWINCH, lambda *_: print('size', *os.get_terminal_size(), flush=True))\n"
        "print('ready', flush=True)\n"
        "while True: signal.pause()"
    )
    with screen(*AT_ONCE, PYTHON, "-c", code) as terminal:
        terminal.awaits("ready")
        terminal.resize(40, 100)
        terminal.awaits("size 100 40")
        terminal.type("\x03")
        terminal.awaits("KeyboardInterrupt")


def test_keys_reach_the_command() -> None:
    with screen(*AT_ONCE, PYTHON, "-c", "print('got ' + input('name? ').upper())") as terminal:
        terminal.awaits("name? ")
        terminal.type("ada\r")
        terminal.awaits("got ADA")


def test_the_terminal_is_as_before() -> None:
    with screen("sh", "-c", 'stty -g; "$@"; stty -g; echo done', "sh", *AT_ONCE, "true") as terminal:
        before, after, _ = terminal.rest().split()
        assert before == after


def test_stop_and_go_on() -> None:
    with screen(*BASH) as terminal:
        terminal.awaits("$ ")
        code = "print('re' + 'ady', flush=True); input(); print('again' * 2, flush=True); input()"
        terminal.type(f'{" ".join(AT_ONCE)} {PYTHON} -c "{code}"; echo code=$?\r')
        terminal.awaits("ready")
        terminal.type("\x1a")
        terminal.awaits("Stopped")
        terminal.awaits("$ ")
        terminal.type("echo shell$((1+1))\r")
        terminal.awaits("shell2")
        terminal.type("fg\r")
        terminal.type("\r")
        terminal.awaits("againagain")
        terminal.type("\x03")
        terminal.awaits("KeyboardInterrupt")
        terminal.awaits("$ ")
        terminal.type("stty -a | tr ' ' '\\n' | grep icanon\r")
        terminal.awaits("\ricanon")


def test_keys_that_end_the_command_are_somebodys_end() -> None:
    with screen(*DOCTOR, "run", "--no-preflight", "--", "sh", "-c", "echo ready; exec sleep 600") as terminal:
        terminal.awaits("ready")
        terminal.type("\x03")
        terminal.awaits("^C\r\ndoctor: somebody ended the job by SIGINT.\r\n")
        terminal.awaits("the exit code 130 is the job's")


def test_a_program_that_reads_every_key_was_not_interrupted() -> None:
    code = (
        "import os, tty; tty.setraw(0); print('re' + 'ady', flush=True); os.read(0, 9); raise SystemExit(4)"
    )
    with screen(*DOCTOR, "run", "--no-preflight", "--", PYTHON, "-c", code) as terminal:
        terminal.awaits("ready")
        terminal.type("\x03")
        terminal.awaits("the exit code 4 is the job's")
        assert b"somebody" not in terminal.before


@cases
def test_a_line_of_doctor_begins_a_line(code: str, end: str) -> None:
    with screen(*DOCTOR, "run", "--no-preflight", "--", PYTHON, "-c", code) as terminal:
        terminal.awaits(f"{end}doctor: the exit code 0")

"""A program in a terminal of its own, and the text on its screen, for the few terminal features that reports
use.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tests.support.commands import environment

_PIECES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r|\n|[^\x1b\r\n]+")


@dataclass(slots=True)
class Terminal:
    """`seen` is every byte, `rows` the screen: lines never wrap here, so no line may be wider than it."""

    pid: int
    master: int
    columns: int
    seen: str = ""
    widest: int = 0
    rows: list[str] = field(default_factory=lambda: [""])
    _row: int = 0
    _at: int = 0
    status: int | None = None

    @property
    def text(self) -> str:
        return "\n".join(row.rstrip() for row in self.rows).strip("\n")

    def type(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def resize(self, columns: int) -> None:
        self.columns = columns
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def await_that(self, holds: Callable[[Terminal], bool], seconds: float = 30) -> None:
        until = time.monotonic() + seconds
        while not holds(self):
            assert self._read(until), f"the program ended, or nothing came:\n{self.seen!r}"

    def await_end(self, seconds: float = 60) -> int:
        """Wait for the end; returns the exit code."""
        until = time.monotonic() + seconds
        while self._read(until):
            pass
        self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.status

    def _read(self, until: float) -> bool:
        ready, _, _ = select.select([self.master], [], [], max(0.0, until - time.monotonic()))
        piece = b""
        if ready:
            with contextlib.suppress(OSError):  # the other side has closed
                piece = os.read(self.master, 65536)
        while piece:
            with contextlib.suppress(UnicodeDecodeError):
                self._draw(piece.decode())
                break
            piece += os.read(self.master, 1)
        return bool(piece)

    def _draw(self, text: str) -> None:
        self.seen += text
        for piece in _PIECES.findall(text):
            if piece == "\r":
                self._at = 0
            elif piece == "\n":
                self._row += 1
                self.rows += [""] * (self._row + 1 - len(self.rows))
            elif piece.startswith("\x1b"):
                assert piece[-1] in "mJ", f"not drawn by us: {piece!r}"
                if piece.endswith("J"):
                    del self.rows[self._row + 1 :]
                    self.rows[self._row] = self.rows[self._row][: self._at]
            else:
                row = self.rows[self._row].ljust(self._at)
                self.rows[self._row] = row[: self._at] + piece + row[self._at + len(piece) :]
                self._at += len(piece)
                self.widest = max(self.widest, self._at)


@contextlib.contextmanager
def in_terminal(
    argv: Sequence[str], *, columns: int = 80, env: Mapping[str, str] | None = None
) -> Iterator[Terminal]:
    """The program is killed at the end if it still runs."""
    variables = {**environment(), "TERM": "xterm-256color", **(env or {})}
    variables.pop("COLUMNS")
    pid, master = pty.fork()
    if pid == 0:
        os.execvpe(argv[0], list(argv), variables)
    terminal = Terminal(pid, master, columns)
    terminal.resize(columns)
    try:
        yield terminal
    finally:
        if terminal.status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
            os.waitpid(pid, 0)
        os.close(master)

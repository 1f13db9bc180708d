"""A conversation with one running program, however it was started: a script, or lines in both directions."""

import time
from collections import deque
from typing import Protocol

from doctor.model import Answer, AnswerEnd
from doctor.transport import Script

# After its last line a program has this long to report its exit status.
STATUS_GRACE = 0.2
# After a pause of our own program, data that arrived in time may still be unread.
LAST_LOOK = 0.05
PIECE = 32 * 1024
LONGEST_TAIL = 1024 * 1024
OUTPUT_CAP = 8 * 1024 * 1024
"""Bytes of stdout, and of stderr, that are kept per host."""


class Program(Protocol):
    """A program on some host. One thread talks to it; `ring` and `end` may be called from any thread."""

    def wait(self, seconds: float) -> None:
        """Return when something may have changed, or after `seconds`."""

    def ring(self) -> None:
        """Make `wait` return."""

    def take(self) -> tuple[bytes, bytes]:
        """The available stdout and stderr, without waiting."""

    def give(self, data: memoryview) -> int:
        """Write as much as fits to its stdin, without waiting. Raises OSError if it no longer reads."""

    def finished(self) -> bool:
        """Whether nothing more will come and everything was taken."""

    def broken(self) -> bool:
        """Whether it ended because the connection to it broke."""

    def status(self, seconds: float) -> int | None:
        """The exit status, if it is known within `seconds`."""

    def hang_up(self) -> None:
        """Close its stdin, which it watches."""

    def end(self) -> None:
        """Release the program for good; a local one is also ended. Safe to call twice."""


def converse(host: str, program: Program, script: Script, deadline: float) -> Answer:
    """Feed the script, and read both streams until the last line, the end, the deadline or OUTPUT_CAP."""
    out, err = bytearray(), bytearray()
    unsent = deque([memoryview(script.stdin)] if script.stdin else [])
    finder = _LastLine(script.last_line)
    started = ended = time.time()
    rc: int | None = None
    late = False
    try:
        while True:
            feed(program, unsent)
            some_out, some_err = program.take()
            if some_out or some_err:
                ended = time.time()
                out += some_out
                err += some_err
                if some_out and finder.found(out):
                    del out[finder.end :]
                    end = AnswerEnd.DONE
                    break
                if max(len(out), len(err)) > OUTPUT_CAP:
                    end = AnswerEnd.FLOOD
                    break
            elif program.finished():
                end = AnswerEnd.LOST if program.broken() else AnswerEnd.DONE
                break
            elif late:
                end = AnswerEnd.TIMEOUT
                break
            else:
                left = deadline - time.monotonic()
                late = left <= 0
                program.wait(LAST_LOOK if late else left)
        if end is AnswerEnd.DONE:
            program.hang_up()
            err += _tail(program)
            rc = program.status(STATUS_GRACE)
    finally:
        program.end()
    return Answer(host, bytes(out[:OUTPUT_CAP]), bytes(err[:OUTPUT_CAP]), rc, end, started, ended)


def _tail(program: Program) -> bytes:
    """The rest of stderr, which may still be on its way when the last line of stdout has arrived."""
    err = bytearray()
    until = time.monotonic() + STATUS_GRACE
    while len(err) < LONGEST_TAIL and (left := until - time.monotonic()) > 0:
        out, more = program.take()
        err += more
        if not (out or more):
            if program.finished():
                break
            program.wait(left)
    return bytes(err)


def feed(program: Program, unsent: deque[memoryview]) -> None:
    """Send what fits. It is not a failure if a program stops reading: its output and its end decide."""
    try:
        while unsent:
            sent = program.give(unsent[0][:PIECE])
            if sent == 0:
                return
            unsent[0] = unsent[0][sent:]
            if not unsent[0]:
                unsent.popleft()
    except OSError:
        unsent.clear()


class _LastLine:
    """Looks for a complete line in growing text; reads no byte more than twice."""

    def __init__(self, line: bytes) -> None:
        self._line = line + b"\n"
        self._from = 0
        self._never = not line
        self.end = 0

    def found(self, text: bytearray) -> bool:
        while not self._never:
            at = text.find(self._line, self._from)
            if at < 0:
                self._from = max(self._from, len(text) - len(self._line))
                return False
            if at == 0 or text[at - 1] == 10:
                self.end = at + len(self._line)
                return True
            self._from = at + 1
        return False

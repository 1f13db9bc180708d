"""Programs that a rank runs on its host for rank 0: their lives, and the bytes between them and rank 0."""

import threading
from collections import deque
from collections.abc import Callable

from doctor.exam.in_job.messages import ProgramEnded
from doctor.exam.in_job.own_programs import NOT_MADE, OwnProgram, RequestRefusal
from doctor.exam.in_job.wire import PIECE, STDERR, STDOUT, RankLink
from doctor.transport.local import LocalProgram
from doctor.transport.program import feed
from doctor.transport.session import LONGEST_LINE

FOREVER = 3600.0
STATUS_SECONDS = 1.0
MOST_PROGRAMS = 16


CANNOT_RUN = 126
"""The exit code of a shell that finds a program but cannot start it."""


class ServedProgram:
    """One program; only its own thread talks to it. `make` builds it, in that thread."""

    def __init__(self, number: int, make: Callable[[], OwnProgram], link: RankLink) -> None:
        self.number = number
        self._make = make
        self._link = link
        self._come: deque[bytes] = deque()
        self._in: deque[memoryview] = deque()
        self._begun = b""
        self._program: LocalProgram | None = None
        self._hang_up = False
        self._end = False
        self.thread = threading.Thread(target=self._live, name=f"served {number}", daemon=True)
        self.thread.start()

    def give(self, data: bytes) -> None:
        if data:
            self._come.append(data)
            self.ring()

    def hang_up(self) -> None:
        self._hang_up = True
        self.ring()

    def end(self) -> None:
        self._end = True
        self.ring()

    def ring(self) -> None:
        program = self._program
        if program is not None:
            program.ring()

    def _live(self) -> None:
        rc: int | None = CANNOT_RUN
        try:
            own = self._make()
            self._in.append(memoryview(own.script.stdin))
            self._program = program = LocalProgram(own.script.command)
            try:
                rc = self._pump(program, own)
            finally:
                program.end()
        except OSError as error:
            self._complain(f"this host cannot start a shell: {error.strerror}")
        except NOT_MADE as why:
            self._complain(str(why))
        finally:
            self._link.tell(ProgramEnded(self.number, rc))

    def _complain(self, text: str) -> None:
        self._link.send(STDERR, self.number, f"{text[:400]}\n".encode())

    def _admit(self, own: OwnProgram) -> None:
        """Pass on the input from rank 0, line by line."""
        while self._come:
            *lines, self._begun = (self._begun + self._come.popleft()).split(b"\n")
            self._in += (memoryview(own.admit(line) + b"\n") for line in lines)
            if len(self._begun) > LONGEST_LINE:
                raise RequestRefusal("rank 0 sent a line without end")

    def _pump(self, program: LocalProgram, own: OwnProgram) -> int | None:
        while not self._end:
            self._admit(own)
            feed(program, self._in)
            if self._hang_up and not self._in and not self._come:
                program.hang_up()
            out, err = (b"", b"") if self._link.full else program.take()
            for kind, data in ((STDOUT, out), (STDERR, err)):
                for at in range(0, len(data), PIECE):
                    self._link.send(kind, self.number, data[at : at + PIECE])
            if not out and not err:
                if not self._link.full and program.finished():
                    return program.status(STATUS_SECONDS)
                program.wait(FOREVER)
        return None

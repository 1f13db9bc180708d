"""Programs that a rank runs on its host for rank 0, and what it looks up there."""

from __future__ import annotations

import threading
from collections import deque

from doctor.run.in_job.messages import ProgramEnded, ProgramFailed
from doctor.run.in_job.wire import PIECE, STDERR, STDOUT, RankLink
from doctor.transport.local import LocalProgram
from doctor.transport.program import feed

FOREVER = 3600.0
STATUS_SECONDS = 1.0
MOST_PROGRAMS = 16


class ServedProgram:
    """One program; its thread alone talks to it."""

    def __init__(self, number: int, command: str, link: RankLink) -> None:
        self.number = number
        self._command = command
        self._link = link
        self._in: deque[memoryview] = deque()
        self._program: LocalProgram | None = None
        self._hang_up = False
        self._end = False
        self.thread = threading.Thread(target=self._live, name=f"served {number}", daemon=True)
        self.thread.start()

    def give(self, data: bytes) -> None:
        if data:
            self._in.append(memoryview(data))
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
        try:
            self._program = program = LocalProgram(self._command)
        except OSError as error:
            self._link.tell(
                ProgramFailed(self.number, f"this host cannot start a shell: {error.strerror}"[:400])
            )
            return
        rc = None
        try:
            rc = self._pump(program)
        finally:
            program.end()
            self._link.tell(ProgramEnded(self.number, rc))

    def _pump(self, program: LocalProgram) -> int | None:
        while not self._end:
            feed(program, self._in)
            if self._hang_up and not self._in:
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

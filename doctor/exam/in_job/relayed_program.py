"""A program that a rank of another host runs for rank 0, as rank 0 sees it."""

from __future__ import annotations

import itertools
import threading
from collections.abc import MutableMapping

from doctor.exam.in_job.messages import EndProgram, HangUp, StartProgram
from doctor.exam.in_job.wire import PIECE, STDIN, STDOUT, RankLink
from doctor.transport.errors import cannot
from doctor.transport.program import OUTPUT_CAP
from doctor.transport.question import Question

MOST_UNREAD = 2 * OUTPUT_CAP
"""Bytes. A host whose program has more unread output is flooding, and is dropped."""
_NUMBERS = itertools.count(1)


class RelayedProgram:
    """See `Program`. Among the `living` until its end; data arrives in the thread of the hub's loop."""

    def __init__(
        self, link: RankLink, question: Question, living: MutableMapping[int, RelayedProgram]
    ) -> None:
        self.number = next(_NUMBERS)
        self._living = living
        self.link = link
        self._changed = threading.Condition()
        self._rung = False
        self._out, self._err = bytearray(), bytearray()
        self._rc: int | None = None
        self._over = self._cut = self._hung_up = self._let_go = self._flooded = False
        living[self.number] = self
        link.tell(StartProgram(self.number, question))

    # Called by the loop.

    def came(self, kind: int, data: bytes) -> None:
        with self._changed:
            if self._cut or self._let_go or self._over:
                return
            if len(self._out) + len(self._err) + len(data) <= MOST_UNREAD:
                (self._out if kind == STDOUT else self._err).extend(data)
            else:
                self._flooded = self._cut = True
                self._forget()
            self._changed.notify_all()
        if self._flooded:
            self.end()

    def over(self, rc: int | None) -> None:
        with self._changed:
            self._over, self._rc = True, rc
            self._changed.notify_all()

    def cut(self) -> None:
        """Called when the connection to the program broke."""
        with self._changed:
            self._cut = True
            self._changed.notify_all()

    def _forget(self) -> None:
        self._out.clear()
        self._err.clear()

    # Called by the thread that talks to it.

    def wait(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(
                lambda: self._rung or self._out or self._err or self._over or self._cut, max(0.0, seconds)
            )
            self._rung = False

    def ring(self) -> None:
        with self._changed:
            self._rung = True
            self._changed.notify_all()

    def take(self) -> tuple[bytes, bytes]:
        """The unread output. Raises CannotReach if the program floods."""
        with self._changed:
            if self._flooded:
                raise cannot("flood of a rank", most=MOST_UNREAD // 1024**2)
            out, err = bytes(self._out), bytes(self._err)
            self._forget()
            return out, err

    def give(self, data: memoryview) -> int:
        if self._over or self._cut or self._hung_up:
            raise BrokenPipeError
        if self.link.full:
            return 0
        self.link.send(STDIN, self.number, bytes(data[:PIECE]))
        return min(len(data), PIECE)

    def finished(self) -> bool:
        with self._changed:
            return (self._over or self._cut) and not (self._out or self._err or self._flooded)

    def broken(self) -> bool:
        return self._cut

    def status(self, seconds: float) -> int | None:
        with self._changed:
            self._changed.wait_for(lambda: self._over or self._cut, max(0.0, seconds))
            return self._rc

    def hang_up(self) -> None:
        if not self._hung_up:
            self._hung_up = True
            self.link.tell(HangUp(self.number))

    def end(self) -> None:
        with self._changed:
            told, self._let_go = self._let_go, True
            self._forget()
        self._living.pop(self.number, None)
        if not told:
            self.link.tell(EndProgram(self.number))

    def stop(self) -> None:
        """Called from another thread: make the program's own thread see its end."""
        self.end()
        self.cut()

"""One host's program in a step that all hosts share."""

import shlex
import threading
from collections.abc import Callable

from doctor.transport.errors import cannot
from doctor.transport.slurm.errors import broke
from doctor.transport.slurm.output import SrunMessages
from doctor.transport.slurm.task import TaskLine

MOST_UNTAKEN = 32 * 1024 * 1024
MOST_UNSENT = 1024 * 1024


class SrunProgram:
    """See `Program`. The step's threads fill it; `news` wakes them if there is something to send."""

    def __init__(self, name: str, news: Callable[[], None], ended: Callable[[], None]) -> None:
        self.name = name
        self._news = news
        self._ended = ended
        self._lock = threading.Lock()
        self._bell = threading.Event()
        self._known = threading.Event()
        self._out, self._err = bytearray(), bytearray()
        self._unsent = bytearray()
        self._open = {"out", "err"}
        self._rc: int | None = None
        self._words: SrunMessages | None = None
        self._heard = self._flooded = self._doubted = False
        self.hung_up = self._over = False

    # Called by the step.

    def said(self, stream: str, said: TaskLine) -> None:
        with self._lock:
            if said.kind == "ended":
                self._open.discard(stream)
                self._rc = said.rc
                self._known.set()
            elif stream in self._open and not self._over:
                kept = self._out if stream == "out" else self._err
                self._heard = True
                if len(kept) < MOST_UNTAKEN:
                    kept += said.data
                else:
                    self._flooded = True
        self._bell.set()

    def doubt(self) -> None:
        """Called if another task claims this name: whatever arrives under it no longer counts."""
        with self._lock:
            self._doubted = True
            self._open.clear()
            self._out.clear()
            self._err.clear()
        self._bell.set()
        self._known.set()

    def lost(self, words: SrunMessages) -> None:
        """The step is over; `words` is what srun said about it."""
        with self._lock:
            if self._open:
                self._words = words
                self._open.clear()
        self._bell.set()
        self._known.set()

    def unsent(self) -> list[bytes]:
        """The complete lines to be sent."""
        with self._lock:
            *lines, rest = bytes(self._unsent).split(b"\n")
            self._unsent = bytearray(rest)
        if lines:
            self._bell.set()
        return lines

    # Called by the thread that talks to it.

    def wait(self, seconds: float) -> None:
        self._bell.wait(seconds)
        self._bell.clear()

    def ring(self) -> None:
        self._bell.set()

    def take(self) -> tuple[bytes, bytes]:
        with self._lock:
            out, err = bytes(self._out), bytes(self._err)
            self._out.clear()
            self._err.clear()
        return out, err

    def give(self, data: memoryview) -> int:
        if self.hung_up:
            raise BrokenPipeError
        with self._lock:
            room = MOST_UNSENT - len(self._unsent)
            self._unsent += data[: max(0, room)]
        self._news()
        return max(0, min(room, len(data)))

    def finished(self) -> bool:
        """Raises CannotReach if the reason for the end is known."""
        with self._lock:
            over = not self._open and not self._out and not self._err
            words, flooded, doubted = self._words, self._flooded, self._doubted
        if doubted:
            raise cannot("contested", node=shlex.quote(self.name), who=self.name)
        if over and flooded:
            raise cannot("flood of a task")
        if over and words is not None and (not self._heard or words.fate or self.name in words.ended):
            raise broke(self.name, words)
        return over

    def broken(self) -> bool:
        return self._words is not None

    def status(self, seconds: float) -> int | None:
        self._known.wait(seconds)
        return self._rc

    def hang_up(self) -> None:
        if not self.hung_up:
            self.hung_up = True
            self._news()

    def end(self) -> None:
        self.hang_up()
        with self._lock:
            was, self._over = self._over, True
            self._out.clear()
            self._err.clear()
        if not was:
            self._ended()

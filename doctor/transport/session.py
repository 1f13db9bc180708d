"""Lines to and from one program on each of several hosts, which are read in turn."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping

from doctor.text.trace import trace
from doctor.transport import Line, Script, SessionEnd, errors
from doctor.transport.errors import CannotReach
from doctor.transport.program import Program, feed

LONGEST_LINE = 1024 * 1024
# Bytes that a host may send before anybody reads them; after that, it must wait.
MOST_UNHEARD = 2 * 1024 * 1024
# The cost of a line beyond its text: a host can also flood with empty lines.
LINE_COST = 128
STDERR_KEPT = 64 * 1024
MOST_STDERR = 8 * 1024 * 1024
TOO_LONG = f"The host printed a line longer than {LONGEST_LINE // 1024} KiB."
TOO_MUCH = f"The host printed more than {MOST_STDERR // 1024**2} MiB on stderr."
CLOSE_SECONDS = 0.3
FOREVER = 3600.0

Start = Callable[[str, Script], Program]


class Sessions:
    """See `Session`. Each host has a thread of its own; only this thread touches the host's program."""

    def __init__(
        self, scripts: Mapping[str, Script], start: Start, ended: Callable[[str], object] = lambda _: None
    ) -> None:
        self._turns = _Turns()
        self._voices = {
            host: _Voice(host, script, start, ended, self._turns) for host, script in scripts.items()
        }
        for voice in self._voices.values():
            voice.begin()

    def send(self, host: str, line: bytes) -> None:
        voice = self._voices.get(host)
        if voice is not None:
            voice.send(line + b"\n")

    def receive(self, timeout: float) -> Line | SessionEnd | None:
        return self._turns.next(timeout)

    def end(self, host: str) -> None:
        voice = self._voices.get(host)
        if voice is not None:
            voice.close()
            self._turns.drop(voice)

    def close(self) -> None:
        for voice in self._voices.values():
            voice.close()
        until = time.monotonic() + CLOSE_SECONDS
        for voice in self._voices.values():
            voice.join(max(0.0, until - time.monotonic()))


class _Turns:
    """Decides which host is read next: one line from each that has any, so none can block the others."""

    def __init__(self) -> None:
        self._some = threading.Condition()
        self._waiting: deque[_Voice] = deque()

    def add(self, voice: _Voice, news: Line | SessionEnd) -> None:
        with self._some:
            if voice.dropped:
                return
            if not voice.news:
                self._waiting.append(voice)
                self._some.notify()
            voice.news.append(news)
            voice.unheard += _cost(news)

    def next(self, timeout: float) -> Line | SessionEnd | None:
        with self._some:
            if not self._some.wait_for(lambda: self._waiting, max(timeout, 0.0)):
                return None
            voice = self._waiting.popleft()
            news = voice.news.popleft()
            if voice.news:
                self._waiting.append(voice)
            before, voice.unheard = voice.unheard, voice.unheard - _cost(news)
        if before > MOST_UNHEARD // 2 >= voice.unheard:
            voice.ring()
        return news

    def drop(self, voice: _Voice) -> None:
        """Pass on nothing more from this host, not even its end."""
        with self._some:
            voice.dropped = True
            if voice.news:
                self._waiting.remove(voice)
                voice.news.clear()


def _cost(news: Line | SessionEnd) -> int:
    return len(news.text) + LINE_COST if isinstance(news, Line) else 0


class _Voice:
    """One host's part of a session. `news`, `unheard` and `dropped` belong to the turns."""

    def __init__(
        self, host: str, script: Script, start: Start, ended: Callable[[str], object], turns: _Turns
    ) -> None:
        self.news: deque[Line | SessionEnd] = deque()
        self.unheard = 0
        self.dropped = False
        self._host = host
        self._script = script
        self._start, self._ended = start, ended
        self._turns = turns
        self._unsent = deque([memoryview(script.stdin)] if script.stdin else [])
        self._begun = bytearray()
        self._complaints = 0
        self._closing = False
        self._rung = threading.Event()
        self._program: Program | None = None
        self.thread = threading.Thread(target=self._live, name=f"session {host}", daemon=True)

    def begin(self) -> None:
        try:
            self.thread.start()
        except RuntimeError as error:
            self._end(errors.explained(error))

    def join(self, seconds: float) -> None:
        if self.thread.ident is not None:
            self.thread.join(seconds)

    def send(self, data: bytes) -> None:
        self._unsent.append(memoryview(data))
        self.ring()

    def close(self) -> None:
        self._closing = True
        self.ring()

    def ring(self) -> None:
        self._rung.set()
        program = self._program
        if program is not None:
            program.ring()

    def _live(self) -> None:
        stderr = bytearray()
        rc: int | None = None
        why: CannotReach | None = None
        try:
            self._program = program = self._start(self._host, self._script)
            trace(self._host, "its session is open")
            try:
                self._pump(program, stderr)
                if not self._closing:
                    rc = program.status(1.0)
            finally:
                program.end()
                self._ended(self._host)
        except Exception as error:
            # The caller waits for this host's end.
            why = errors.explained(error)
        trace(self._host, why.summary if why else "its session has ended")
        self._end(why, rc, bytes(stderr))

    def _end(self, why: CannotReach | None, rc: int | None = None, stderr: bytes = b"") -> None:
        self._turns.add(self, SessionEnd(self._host, rc, stderr, why.of(self._host) if why else None))

    def _pump(self, program: Program, stderr: bytearray) -> None:
        """Runs until the program ends or the session is closed. Raises CannotReach."""
        while not self._closing:
            feed(program, self._unsent)
            full = self._full
            out, err = (b"", b"") if full else program.take()
            stderr += err[: max(0, STDERR_KEPT - len(stderr))]
            self._complaints += len(err)
            self._begun += out
            if b"\n" in (out or self._begun):
                self._say_lines()
            if len(self._begun) > LONGEST_LINE and not self._full:
                raise errors.cannot("flood", words=TOO_LONG)
            if self._complaints > MOST_STDERR:
                raise errors.cannot("flood", words=TOO_MUCH)
            if not (out or err or full or self._full) and program.finished():
                if self._begun:
                    self._say(bytes(self._begun))
                if program.broken():
                    raise errors.cannot("lost at work")
                return
            if self._full:
                self._rung.wait()
                self._rung.clear()
            elif not out and not err:
                program.wait(FOREVER)

    @property
    def _full(self) -> bool:
        return self.unheard >= MOST_UNHEARD

    def _say_lines(self) -> None:
        """Pass on the complete lines that arrived, as far as there is room for them."""
        start = 0
        while not self._full and (end := self._begun.find(b"\n", start)) >= 0:
            if end - start > LONGEST_LINE:
                raise errors.cannot("flood", words=TOO_LONG)
            self._say(bytes(self._begun[start:end]))
            start = end + 1
        del self._begun[:start]

    def _say(self, text: bytes) -> None:
        self._turns.add(self, Line(self._host, text))

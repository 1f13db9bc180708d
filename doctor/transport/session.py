"""Lines both ways with one program on each of several hosts."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from queue import Empty, SimpleQueue

from doctor.model import Unreached, UnreachedKind
from doctor.transport import Ended, Line, Script, errors
from doctor.transport.errors import CannotReach
from doctor.transport.program import Program, feed

LONGEST_LINE = 1024 * 1024
# What a host may have said without anybody listening, before it is left waiting.
MOST_UNHEARD = 8 * 1024 * 1024
STDERR_KEPT = 64 * 1024
CLOSE_SECONDS = 0.3
FOREVER = 3600.0

Start = Callable[[str, Script], Program]


class Sessions:
    """See `Session`. Each host has a thread of its own, which alone touches that host's program."""

    def __init__(self, scripts: Mapping[str, Script], start: Start, cap: int = MOST_UNHEARD) -> None:
        self._news: SimpleQueue[Line | Ended] = SimpleQueue()
        self._voices = {
            host: _Voice(host, script, start, self._news, cap) for host, script in scripts.items()
        }
        for voice in self._voices.values():
            voice.thread.start()

    def send(self, host: str, line: bytes) -> None:
        voice = self._voices.get(host)
        if voice is not None:
            voice.send(line + b"\n")

    def receive(self, timeout: float) -> Line | Ended | None:
        try:
            news = self._news.get(timeout=max(timeout, 0.0))
        except Empty:
            return None
        if isinstance(news, Line):
            self._voices[news.host].heard(len(news.text))
        return news

    def close(self) -> None:
        for voice in self._voices.values():
            voice.close()
        until = time.monotonic() + CLOSE_SECONDS
        for voice in self._voices.values():
            voice.thread.join(max(0.0, until - time.monotonic()))


class _Voice:
    """One host's part of a session."""

    def __init__(
        self, host: str, script: Script, start: Start, news: SimpleQueue[Line | Ended], cap: int
    ) -> None:
        self._host = host
        self._script = script
        self._start = start
        self._news = news
        self._cap = cap
        self._unsent = deque([memoryview(script.stdin)] if script.stdin else [])
        self._unheard = 0
        self._lock = threading.Lock()
        self._closing = False
        self._program: Program | None = None
        self.thread = threading.Thread(target=self._live, name=f"session {host}", daemon=True)

    def send(self, data: bytes) -> None:
        self._unsent.append(memoryview(data))
        self._ring()

    def heard(self, size: int) -> None:
        with self._lock:
            was, self._unheard = self._unheard, self._unheard - size
        if was >= self._cap > self._unheard:
            self._ring()

    def close(self) -> None:
        self._closing = True
        self._ring()

    def _ring(self) -> None:
        program = self._program
        if program is not None:
            program.ring()

    def _live(self) -> None:
        stderr = bytearray()
        rc: int | None = None
        unreached: Unreached | None = None
        try:
            self._program = program = self._start(self._host, self._script)
            try:
                self._pump(program, stderr)
                if not self._closing:
                    rc = program.status(1.0)
            finally:
                program.end()
        except CannotReach as why:
            unreached = why.of(self._host)
        except Exception as error:
            # The caller waits for this host's end.
            unreached = errors.broken_tool(error).of(self._host)
        self._news.put(Ended(self._host, rc, bytes(stderr), unreached))

    def _pump(self, program: Program, stderr: bytearray) -> None:
        """Until the program ends or the session is closed. Raises CannotReach."""
        begun = bytearray()
        while not self._closing:
            feed(program, self._unsent)
            with self._lock:
                full = self._unheard >= self._cap
            out, err = (b"", b"") if full else program.take()
            stderr += err[: max(0, STDERR_KEPT - len(stderr))]
            if out:
                begun += out
                *lines, rest = begun.split(b"\n") if b"\n" in out else [begun]
                for line in lines:
                    self._say(bytes(line))
                begun = bytearray(rest)
                if len(begun) > LONGEST_LINE or any(len(line) > LONGEST_LINE for line in lines):
                    raise CannotReach(
                        UnreachedKind.FLOOD,
                        f"The host printed a line longer than {LONGEST_LINE // 1024} KiB.",
                        "Look at what its login files (~/.bashrc, /etc/profile.d) print.",
                    )
            elif not err and not full and program.finished():
                if begun:
                    self._say(bytes(begun))
                if program.broken():
                    raise CannotReach(
                        UnreachedKind.LOST,
                        "The connection broke while the host was working.",
                        "Check the network between this machine and the host, "
                        "and that the host did not restart.",
                    )
                return
            if not out and not err:
                program.wait(FOREVER)

    def _say(self, text: bytes) -> None:
        with self._lock:
            self._unheard += len(text)
        self._news.put(Line(self._host, text))

"""Reads each large file in a process of its own, as many at a time as there are cores.

A process is a fork of this one, so it starts with everything that is known; it returns its result at the end.
It shares the limits of this one: its CPU time and its input count here too. If one ends early, this is
reported. If this process ends, the others stop at the next piece of their files. Nothing here waits for a
process without a limit: one may be stopped, or read from a dead file system, where a kill has no effect.
"""

from __future__ import annotations

import io
import mmap
import os
import pickle
import select
import signal
import struct
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from doctor.logs.model import Symptom
from doctor.logs.reading.file_scan import Scan
from doctor.logs.sources import InputFile
from doctor.logs.sources.patience import LATE

LARGE = 8 << 20
"""Bytes; a smaller file is not worth a process."""
MOST = 8
MOST_BYTES = 256 << 20
"""The most bytes, in all, of the results that arrive at the same time."""
MOMENT = 0.2
"""Seconds between looks at the deadline."""
GRACE = 2.0
"""Seconds after the deadline in which a process still delivers what it has read."""
EASE = 1.0
"""Seconds that a process has to end."""
_COUNT = struct.Struct("q")
STOPS = (signal.SIGINT, signal.SIGTERM)


def cores() -> int:
    """How many cores this process may use."""
    try:
        return min(MOST, len(os.sched_getaffinity(0)))
    except AttributeError:
        return min(MOST, os.cpu_count() or 1)


@dataclass(slots=True)
class _ReaderProcess:
    pid: int
    pipe: int
    opened: InputFile
    done: Callable[[Sequence[Scan]], None]
    taken: mmap.mmap
    """The bytes that the process has read, counted by it."""
    counted: int = 0
    """The part of them that was passed on."""
    said: bytearray = field(default_factory=bytearray)
    why: str = ""
    """Why it was ended."""

    def pass_on(self) -> None:
        """Count here what the process has read since the last time."""
        (total,) = _COUNT.unpack_from(self.taken)
        told = self.opened.stream.patience.taken
        if told and total > self.counted:
            told(total - self.counted)
        self.counted = total


class Readers:
    """A context manager that leaves no process behind, whatever happens."""

    def __init__(self, symptoms: Sequence[Symptom], most: int, lost: Callable[[str, str], None]) -> None:
        """`lost` is called with the name of a file that could not be read, and why."""
        self._symptoms = {symptom.id: symptom for symptom in symptoms}
        self._most = most
        self._lost = lost
        self._running: dict[int, _ReaderProcess] = {}

    def takes(self, opened: InputFile) -> bool:
        return self._most > 1 and opened.whole and opened.size >= LARGE

    def start(
        self, opened: InputFile, read: Callable[[], Sequence[Scan]], done: Callable[[Sequence[Scan]], None]
    ) -> None:
        while len(self._running) >= self._most:
            self._listen()
        pipe, end = os.pipe()
        taken = mmap.mmap(-1, _COUNT.size)
        used, parent = time.process_time(), os.getpid()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)  # until the child has its own way to end
        try:
            pid = os.fork()
            if pid == 0:
                os.close(pipe)
                _in_child(end, opened, partial(self._forked, opened, used, parent, taken), read, before)
            self._running[pipe] = _ReaderProcess(pid, pipe, opened, done, taken)
        except OSError:  # the system has no more processes or memory
            os.close(pipe)
            pid = -1
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(end)
        if pid < 0:
            done(read())

    def _forked(self, opened: InputFile, used: float, parent: int, taken: mmap.mmap) -> None:
        patience = opened.stream.patience
        patience.forked(used, parent, self._most)
        patience.taken = partial(_count, taken)

    def finish(self) -> None:
        while self._running:
            self._listen()

    def __enter__(self) -> Readers:
        return self

    def __exit__(self, *_: object) -> None:
        for reader in self._running.values():
            os.kill(reader.pid, signal.SIGKILL)
        until = time.monotonic() + EASE
        for reader in self._running.values():
            _reaped(reader.pid, until)
            os.close(reader.pipe)
        self._running.clear()

    def _listen(self) -> None:
        poll = select.poll()  # select() refuses descriptors from 1024 on
        for pipe in self._running:
            poll.register(pipe, select.POLLIN)
        ready = [pipe for pipe, _ in poll.poll(MOMENT * 1000)]
        for reader in self._running.values():
            reader.pass_on()
        for pipe in ready:
            reader = self._running[pipe]
            said = os.read(pipe, 1 << 20)
            reader.said += said
            if not said:
                self._end(reader)
        if sum(len(reader.said) for reader in self._running.values()) > MOST_BYTES:
            largest = max(self._running.values(), key=lambda reader: len(reader.said))
            self._give_up(largest, "the process that read it found more than fits into memory")
        for reader in [*self._running.values()]:
            if reader.opened.stream.patience.late(GRACE):
                self._give_up(reader, LATE)

    def _give_up(self, reader: _ReaderProcess, why: str) -> None:
        reader.why = why
        os.kill(reader.pid, signal.SIGKILL)
        self._end(reader)

    def _end(self, reader: _ReaderProcess) -> None:
        del self._running[reader.pipe]
        os.close(reader.pipe)
        reader.pass_on()
        code, worked = _reaped(reader.pid, time.monotonic() + EASE)
        patience = reader.opened.stream.patience
        if code != 0 or reader.why:
            how = (
                "it does not end" if code is None else f"signal {-code}" if code < 0 else f"exit code {code}"
            )
            why = reader.why or f"the process that read it ended before it was done ({how})"
            patience.shared(worked, 0.0)
            self._lost(reader.opened.name, why)
            return
        scans, gained = _Unpickler(io.BytesIO(reader.said), self._symptoms).load()
        patience.shared(worked, gained)
        reader.done(scans)


def _count(taken: mmap.mmap, size: int) -> None:
    _COUNT.pack_into(taken, 0, _COUNT.unpack_from(taken)[0] + size)


def _reaped(pid: int, until: float) -> tuple[int | None, float]:
    """The exit code of a process that ends, or None if it does not; and the CPU time that it used."""
    while True:
        found, status, usage = os.wait4(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime
        if time.monotonic() > until:
            return None, 0.0
        time.sleep(0.002)


def _in_child(
    pipe: int,
    opened: InputFile,
    forked: Callable[[], None],
    read: Callable[[], Sequence[Scan]],
    mask: Iterable[signal.Signals | int],
) -> None:
    """Read, send the result and exit. Prints nothing: the open files belong to the parent."""
    code = 1
    try:
        for number in STOPS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        forked()
        patience = opened.stream.patience
        before = patience.granted
        scans = read()
        out = io.BytesIO()
        _Pickler(out).dump((scans, patience.granted - before))
        left = out.getbuffer()
        while left:
            left = left[os.write(pipe, left) :]
        code = 0
    finally:
        os._exit(code)


class _Pickler(pickle.Pickler):
    """Both sides know the symptoms, so only their ids are sent."""

    def persistent_id(self, value: Any) -> str | None:
        return value.id if isinstance(value, Symptom) else None


class _Unpickler(pickle.Unpickler):
    """Reads only what a fork of this process wrote."""

    def __init__(self, file: io.BytesIO, symptoms: dict[str, Symptom]) -> None:
        super().__init__(file)
        self._symptoms = symptoms

    def persistent_load(self, id: Any) -> Symptom:
        return self._symptoms[id]

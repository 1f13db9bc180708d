"""Reads each large file in a process of its own, as many at a time as there are cores.

A process is a fork of this one, so it starts with everything that is known; it returns its result at the end.
It shares the limits of this one: its CPU time and its input count here too. If one ends early, this is
reported. If this process ends, the others stop at the next piece of their files.
"""

from __future__ import annotations

import io
import os
import pickle
import select
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from doctor.logs.model import Symptom
from doctor.logs.reading.file_scan import Scan
from doctor.logs.sources import InputFile

LARGE = 8 << 20
"""Bytes; a smaller file is not worth a process."""
MOST = 8
MOST_BYTES = 256 << 20
"""Bytes of the result of one process."""


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
    said: bytearray = field(default_factory=bytearray)


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
        used, parent = time.process_time(), os.getpid()
        try:
            pid = os.fork()
        except OSError:  # no more processes or memory are to be had
            os.close(pipe)
            os.close(end)
            done(read())
            return
        if pid == 0:
            os.close(pipe)
            _in_child(end, opened, read, used, parent)
        os.close(end)
        self._running[pipe] = _ReaderProcess(pid, pipe, opened, done)

    def finish(self) -> None:
        while self._running:
            self._listen()

    def __enter__(self) -> Readers:
        return self

    def __exit__(self, *_: object) -> None:
        for reader in self._running.values():
            os.kill(reader.pid, signal.SIGKILL)
            os.waitpid(reader.pid, 0)
            os.close(reader.pipe)
        self._running.clear()

    def _listen(self) -> None:
        for pipe in select.select(list(self._running), [], [])[0]:
            reader = self._running[pipe]
            said = os.read(pipe, 1 << 20)
            reader.said += said
            if len(reader.said) > MOST_BYTES:
                os.kill(reader.pid, signal.SIGKILL)
                said = b""
            if not said:
                self._end(reader)

    def _end(self, reader: _ReaderProcess) -> None:
        del self._running[reader.pipe]
        os.close(reader.pipe)
        _, status, usage = os.wait4(reader.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        if code:
            why = f"signal {-code}" if code < 0 else f"exit code {code}"
            self._lost(reader.opened.name, f"the process that read it ended before it was done ({why})")
            return
        scans, gained = _Unpickler(io.BytesIO(reader.said), self._symptoms).load()
        reader.opened.stream.patience.shared(usage.ru_utime + usage.ru_stime, gained)
        reader.done(scans)


def _in_child(
    pipe: int, opened: InputFile, read: Callable[[], Sequence[Scan]], used: float, parent: int
) -> None:
    """Read, send the result and exit. Prints nothing: the open files belong to the parent."""
    code = 1
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        patience = opened.stream.patience
        patience.forked(used, parent)
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

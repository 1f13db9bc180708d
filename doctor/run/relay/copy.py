"""Copies one stream of the command to where doctor was told to write it, as fast as it comes."""

import contextlib
import errno
import fcntl
import os
import select
import sys
import termios
import threading

from doctor.run.relay.kept import Kept


class Copy(threading.Thread):
    """Reads until the end of the stream. If nobody takes it, the command notices that."""

    def __init__(self, source: int, sink: int, kept: Kept) -> None:
        super().__init__(daemon=True)
        self._source, self._sink, self._kept = source, sink, kept
        self._bell, self._ring = os.pipe()
        self._reads = threading.Lock()
        self.drained = threading.Event()
        """Whether everything that was printed before `drain` was called has been passed on."""
        self.ended = threading.Event()

    def drain(self) -> None:
        """Ask it to report when nothing is left."""
        os.write(self._ring, b"x")

    def printed(self) -> int:
        """The bytes that were printed so far, with those that have not been read yet."""
        waiting = bytearray(4)
        with self._reads:
            with contextlib.suppress(OSError, ValueError):  # it is at its end
                fcntl.ioctl(self._source, termios.FIONREAD, waiting)
            return self._kept.total + int.from_bytes(waiting, sys.byteorder)

    def run(self) -> None:
        try:
            self._copy()
        finally:
            with self._reads:
                os.close(self._source)
                self._source = -1
            null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
            os.dup2(null, self._sink, inheritable=False)  # whoever reads there sees its end
            os.close(null)
            self.ended.set()
            self.drained.set()

    def _copy(self) -> None:
        poll = select.poll()
        poll.register(self._source, select.POLLIN)
        poll.register(self._bell, select.POLLIN)
        while True:
            if self._source in dict(poll.poll()):
                with self._reads:
                    room = self._kept.room()
                    size = _read(self._source, room)
                    self._kept.add(size)
                if not size:
                    return
                if not write_all(self._sink, room[:size]):
                    return
            else:
                poll.unregister(self._bell)
                self.drained.set()


def _read(source: int, room: memoryview) -> int:
    try:
        return os.readv(source, [room])
    except OSError as error:
        if error.errno == errno.EIO:  # a terminal that nobody has open any more
            return 0
        raise


def write_all(sink: int, data: memoryview) -> bool:
    """Whether it could be written."""
    try:
        while data:
            data = data[_write(sink, data) :]
    except OSError:
        return False
    return True


def _write(sink: int, data: memoryview) -> int:
    try:
        return os.write(sink, data)
    except BlockingIOError:  # somebody else made it so
        select.select([], [sink], [], 1.0)
        return 0

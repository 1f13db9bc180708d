"""Frames between two ranks of one job, each with its seal, and the thread that moves them."""

import contextlib
import os
import selectors
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable

import msgspec

from doctor.exam.in_job.handshake import SEAL_SIZE, Seal, Seals
from doctor.exam.in_job.messages import UNREADABLE

HEAD = struct.Struct(">IBI")
LONGEST_FRAME = 1024 * 1024
PIECE = 64 * 1024
FULL = 2 * 1024 * 1024
"""Bytes waiting to be sent; beyond this, no more are taken from a program."""
TICK = 0.5
CONTROL, STDIN, STDOUT, STDERR = range(4)


class FrameReader:
    """Incoming bytes -> frames."""

    def __init__(self, seal: Seal) -> None:
        self._seal = seal
        self._begun = bytearray()

    def add(self, data: bytes) -> None:
        self._begun += data

    def next(self) -> tuple[int, int, bytes] | None:
        """The next complete frame: kind, number, payload. Raises OSError if its seal does not fit."""
        if len(self._begun) < HEAD.size:
            return None
        size, kind, number = HEAD.unpack_from(self._begun)
        if size > LONGEST_FRAME or kind > STDERR:
            raise ConnectionAbortedError
        end = HEAD.size + size
        if len(self._begun) < end + SEAL_SIZE:
            return None
        frame, seal = bytes(self._begun[:end]), bytes(self._begun[end : end + SEAL_SIZE])
        if not self._seal.fits(frame, seal):
            raise ConnectionAbortedError
        del self._begun[: end + SEAL_SIZE]
        return kind, number, frame[HEAD.size :]


class RankLink:
    """A connection to another rank. `send` may be called from any thread."""

    def __init__(
        self, connection: socket.socket, seal: Seal, reader: FrameReader, wake: Callable[[], None]
    ) -> None:
        connection.setblocking(False)
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = connection
        self.heard_at = time.monotonic()
        self.closed = False
        self._seal = seal
        self.reader = reader
        self._wake = wake
        self._lock = threading.Lock()
        self._out: deque[memoryview] = deque()
        self.waiting = 0
        """The number of bytes to be sent."""

    def send(self, kind: int, number: int, payload: bytes) -> None:
        with self._lock:
            if self.closed:
                return
            frame = HEAD.pack(len(payload), kind, number) + payload
            frame += self._seal.of(frame)
            self._out.append(memoryview(frame))
            self.waiting += len(frame)
        self._wake()

    def tell(self, message: msgspec.Struct) -> None:
        self.send(CONTROL, 0, msgspec.json.encode(message))

    @property
    def full(self) -> bool:
        return self.waiting >= FULL

    def flush(self) -> None:
        """Send as much as possible. Raises OSError if the other side has gone."""
        with self._lock:
            while self._out:
                try:
                    sent = self.socket.send(self._out[0])
                except BlockingIOError:
                    return
                self.waiting -= sent
                if sent == len(self._out[0]):
                    self._out.popleft()
                else:
                    self._out[0] = self._out[0][sent:]

    def read(self) -> None:
        """Read what has arrived. Raises OSError at its end."""
        try:
            data = self.socket.recv(4 * PIECE)
        except BlockingIOError:
            return
        if not data:
            raise ConnectionResetError
        self.reader.add(data)

    def hang_up(self) -> None:
        """Shut the connection down; the loop sees its end and closes it."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with self._lock:
            self.closed = True
            self._out.clear()
            self.waiting = 0
        self.socket.close()


class Loop:
    """One thread for all connections of this process. Frames go to `heard`, an ended link to `lost`."""

    def __init__(
        self,
        heard: Callable[[RankLink, int, int, bytes], None],
        lost: Callable[[RankLink], None],
        drained: Callable[[RankLink], None],
        tick: Callable[[float, float], None],
    ) -> None:
        self._heard, self._lost, self._drained, self._tick = heard, lost, drained, tick
        self._links: dict[RankLink, bool] = {}
        self._new: deque[RankLink] = deque()
        self._ear, self._bell = os.pipe()
        os.set_blocking(self._bell, False)
        os.set_blocking(self._ear, False)
        self._stop = False
        self._thread = threading.Thread(target=self._run, name="in-job", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def link(self, connection: socket.socket, seals: Seals, reader: FrameReader | None = None) -> RankLink:
        """A link to be served once it is adopted; `reader` holds data that has already arrived."""
        return RankLink(connection, seals.out, reader or FrameReader(seals.into), self.wake)

    def adopt(self, link: RankLink) -> None:
        self._new.append(link)
        self.wake()

    def wake(self) -> None:
        with contextlib.suppress(BlockingIOError, OSError):
            os.write(self._bell, b"!")

    def stop(self) -> None:
        self._stop = True
        self.wake()
        self._thread.join(1.0)

    def _run(self) -> None:
        selector = selectors.DefaultSelector()
        selector.register(self._ear, selectors.EVENT_READ)
        ticked = time.monotonic()
        while not self._stop:
            while self._new:
                link = self._new.popleft()
                self._links[link] = True
                selector.register(link.socket, selectors.EVENT_READ, link)
                self._serve(selector, link, 0)
            for link in list(self._links):
                events = selectors.EVENT_READ | (selectors.EVENT_WRITE if link.waiting else 0)
                if selector.get_key(link.socket).events != events:
                    selector.modify(link.socket, events, link)
            for key, events in selector.select(TICK):
                if key.data is None:
                    with contextlib.suppress(BlockingIOError):
                        os.read(self._ear, 4096)
                else:
                    self._serve(selector, key.data, events)
            now = time.monotonic()
            if now - ticked >= TICK:
                self._tick(now, now - ticked)
                ticked = now
        for link in self._links:
            link.close()
        selector.close()

    def _serve(self, selector: selectors.BaseSelector, link: RankLink, events: int) -> None:
        try:
            if events & selectors.EVENT_WRITE:
                was = link.full
                link.flush()
                if was and not link.full:
                    self._drained(link)
            if events & selectors.EVENT_READ:
                link.read()
            while (frame := link.reader.next()) is not None:
                link.heard_at = time.monotonic()
                self._heard(link, *frame)
        except (OSError, RuntimeError, *UNREADABLE):
            selector.unregister(link.socket)
            del self._links[link]
            link.close()
            self._lost(link)

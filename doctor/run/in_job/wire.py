"""Frames between two ranks of one job, and how they know that the other one belongs to it.

The listening side speaks first, so that we send nothing to a port of another program. Each side proves that
it knows the job's token, which never crosses the network.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
import selectors
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator

import msgspec

MAGIC = b"cluster-doctor in-job 1"
HANDSHAKE_SECONDS = 3.0
LONGEST_LINE = 200
HEAD = struct.Struct(">IBI")
LONGEST_FRAME = 1024 * 1024
PIECE = 64 * 1024
FULL = 2 * 1024 * 1024
"""Bytes that wait to be sent, beyond which no more are taken from a program."""
TICK = 0.5
CONTROL, STDIN, STDOUT, STDERR = range(4)


class Stranger(Exception):
    """The other side is not of this job."""


def greet(connection: socket.socket, token: bytes) -> None:
    """The listening side's part. Raises Stranger or OSError."""
    connection.settimeout(HANDSHAKE_SECONDS)
    mine = secrets.token_hex(16).encode()
    connection.sendall(MAGIC + b" " + mine + b"\n")
    theirs, _, proof = _line(connection).partition(b" ")
    if not hmac.compare_digest(proof, _proof(token, b"member", mine, theirs)):
        raise Stranger
    connection.sendall(_proof(token, b"head", mine, theirs) + b"\n")


def introduce(connection: socket.socket, token: bytes) -> None:
    """The connecting side's part. Raises Stranger or OSError."""
    connection.settimeout(HANDSHAKE_SECONDS)
    magic, _, theirs = _line(connection).rpartition(b" ")
    if magic != MAGIC:
        raise Stranger
    mine = secrets.token_hex(16).encode()
    connection.sendall(mine + b" " + _proof(token, b"member", theirs, mine) + b"\n")
    if not hmac.compare_digest(_line(connection), _proof(token, b"head", theirs, mine)):
        raise Stranger


def _proof(token: bytes, side: bytes, head: bytes, member: bytes) -> bytes:
    return hmac.new(token, b"\0".join((side, head, member)), "sha256").hexdigest().encode()


def _line(connection: socket.socket) -> bytes:
    """One byte at a time: what follows the line is not ours to read."""
    line = bytearray()
    while len(line) < LONGEST_LINE:
        byte = connection.recv(1)
        if byte == b"\n":
            return bytes(line)
        if not byte:
            break
        line += byte
    raise Stranger


class RankLink:
    """A connection to another rank. `send` may be called from any thread."""

    def __init__(self, connection: socket.socket, wake: Callable[[], None]) -> None:
        connection.setblocking(False)
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = connection
        self.heard_at = time.monotonic()
        self.closed = False
        self._wake = wake
        self._lock = threading.Lock()
        self._out: deque[memoryview] = deque()
        self.waiting = 0
        """Bytes that are to be sent."""
        self._begun = bytearray()

    def send(self, kind: int, number: int, payload: bytes) -> None:
        with self._lock:
            if self.closed:
                return
            for data in (HEAD.pack(len(payload), kind, number), payload):
                if data:
                    self._out.append(memoryview(data))
                    self.waiting += len(data)
        self._wake()

    def tell(self, message: msgspec.Struct) -> None:
        self.send(CONTROL, 0, msgspec.json.encode(message))

    @property
    def full(self) -> bool:
        return self.waiting >= FULL

    def flush(self) -> None:
        """Send what fits. Raises OSError when the other side has gone."""
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

    def frames(self) -> Iterator[tuple[int, int, bytes]]:
        """What has come. Raises OSError at its end, and where it is not a frame."""
        try:
            data = self.socket.recv(4 * PIECE)
        except BlockingIOError:
            return
        if not data:
            raise ConnectionResetError
        self.heard_at = time.monotonic()
        self._begun += data
        at = 0
        while len(self._begun) - at >= HEAD.size:
            size, kind, number = HEAD.unpack_from(self._begun, at)
            if size > LONGEST_FRAME or kind > STDERR:
                raise ConnectionAbortedError
            if len(self._begun) - at - HEAD.size < size:
                break
            at += HEAD.size + size
            yield kind, number, bytes(self._begun[at - size : at])
        del self._begun[:at]

    def close(self) -> None:
        with self._lock:
            self.closed = True
            self._out.clear()
            self.waiting = 0
        self.socket.close()


class Loop:
    """One thread for all connections of this process. What comes is handed to `heard`, an end to `lost`."""

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

    def adopt(self, connection: socket.socket) -> RankLink:
        link = RankLink(connection, self.wake)
        self._new.append(link)
        self.wake()
        return link

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
            for link in self._links:
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
                for kind, number, payload in link.frames():
                    self._heard(link, kind, number, payload)
        except (OSError, RuntimeError, msgspec.MsgspecError):
            selector.unregister(link.socket)
            del self._links[link]
            link.close()
            self._lost(link)

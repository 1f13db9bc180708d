"""One program in a pod, over the WebSocket of its exec: v5, or v4, which has no word for the end of stdin."""

import contextlib
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec

from doctor.transport.errors import CannotReach
from doctor.transport.pods.podlist import Word

STDIN, STDOUT, STDERR, OUTCOME, CLOSES = 0, 1, 2, 3, 255
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
V5 = "v5.channel.k8s.io"
MOST_UNSENT = 256 * 1024
MOST_TAKEN = 1024 * 1024
"""Bytes that are read before the caller looks at them."""
NOT_YET = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class _Details(msgspec.Struct, frozen=True):
    causes: tuple[Word, ...] = ()


class _Outcome(Word):
    details: _Details = _Details()


class PodProgram:
    """See `Program`. `refused` makes an error of the words with which the cluster ended it."""

    def __init__(self, web: Any, refused: Callable[[str], CannotReach]) -> None:
        from websocket import ABNF  # it comes with the package

        self._web, self._refused, self._framed = web, refused, ABNF.create_frame
        self._web.settimeout(0)
        self._socket: socket.socket = web.sock
        self._lock = threading.Lock()
        self._ear, self._bell = socket.socketpair()
        self._unsent = bytearray()
        self._channel = OUTCOME
        self._outcome = bytearray()
        self._heard = self._closed = self._more = self._hung_up = self._ended = False

    def wait(self, seconds: float) -> None:
        if self._more or self._closed:
            return
        poll = select.poll()
        poll.register(self._ear, select.POLLIN)
        poll.register(self._socket, select.POLLIN | (select.POLLOUT if self._unsent else 0))
        for descriptor, _ in poll.poll(max(0.0, seconds) * 1000):
            if descriptor == self._ear.fileno():
                self._ear.recv(4096)

    def ring(self) -> None:
        with self._lock, contextlib.suppress(BlockingIOError):
            if not self._ended:
                self._bell.send(b"!", socket.MSG_DONTWAIT)

    def take(self) -> tuple[bytes, bytes]:
        self._flush()
        taken = {STDOUT: bytearray(), STDERR: bytearray(), OUTCOME: self._outcome}
        size, self._more = 0, True
        while self._more and size < MOST_TAKEN:
            data = self._receive()
            taken.get(self._channel, bytearray()).extend(data)
            size += len(data)
        self._heard = self._heard or bool(taken[STDOUT])
        return bytes(taken[STDOUT]), bytes(taken[STDERR])

    def _receive(self) -> bytes:
        """What the next frame has for `_channel`; then there may be `_more`."""
        try:
            frame = self._web.recv_frame()
        except NOT_YET:
            self._more = False
            return b""
        except Exception:  # the connection broke, or the server speaks something else
            frame = self._framed(b"", CLOSE)
        data = bytes(frame.data)
        if frame.opcode == CLOSE:
            self._closed, self._more = True, False
        if frame.opcode == PING:
            self._send(PONG, data)
        if frame.opcode in (TEXT, BINARY) and data:
            self._channel, data = data[0], data[1:]
        return data if frame.opcode <= BINARY else b""

    def give(self, data: memoryview) -> int:
        if self._hung_up or self._closed:
            raise BrokenPipeError
        sent = min(len(data), max(0, MOST_UNSENT - len(self._unsent)))
        if sent:
            self._send(BINARY, bytes([STDIN]) + data[:sent])
        return sent

    def _send(self, kind: int, payload: bytes) -> None:
        with self._lock:
            self._unsent += self._framed(payload, kind).format()
        self._flush()

    def _flush(self) -> None:
        with self._lock:
            try:
                while self._unsent and not self._ended:
                    del self._unsent[: self._socket.send(self._unsent)]
            except NOT_YET:
                return
            except OSError:
                self._unsent.clear()

    def finished(self) -> bool:
        """Raises CannotReach if it never began, for a reason that the cluster tells."""
        said = self._said()
        if self._closed and not self._heard and said.status == "Failure" and said.reason != "NonZeroExitCode":
            raise self._refused(said.message)
        return self._closed

    def broken(self) -> bool:
        return not self._outcome and not self._hung_up

    def status(self, seconds: float) -> int | None:
        until = time.monotonic() + seconds
        while not self._closed and not self._outcome and (left := until - time.monotonic()) > 0:
            self.wait(left)
            self.take()
        said = self._said()
        codes = [each.message for each in said.details.causes if each.reason == "ExitCode"]
        code = "0" if said.status == "Success" else "".join(codes)
        return int(code) if code.isdecimal() and len(code) < 4 else None

    def _said(self) -> _Outcome:
        with contextlib.suppress(msgspec.MsgspecError):
            return msgspec.json.decode(self._outcome, type=_Outcome)
        return _Outcome()

    def hang_up(self) -> None:
        if not self._hung_up:
            self._hung_up = True
            if self._web.subprotocol == V5 and not self._closed:
                self._send(BINARY, bytes([CLOSES, STDIN]))

    def end(self) -> None:
        """Close the connection: what runs in the pod sees the end of its input."""
        self.hang_up()
        with self._lock:
            if not self._ended:
                self._ended = True
                self.stop()
                for each in (self._socket, self._ear, self._bell):
                    each.close()

    def stop(self) -> None:
        """Called from any thread: make the program's own thread see its end."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

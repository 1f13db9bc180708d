"""From settings to a byte stream: TCP, or the user's ProxyCommand."""

import contextlib
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable

# A vanished host is noticed after about this many seconds, even if nothing is being sent.
SILENT_LOSS = 15


def connect(address: str, port: int, seconds: float, made: Callable[[socket.socket], None]) -> socket.socket:
    """Try each address of the name in turn; `made` gets each socket. Raises the last OSError."""
    until = time.monotonic() + seconds
    candidates = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)
    last: OSError = TimeoutError("timed out")
    for number, (family, kind, protocol, _, place) in enumerate(candidates):
        left = until - time.monotonic()
        if left <= 0:
            break
        try:
            sock = socket.socket(family, kind, protocol)
        except OSError as error:
            last = error
            continue
        made(sock)
        # No address may use up the time of those after it.
        sock.settimeout(max(left / (len(candidates) - number), 0.5))
        try:
            sock.connect(place)
        except OSError as error:
            sock.close()
            last = error
            continue
        _tune(sock)
        return sock
    raise last


def sever(sock: socket.socket) -> None:
    """Break a connection from any thread: closing alone leaves it open for a reading thread."""
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
    sock.close()


def _tune(sock: socket.socket) -> None:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", SILENT_LOSS // 3),
        ("TCP_KEEPINTVL", SILENT_LOSS // 3),
        ("TCP_KEEPCNT", 2),
        ("TCP_USER_TIMEOUT", SILENT_LOSS * 1000),
    ):
        option = getattr(socket, name, None)
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)


class Proxy:
    """A running ProxyCommand. `sock` is our end of its stdin and stdout."""

    def __init__(self, command: str) -> None:
        self.command = command
        self.sock, theirs = socket.socketpair()
        self._ended = threading.Lock()
        self._words = tempfile.TemporaryFile()  # noqa: SIM115  (closed in `end`)
        with theirs:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", f"exec {command}"],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=self._words,
                start_new_session=True,
            )

    def said(self) -> str:
        """The last line of its stderr."""
        try:
            self._words.seek(max(0, self._words.seek(0, os.SEEK_END) - 4096))
            lines = self._words.read().decode("utf-8", "replace").strip().splitlines()
        except (OSError, ValueError):
            return ""
        return lines[-1] if lines else ""

    def failed(self) -> bool:
        """Whether it gave up by itself, rather than because the far side hung up."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(0.2) != 0
        return False

    def end(self) -> None:
        """End it at once; a thread waits until it is gone. It may be called twice."""
        if not self._ended.acquire(blocking=False):
            return
        sever(self.sock)
        self._signal(signal.SIGTERM)
        threading.Thread(target=self._reap, daemon=True).start()

    def _reap(self) -> None:
        try:
            self._process.wait(1)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            self._process.wait()
        self._words.close()

    def _signal(self, number: signal.Signals) -> None:
        # Only while the process is not reaped, its group's number is certain to be its own.
        if self._process.returncode is None:
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, number)

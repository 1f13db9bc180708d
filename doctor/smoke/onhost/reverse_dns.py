"""How long a reverse lookup takes, in a process of its own: torch does one a connection. Python 3.6."""

import contextlib
import os
import signal
import socket
import struct
import time

from doctor.agents.onhost.process import default_signals, die_with_parent

LIMIT = 6.0  # longer than the five seconds after which resolvers ask again
_SECONDS = struct.Struct("d")


class DnsLookup:
    """A lookup, which starts at once. When it is `done`, `seconds` is its time; None without an answer."""

    def __init__(self, address: str) -> None:
        self.done = False
        self.seconds = None  # type: float | None
        self._until = time.monotonic() + LIMIT
        self._answer, theirs = os.pipe()
        os.set_blocking(self._answer, False)
        parent = os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            try:
                die_with_parent(parent)
                default_signals()
                os.write(theirs, _SECONDS.pack(_time(address)))
            finally:
                os._exit(0)
        os.close(theirs)

    def poll(self) -> bool:
        """Whether it has ended since the last call."""
        if self.done:
            return False
        try:
            data = os.read(self._answer, _SECONDS.size)
        except BlockingIOError:
            if time.monotonic() < self._until:
                return False
            self.seconds = LIMIT
        else:
            self.seconds = _SECONDS.unpack(data)[0] if len(data) == _SECONDS.size else None
        self.stop()
        return True

    def stop(self) -> None:
        if not self.done:
            self.done = True
            os.close(self._answer)
            with contextlib.suppress(OSError):
                os.kill(self._pid, signal.SIGKILL)
            with contextlib.suppress(OSError):
                os.waitpid(self._pid, os.WNOHANG)


def _time(address: str) -> float:
    # Like torch, which talks IPv4 through an IPv6 socket: then entries of /etc/hosts do not count.
    asked = address if ":" in address else "::ffff:" + address
    began = time.monotonic()
    with contextlib.suppress(OSError):
        socket.getnameinfo((asked, 0), socket.NI_NUMERICSERV)
    return time.monotonic() - began

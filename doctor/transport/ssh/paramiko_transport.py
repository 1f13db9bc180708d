"""paramiko's transport, cheaper and with less trust in the peer.

paramiko polls each socket ten times a second, starts a timer thread for each handshake, reads packets of any
length, and forgets why a peer refused. Nothing here knows about hosts, keys or scripts.
"""

import contextlib
import logging
import socket
import threading
from collections.abc import Sequence
from typing import Any

import paramiko
from paramiko.message import Message
from paramiko.packet import NeedRekeyException, Packetizer

# OpenSSH neither sends nor accepts longer packets.
LONGEST_PACKET = 256 * 1024 + 1024
LONGEST_BANNER_LINE = 8 * 1024
LONGEST_PREAMBLE = 64 * 1024
# Shutting the socket down wakes a blocked read; this is only how often a pending re-key is noticed.
IDLE_WAKE = 30.0
CHUNK = 64 * 1024

# Cheapest first among those that every supported sshd accepts; the rest of paramiko's own list follows.
KEX = ("curve25519-sha256@libssh.org", "ecdh-sha2-nistp256")
CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "aes128-ctr", "aes256-ctr")
NEVER = ("aes128-cbc", "aes192-cbc", "aes256-cbc", "3des-cbc", "hmac-md5", "hmac-md5-96", "hmac-sha1-96")

# Failures are read from exceptions and attributes; a log line would only be a traceback on the terminal.
logging.getLogger("paramiko").setLevel(logging.CRITICAL + 1)


class Packets(Packetizer):
    """Reads packets in large chunks, without a poll, and none longer than the protocol needs."""

    def __init__(self, sock: Any) -> None:
        super().__init__(sock)
        self._sock = sock
        self._kept = bytearray()
        self._preamble = 0
        self.said_first = b""
        self.broke: Exception | None = None

    def readline(self, timeout: float) -> str:  # noqa: ARG002  (the caller's deadline closes the socket)
        """One line before the handshake. `said_first` and `broke` keep what arrived and what broke it."""
        try:
            while b"\n" not in self._kept:
                if len(self._kept) > LONGEST_BANNER_LINE or self._preamble > LONGEST_PREAMBLE:
                    raise paramiko.SSHException("not an SSH banner")
                self._more(check_rekey=False)
        except (OSError, EOFError, paramiko.SSHException) as error:
            self.broke = error
            self.said_first = self.said_first or bytes(self._kept[:200])
            raise
        line, _, rest = bytes(self._kept).partition(b"\n")
        self._kept[:] = rest
        self._preamble += len(line) + 1
        if not line.startswith(b"SSH-"):
            self.said_first = self.said_first or line[:200]
        return line.removesuffix(b"\r").decode("utf-8", "replace")

    def read_all(self, n: int, check_rekey: bool = False) -> bytes:
        if n <= 0:
            return b""
        if n > LONGEST_PACKET:
            raise paramiko.SSHException("the peer sent a packet longer than the protocol allows")
        while len(self._kept) < n:
            self._more(check_rekey)
        out = bytes(self._kept[:n])
        del self._kept[:n]
        return out

    def _more(self, check_rekey: bool) -> None:
        while True:
            try:
                chunk = self._sock.recv(CHUNK)
                break
            except TimeoutError:
                if self.closed:
                    raise EOFError from None
                if check_rekey and not self._kept and self.need_rekey():
                    raise NeedRekeyException from None
            except OSError:
                if self.closed:
                    raise EOFError from None
                raise
        if not chunk:
            raise EOFError
        self._kept += chunk

    def start_handshake(self, timeout: float) -> None:
        """No timer thread: whoever waits for the handshake closes the socket in time."""

    def handshake_timed_out(self) -> bool:
        return False

    def complete_handshake(self) -> None:
        """See `start_handshake`."""

    def close(self) -> None:
        # Closing a descriptor does not wake a thread that reads it; shutting the socket down does.
        # Behind a jump host it is a channel, and both say so to a connection that may be gone.
        for end in (lambda: self._sock.shutdown(socket.SHUT_RDWR), super().close):
            with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
                end()


class ParamikoTransport(paramiko.Transport):
    """One connection. Remembers the peer's words when it refused a channel or hung up."""

    packetizer: Packets

    def __init__(self, sock: Any, key_types: tuple[str, ...]) -> None:
        super().__init__(sock, packetizer_class=Packets)
        sock.settimeout(IDLE_WAKE)
        self.farewell: tuple[int, str] | None = None
        self.refusals: dict[int, tuple[int, str]] = {}
        self._opened_here = threading.local()
        options = self.get_security_options()
        options.kex = _first(KEX, options.kex)
        options.ciphers = _first(CIPHERS, options.ciphers)
        options.digests = _first((), options.digests)
        options.key_types = _first(key_types, options.key_types)

    def run(self) -> None:
        try:
            super().run()
        except Exception as error:
            # A thread's traceback must not reach the terminal; a waiting thread reads the error.
            self.saved_exception = self.saved_exception or error

    def hang_up(self) -> None:
        """Drop the connection now, from any thread, whatever it is doing."""
        self.packetizer.close()
        self.close()
        for event in (self.completion_event, getattr(self.auth_handler, "auth_event", None)):
            if event is not None:
                event.set()

    def tunnel(self, address: str, port: int, timeout: float) -> paramiko.Channel:
        """A channel that the peer connects to (address, port). If it fails, see `refusal`."""
        self._opened_here.channel = -1
        return self.open_channel("direct-tcpip", (address, port), ("127.0.0.1", 0), timeout=timeout)

    def refusal(self) -> tuple[int, str] | None:
        """Why the peer refused the channel that this thread just asked for: its code and its own words."""
        return self.refusals.pop(getattr(self._opened_here, "channel", -1), None)

    def _next_channel(self) -> int:
        # Channels opened by several threads share one `saved_exception`; the number distinguishes them.
        channel: int = super()._next_channel()  # type: ignore[misc]
        self._opened_here.channel = channel
        return channel

    def _parse_channel_open_failure(self, m: Message) -> None:
        channel, code, words = m.get_int(), m.get_int(), m.get_text()
        self.refusals[channel] = (code, words[:200])
        m.rewind()
        super()._parse_channel_open_failure(m)  # type: ignore[misc]

    def _parse_disconnect(self, m: Message) -> None:
        self.farewell = (m.get_int(), m.get_text()[:200])


def _first(wanted: Sequence[str], offered: Sequence[str]) -> tuple[str, ...]:
    """Those of `wanted` that are offered, then the rest of `offered`, without the broken ones."""
    ahead = tuple(name for name in wanted if name in offered)
    return ahead + tuple(name for name in offered if name not in ahead and name not in NEVER)

"""One authenticated connection to one host, and how it is made: stream, handshake, host key, login."""

import random
import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import paramiko

from doctor.text.trace import trace
from doctor.transport import errors
from doctor.transport.errors import CannotReach, Destination
from doctor.transport.ssh import errors as ssh_errors
from doctor.transport.ssh.channel import ChannelProgram
from doctor.transport.ssh.config import HostSettings
from doctor.transport.ssh.login import HostIdentity, SharedState, log_in
from doctor.transport.ssh.paramiko_transport import ParamikoTransport
from doctor.transport.ssh.sockets import Proxy, connect, sever

# Above MaxStartups, sshd drops logins at random: a moment later there is room.
RETRIES = 3
Undo = Callable[[], None]


class TooManyStarts(Exception):
    """The server hung up before its banner."""

    def __init__(self, said: bytes) -> None:
        super().__init__()
        self.said = said


class SshConnection:
    """`used`: whether a channel was ever opened on it; `full`: whether the server has refused one since."""

    def __init__(self, to: Destination, wire: ParamikoTransport, undo: list[Undo]) -> None:
        self.to = to
        self.wire = wire
        self.used = self.full = False
        self._undo = undo

    def alive(self) -> bool:
        return self.wire.is_active()

    def start(self, command: str, seconds: float) -> ChannelProgram:
        """Run a command. Raises ChannelException if no (further) session opens, else CannotReach."""
        until = time.monotonic() + seconds
        watch = threading.Timer(seconds, self.wire.hang_up)
        watch.daemon = True
        watch.start()
        try:
            channel = self.wire.open_session(timeout=seconds)
            self.used = True
            channel.exec_command(command)
        except paramiko.ChannelException:
            raise
        except (paramiko.SSHException, EOFError, OSError) as error:
            if time.monotonic() >= until:
                raise errors.handshake_slow(self.to, seconds, "the start of the command") from error
            if self.wire.is_active():
                raise errors.cannot("no command", "", self.to) from error
            raise errors.lost(self.to, "the start of the command", str(error)) from error
        finally:
            watch.cancel()
        return ChannelProgram(channel, self.wire)

    def drop(self) -> None:
        """Break the connection at once, from any thread."""
        self.wire.hang_up()
        for undo in self._undo:
            undo()


class Dial:
    """One attempt to reach one host. `abort` may be called from any thread, at any moment."""

    def __init__(
        self, settings: HostSettings, shared: SharedState, through: SshConnection | None, deadline: float
    ) -> None:
        self._settings = settings
        self._shared = shared
        self._through = through
        self._deadline = deadline
        self._to = settings.destination()
        self._undo: list[Undo] = []
        self._proxy: Proxy | None = None
        self._aborted = False
        self.doing = "it waited for its turn"

    def _begin(self, step: str, doing: str) -> None:
        trace(self._to.name, step)
        self.doing = doing

    def abort(self) -> None:
        self._aborted = True
        self._clean_up()

    def _clean_up(self) -> None:
        for undo in list(self._undo):
            undo()

    def link(self) -> SshConnection:
        """Connect and log in. Raises CannotReach."""
        identity = HostIdentity(self._settings, self._shared)
        for attempt in range(RETRIES + 1):
            try:
                wire = self._handshake(identity.known.algorithms())
                break
            except TooManyStarts as early:
                self._undo.clear()
                pause = random.uniform(0.1, 0.4) * 2**attempt
                if attempt == RETRIES or self._left() < pause:
                    raise errors.closed_at_once(self._to, attempt + 1, early.said) from None
                if self._shared.closing.wait(pause):
                    raise errors.cannot("interrupted") from None
        try:
            self._begin("its host key is checked", "its host key was checked")
            identity.check(wire)
            self._begin("it logs in", "logging in")
            log_in(wire, self._settings, self._shared.keys, self._left)
        except BaseException:
            self._clean_up()
            raise
        return SshConnection(self._to, wire, self._undo)

    def _left(self) -> float:
        if self._aborted or self._shared.closing.is_set():
            raise errors.cannot("interrupted")
        return self._deadline - time.monotonic()

    def _patience(self) -> float:
        """The time limit for a single step on the network."""
        return min(self._settings.connect_timeout, max(self._left(), 0.1))

    def _stream(self) -> Any:
        """A socket, or a channel through the jump host: paramiko accepts both."""
        settings = self._settings
        seconds = self._patience()
        if settings.proxy_command:
            self._begin("its ProxyCommand connects", "the ProxyCommand was connecting")
            self._proxy = Proxy(settings.proxy_command)
            self._undo.append(self._proxy.end)
            return self._proxy.sock
        if self._through is not None:
            self._begin("its jump host connects", "the jump host was connecting")
            return self._tunnel(self._through, seconds)
        self._begin(
            f"{settings.address} is looked up, and port {settings.port} dialled",
            "its name was looked up and its port dialled",
        )
        try:
            return connect(settings.address, settings.port, seconds, self._register_socket)
        except OSError as error:
            raise errors.not_connected(self._to, error, seconds) from None

    def _register_socket(self, sock: socket.socket) -> None:
        self._undo.append(partial(sever, sock))
        self._left()

    def _tunnel(self, jump: SshConnection, seconds: float) -> paramiko.Channel:
        settings = self._settings
        try:
            channel = jump.wire.tunnel(settings.address, settings.port, seconds)
        except (paramiko.SSHException, EOFError, OSError) as error:
            if not jump.alive():
                raise ssh_errors.jump_failed(
                    jump.to.name, errors.lost(jump.to, "the connection onwards")
                ) from None
            code, words = jump.wire.refusal() or (2, "" if "imeout" in str(error) else str(error))
            raise ssh_errors.tunnel_refused(self._to, jump.to.name, code, words, seconds) from None
        self._undo.append(channel.close)
        return channel

    def _handshake(self, key_algorithms: tuple[str, ...]) -> ParamikoTransport:
        stream = self._stream()
        self._begin("its SSH server greets", "the SSH server was greeting")
        done = threading.Event()
        wire = ParamikoTransport(stream, key_algorithms)
        self._undo.append(wire.hang_up)
        wire.start_client(event=done)
        seconds = self._patience()
        done.wait(seconds)
        if not done.is_set() and wire.remote_version:
            # The greeting came in time; the key exchange gets the rest of the host's time.
            done.wait(max(self._left(), 0.0))
        if wire.is_active() and wire.initial_kex_done:
            return wire
        try:
            raise self._why_not(wire, wire.is_active(), seconds)
        finally:
            self._clean_up()

    def _why_not(
        self, wire: ParamikoTransport, timed_out: bool, seconds: float
    ) -> CannotReach | TooManyStarts:
        """Why a handshake failed."""
        self._left()
        error = wire.get_exception()
        packets = wire.packetizer
        if (short := errors.shortage(error)) is not None:
            return short
        if wire.remote_version:
            if timed_out:
                return errors.handshake_slow(self._to, seconds, "the key exchange")
            if error is None or isinstance(error, (EOFError, OSError)):
                return errors.lost(self._to, "the key exchange", (wire.farewell or (0, ""))[1])
            return errors.cannot("not SSH", errors.quoted(str(error)), self._to)
        # If `broke` is unset, our own greeting could not be sent.
        if isinstance(packets.broke or error, (EOFError, ConnectionError)) and not timed_out:
            if self._proxy is not None and self._proxy.failed():
                said = self._proxy.said()
                because = f": {errors.quoted(said)}" if said else " before an SSH server answered"
                command = errors.quoted(self._proxy.command, 400)
                return errors.cannot("proxy command", command, self._to, because=because)
            return TooManyStarts(packets.said_first)
        return errors.no_banner(self._to, seconds, packets.said_first)

"""A program at the far end of an SSH channel."""

import contextlib
import threading

import paramiko

from doctor.transport.ssh.paramiko_transport import ParamikoTransport

PIECE = 256 * 1024


class _Bell(threading.Event):
    """Rings when any pipe has news. Only its listener silences it: the other pipe may still have data."""

    def clear(self) -> None:
        return

    def silence(self) -> None:
        super().clear()


class _Window(threading.Condition):
    """The condition under which a channel may send again; it also rings the bell."""

    def __init__(self, lock: threading.Lock, bell: _Bell) -> None:
        super().__init__(lock)
        self._bell = bell

    def notify_all(self) -> None:
        super().notify_all()
        self._bell.set()


class ChannelProgram:
    """See `Program`."""

    def __init__(self, channel: paramiko.Channel, wire: ParamikoTransport) -> None:
        self._channel = channel
        self._wire = wire
        self._bell = _Bell()
        self._hung_up = False
        channel.settimeout(0.0)
        channel.out_buffer_cv = _Window(channel.lock, self._bell)
        channel.in_buffer.set_event(self._bell)
        channel.in_stderr_buffer.set_event(self._bell)

    def wait(self, seconds: float) -> None:
        self._bell.wait(seconds)
        self._bell.silence()

    def ring(self) -> None:
        self._bell.set()

    def take(self) -> tuple[bytes, bytes]:
        channel = self._channel
        out = channel.recv(PIECE) if channel.recv_ready() else b""
        return out, (channel.recv_stderr(PIECE) if channel.recv_stderr_ready() else b"")

    def give(self, data: memoryview) -> int:
        try:
            return self._channel.send(bytes(data))
        except TimeoutError:
            return 0
        except (EOFError, paramiko.SSHException) as error:
            raise OSError(str(error)) from None

    def finished(self) -> bool:
        channel = self._channel
        over = channel.eof_received or channel.closed or not self._wire.is_active()
        return bool(over) and not channel.recv_ready() and not channel.recv_stderr_ready()

    def broken(self) -> bool:
        return not self._channel.eof_received and self._channel.exit_status == -1

    def status(self, seconds: float) -> int | None:
        self._channel.status_event.wait(seconds)
        code = self._channel.exit_status
        return None if code == -1 else code

    def hang_up(self) -> None:
        if not self._hung_up:
            self._hung_up = True
            with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
                self._channel.shutdown_write()

    def end(self) -> None:
        self._hung_up = True
        with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
            self._channel.close()
